"""Merges one by one in a real browser: the library's tokens and pairs, keys, own text, phone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfviz.explorers import MergeStepper

SONG = "row row row your boat, gently down the stream; row by row — così è"


def shown(page: Any) -> tuple[list[int], list[tuple[int, int, int]]]:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    root = page.locator(".tfx")
    pairs = json.loads(root.get_attribute("data-pairs"))
    return json.loads(root.get_attribute("data-tokens")), [tuple(pair) for pair in pairs]


def expect(page: Any, text: str, merges: int) -> None:
    one = MergeStepper(text, merges)
    assert shown(page) == (one.tokens, one.next_pairs)


def test_tokens_pairs_keys_and_own_text(show: Any) -> None:
    page = show(MergeStepper(SONG, merges=2))
    expect(page, SONG, 2)
    slider = page.get_by_label("merges", exact=True)
    slider.focus()
    for n in (3, 4, 5):
        page.keyboard.press("ArrowRight")
        expect(page, SONG, n)
    page.get_by_text("Merge 5: “").wait_for()
    page.locator(".ms-curve").focus()
    page.keyboard.press("ArrowLeft")
    expect(page, SONG, 4)
    page.keyboard.press("End")  # until no pair is left: every piece is one token
    tokens, pairs = shown(page)
    assert pairs == [] and len(tokens) == len(page.locator(".ms-piece").all())
    assert page.get_by_role("button", name="merge →").is_disabled()
    page.keyboard.press("Home")
    expect(page, SONG, 0)
    assert page.get_by_role("button", name="← undo").is_disabled()
    mine = "Straße, naïve café; x_1 = {'b': \"日本\"}  日本"
    page.get_by_label("your own text").fill(mine)
    expect(page, mine, 0)
    page.get_by_role("button", name="merge →").click()
    expect(page, mine, 1)
    page.get_by_label("your own text").fill("")  # stays with the last text
    expect(page, mine, 1)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"MergeStepper": MergeStepper})
    assert again.state == MergeStepper(mine, merges=1).state
    page.get_by_role("button", name="reset").click()
    expect(page, SONG, 2)


def test_fits_without_shift(show: Any) -> None:
    text = (SONG + " ") * 4
    for width in (390, 1280):
        page = show(MergeStepper(text[:300], merges=0), width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner = page.locator(".tfx").bounding_box()["height"]
        kept = page.locator(".tfviz-explorer-body").evaluate(
            "node => parseFloat(getComputedStyle(node).minHeight)"
        )
        kept = kept or page.locator(".tfviz-explorer").bounding_box()["height"]
        assert inner <= kept + 1, "higher than the room the page keeps for it"


def test_python_side() -> None:
    one = MergeStepper("ab ab b", merges=1)
    assert one.learned == [(97, 98)] and one.tokens == [256, 32, 256, 32, 98]
    assert one.next_pairs == [(32, 98, 1), (32, 256, 1)]
    assert MergeStepper("ab").html() == MergeStepper("ab").html()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"text": ""}, "text has 0 bytes"),
        ({"text": "x" * 400}, "text has 400 bytes"),
        ({"text": "x", "merges": -1}, "merges = -1"),
        ({"text": "x", "merges": 81}, "merges = 81"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MergeStepper(**wrong)
