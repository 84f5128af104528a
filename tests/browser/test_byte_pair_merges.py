"""Merges one by one in a real browser: the library's tokens and pairs, keys, own text, phone."""

from __future__ import annotations

from typing import Any

import pytest
from browser.explorer_site import fits

from tfviz.explorers import BytePairMerges

SONG = "row row row your boat, gently down the stream; row by row — così è"


def expect(page: Any, text: str, merges: int) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    found = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    one = BytePairMerges(text, merges)
    assert found["tokens"] == one.tokens
    assert [tuple(pair) for pair in found["pairs"]] == one.next_pairs


def test_a_word_is_chosen_first(show: Any) -> None:
    page = show(BytePairMerges(SONG))
    expect(page, SONG, 0)
    slider = page.get_by_label("merges", exact=True).and_(page.locator("input"))
    page.get_by_role("button", name="“boat”").click()
    page.get_by_text("you said: “boat”; it is: “row”").wait_for()
    page.get_by_role("button", name="ask me again").click()
    slider.press("ArrowRight")  # whoever merges has looked
    page.get_by_text("You looked: it is: “row”").wait_for()
    expect(page, SONG, 1)


def test_steps_keys_and_own_text(show: Any) -> None:
    page = show(BytePairMerges(SONG, merges=2))
    slider = page.get_by_label("merges", exact=True).and_(page.locator("input"))
    slider.focus()
    for n in (3, 4, 5):
        page.keyboard.press("ArrowRight")
        expect(page, SONG, n)
    page.get_by_text("Merge 5: “").wait_for()
    page.locator(".tfx-handle").focus()
    page.keyboard.press("ArrowLeft")
    expect(page, SONG, 4)
    page.keyboard.press("End")  # until no pair is left: every piece is one token
    pieces = len(BytePairMerges(SONG, merges=80).tokens)
    page.get_by_text(f"has {pieces} tokens").wait_for()
    assert len(page.locator(".tfx-group").all()) == pieces
    assert len(page.locator(".tfx-group").all()) == len(page.locator(".tfx-chip").all())
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
    page.get_by_role("button", name="reset").click()
    expect(page, SONG, 2)


def test_a_pair_and_its_tokens_light_up_together(show: Any) -> None:
    page = show(BytePairMerges("ab ab b", merges=1))
    page.locator(".tfx-table tr").first.hover()
    assert page.locator(".tfx-chip[data-lit]").count() > 1
    page.locator(".tfx-title").hover()
    assert page.locator(".tfx-chip[data-lit]").count() == 0


def test_fits_without_shift(show: Any) -> None:
    fits(show, [BytePairMerges(((SONG + " ") * 4)[:300], merges=0)])


def test_python_side() -> None:
    one = BytePairMerges("ab ab b", merges=1)
    assert one.learned == [(97, 98)] and one.tokens == [256, 32, 256, 32, 98]
    assert one.next_pairs == [(32, 98, 1), (32, 256, 1)]
    assert BytePairMerges("ab").html() == BytePairMerges("ab").html()


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
        BytePairMerges(**wrong)
