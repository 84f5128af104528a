"""Signals of a stack in a real browser: forwards and backwards as the library's blocks in torch."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import torch

from tfviz.explorers import BlockSignals
from tfviz.explorers.block_signals import uniforms


def expect(page: Any, **state: Any) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    found = json.loads(page.locator(".tfx").get_attribute("data-signals"))
    for name, right in asdict(BlockSignals(**state).signals).items():
        assert found[name] == pytest.approx(right, rel=1e-6), (name, state)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_every_order_is_the_librarys(show: Any) -> None:
    page = show(BlockSignals(depth=5, order="post", skips=False))
    for skips in (False, True):
        for order, text in (("post", "post"), ("pre", "pre"), ("none", "never")):
            page.get_by_text(text, exact=True).click()
            expect(page, depth=5, order=order, skips=skips)
        page.get_by_label("skip connections").click()
    page.get_by_label("skip connections").set_checked(True)
    page.get_by_text("pre", exact=True).click()
    slide(page, "gain", 1.7)
    slide(page, "seed", 42)
    expect(page, depth=5, order="pre", gain=1.7, seed=42)
    page.get_by_text("stream", exact=True).click()
    page.get_by_text("pre-norm, with skips, 5 blocks: size of the stream").wait_for()
    page.locator(".tfx-canvas").focus()
    page.keyboard.press("End")
    expect(page, depth=24, order="pre", gain=1.7, seed=42)
    page.keyboard.press("Home")
    page.get_by_text("W₂", exact=True).click()
    expect(page, depth=1, order="pre", gain=1.7, seed=42)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"BlockSignals": BlockSignals})
    assert again.state == BlockSignals(1, gain=1.7, seed=42, show="weights").state


def test_fits_without_shift(show: Any) -> None:
    for width in (390, 1280):
        page = show(BlockSignals(), width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner = page.locator(".tfx").bounding_box()["height"]
        kept = page.locator(".tfviz-explorer-body").evaluate(
            "node => parseFloat(getComputedStyle(node).minHeight)"
        )
        kept = kept or page.locator(".tfviz-explorer").bounding_box()["height"]
        assert inner <= kept + 1, "higher than the room the page keeps for it"


def test_random_numbers_have_mean_0_and_variance_1() -> None:
    found = uniforms(7, 20_000)
    assert abs(found.mean()) < 0.02 and abs(found.var() - 1) < 0.02
    assert not torch.equal(found[:50], uniforms(8, 50))
    assert torch.equal(found[:50], uniforms(7, 50))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"depth": 0}, "depth = 0"),
        ({"depth": 25}, "depth = 25"),
        ({"gain": 0.0}, "gain = 0.0"),
        ({"seed": 100}, "seed = 100"),
        ({"order": "middle"}, "order = 'middle'"),
        ({"show": "all"}, "show = 'all'"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BlockSignals(**wrong)
