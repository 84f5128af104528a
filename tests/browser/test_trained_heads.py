"""Heads of a trained model in a real browser: the library's numbers, picker, keys, phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfviz import experiments
from tfviz.explorers import TrainedHeads
from tfviz.stored import letter_gpt

TEXTS = ["the value of the expression", "crwth crwth crwth", "ab"]


@pytest.fixture(scope="module")
def one() -> TrainedHeads:
    return TrainedHeads(TEXTS, text=1, layer=1, head=0, row=14)


def expect(page: Any, text: int, layer: int, head: int, row: int) -> None:
    """The page shows what the library computes for this state."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    python = TrainedHeads(TEXTS, text=text, layer=layer, head=head, row=row)
    root = page.locator(".tfx")
    shown = json.loads(root.get_attribute("data-facts"))
    assert shown == pytest.approx(python.facts, abs=1e-9)
    weights = json.loads(root.get_attribute("data-weights"))
    assert weights == pytest.approx(python.weights[layer, head, row, : row + 1].tolist(), abs=1e-12)


def test_the_page_shows_the_numbers_of_the_library(
    show: Callable[..., Any], one: TrainedHeads
) -> None:
    page = show(one)
    expect(page, 1, 1, 0, 14)
    stored = experiments.load("head_ablation")["gpt"]
    facts = page.locator(".th-facts").inner_text()
    for task in ("text", "repeats"):
        assert f"{stored[task]:.2f} → {stored['without'][1][0][task]:.2f} nats" in facts

    # another head: by its label, then by the keyboard as in every group of radio buttons
    page.locator(".th-line label").nth(2).click()
    expect(page, 1, 0, 2, 14)
    page.get_by_role("radio", name="layer 0, head 2").press("ArrowRight")
    expect(page, 1, 0, 3, 14)

    # another query: arrows in the arcs, a click in the large map
    page.locator(".th-arcs").focus()
    page.keyboard.press("ArrowLeft")
    expect(page, 1, 0, 3, 13)
    page.get_by_text("Layer 0, head 3: letter 13, “r”, puts").wait_for()
    page.keyboard.press("Home")
    expect(page, 1, 0, 3, 0)
    page.get_by_text("puts 1.00 on itself").wait_for()
    page.locator(".tfx-matrix").focus()
    page.keyboard.press("End")
    expect(page, 1, 0, 3, 16)

    # under the mouse: looked at, not chosen
    box = page.locator(".th-arcs").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page, 1, 0, 3, 8)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("h1").hover()
    expect(page, 1, 0, 3, 8)

    # another text begins at its last letter
    page.locator('select[data-key="text"]').select_option("0")
    expect(page, 0, 0, 3, 26)
    page.locator('select[data-key="text"]').select_option("2")
    expect(page, 2, 0, 3, 1)

    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"TrainedHeads": TrainedHeads})
    assert again.state == TrainedHeads(TEXTS, text=2, layer=0, head=3, row=1).state
    page.evaluate("window.copied = null")
    page.get_by_role("button", name="copy link").click()
    page.wait_for_function("window.copied")
    link = page.evaluate("window.copied")
    page.get_by_role("button", name="reset").click()
    expect(page, 1, 1, 0, 14)
    page.goto("about:blank")
    page.goto(link)
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(page, 2, 0, 3, 1)


def test_fits_a_phone_without_shift(show: Callable[..., Any], one: TrainedHeads) -> None:
    page = show(one, width=390, offline=True)
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        for width in (390, 600, 700, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            page.evaluate("() => new Promise(requestAnimationFrame)")
            page.wait_for_timeout(50)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            inner, outer = (
                page.locator(s).bounding_box()["height"] for s in (".tfx", ".tfviz-explorer")
            )
            assert inner <= outer + 1, f"higher than its room at {width}"
            assert page.evaluate("Number(document.querySelector('.th-small').width)") == 17


def test_python_side(one: TrainedHeads) -> None:
    model = letter_gpt.trained()
    A = letter_gpt.of_text(model, TEXTS[1]).double()
    assert (one.weights - A).abs().max() < 1e-5
    assert one.html() == TrainedHeads(TEXTS, text=1, layer=1, head=0, row=14).html()
    torch.testing.assert_close(
        one.weights.sum(-1), torch.ones(2, 4, 17, dtype=torch.float64), atol=2e-4, rtol=0
    )
    own = TrainedHeads("abc abc", model=letter_gpt.gpt())  # nothing is known of it
    assert own.whole == {} and own.removed == [] and own.row == 6


def test_a_model_that_is_not_the_stored_one(show: Callable[..., Any]) -> None:
    page = show(TrainedHeads("abc abc", model=letter_gpt.gpt()))
    assert page.locator(".th-facts dt").count() == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"texts": ["A cat"]}, "words holds 'A'"),
        ({"texts": ["x" * 41]}, "length of 'x+' = 41"),
        ({"texts": []}, "number of texts = 0"),
        ({"layer": 2}, "layer = 2"),
        ({"head": 4}, "head = 4"),
        ({"text": 3}, "text = 3"),
        ({"row": 99}, "row = 99"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TrainedHeads(**wrong)
