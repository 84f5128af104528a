"""Cost shares in a real browser: the library's counts, keys, phone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfviz.explorers import BlockCosts


def expect(page: Any, **state: int) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    found = json.loads(page.locator(".tfx").get_attribute("data-flops"))
    right = BlockCosts(**state).flops
    assert found == {
        "projections": right["projections"],
        "scores": right["scores"],
        "feed": right["feed-forward"],
    }


def test_counts_keys_and_links(show: Any) -> None:
    page = show(BlockCosts(L=2048, d=512))
    expect(page, L=2048, d=512)
    page.get_by_text("L = 2 048", exact=False).first.wait_for()
    page.get_by_text("66.7 % of the block").wait_for()
    page.locator(".tfx-canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page, L=4096, d=512)
    page.keyboard.press("Home")
    expect(page, L=16, d=512)
    page.get_by_label("width").press("ArrowRight")
    page.get_by_label("feed-forward, times as wide").press("Home")
    expect(page, L=16, d=768, factor=1)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"BlockCosts": BlockCosts})
    assert again.state == BlockCosts(L=16, d=768, factor=1).state


def test_fits_without_shift(show: Any) -> None:
    for width in (390, 1280):
        page = show(BlockCosts(), width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner = page.locator(".tfx").bounding_box()["height"]
        kept = page.locator(".tfviz-explorer-body").evaluate(
            "node => parseFloat(getComputedStyle(node).minHeight)"
        )
        kept = kept or page.locator(".tfviz-explorer").bounding_box()["height"]
        assert inner <= kept + 1, "higher than the room the page keeps for it"


@pytest.mark.parametrize("wrong", [{"L": 0}, {"d": 20_000}, {"factor": 9}])
def test_bad_arguments_are_named(wrong: dict[str, int]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} = {value} is out of range"):
        BlockCosts(**wrong)
