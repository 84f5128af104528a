"""Relative positions in a real browser: the library's numbers in all four views, keys, phone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfviz.explorers import RelativeTerms
from tfviz.explorers.relative_terms import BUCKETED, STEPS
from tfviz.position.sinusoidal_pe import sinusoids

WORDS = ["the", "cat", "sleeps", "because", "it", "purrs"]
Q = [[0.0, 0.1], [0.2, 1.0], [2.0, 0.0], [0.3, 0.0], [3.0, 0.2], [2.0, 0.1]]
K = [[0.2, 0.0], [2.0, 0.2], [0.0, 2.0], [0.0, 0.0], [0.4, 0.0], [0.2, 2.0]]
W_r = torch.tensor([[0.8, -0.6], [1.6, 0.4], [1.0, 1.8], [0.4, 1.2]])
R = (sinusoids(torch.arange(5.0, -6, -1), 4, 100.0) @ W_r).tolist()
GIVEN: dict[str, Any] = {"Q": Q, "K": K, "R": R, "u": [0.6, 0.8], "v": [1.0, 0.3], "words": WORDS}


def explorer(view: str = "terms", **options: Any) -> RelativeTerms:
    return RelativeTerms(view, **(GIVEN | {"row": 4, "column": 1} | options))


def numbers(page: Any) -> Any:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return json.loads(page.locator(".tfx").get_attribute("data-shown"))


def slide(page: Any, key: str, value: int) -> None:
    page.evaluate(
        """([key, value]) => {
        const input = document.querySelector(`input[data-key="${key}"]`);
        input.value = value; input.dispatchEvent(new Event("input", {bubbles: true})); }""",
        [key, value],
    )


def choose(page: Any, view: str) -> None:
    page.locator(".tfx-segments label", has_text=view).click()


def test_every_view_shows_the_numbers_of_the_library(show: Callable[..., Any]) -> None:
    page = show(explorer())
    for terms in ([True] * 4, [True, True, False, False], [False] * 4):
        for n, on in enumerate(terms):
            page.locator(f'input[data-key="term{n}"]').set_checked(on)
        yours, ours = numbers(page), explorer(terms=terms).shown
        torch.testing.assert_close(torch.tensor(yours), torch.tensor(ours))
    choose(page, "labels")
    for L, k in ((12, 3), (12, 0), (5, 24), (24, 7)):
        slide(page, "L", L)
        slide(page, "k", k)
        assert numbers(page) == RelativeTerms("labels", L=L, k=k).shown
    choose(page, "shift")
    for step in range(STEPS + 1):
        slide(page, "step", step)
        assert numbers(page) == RelativeTerms("shift", step=step).shown
    choose(page, "buckets")
    fars = [20, 24, 32, 48, 64, 96, 128]
    for buckets, at, future in ((16, 2, False), (32, 6, False), (8, 4, True), (4, 0, False)):
        slide(page, "buckets", buckets)
        slide(page, "far", at)
        page.locator('input[data-key="future"]').set_checked(future)
        other = RelativeTerms("buckets", buckets=buckets, far=fars[at], future=future)
        assert numbers(page) == other.shown
    assert len(numbers(page)) == BUCKETED
    choose(page, "labels")
    page.get_by_role("button", name="reset").click()
    torch.testing.assert_close(torch.tensor(numbers(page)), torch.tensor(explorer().shown))


def test_keys_speak_and_python_is_copied(show: Callable[..., Any]) -> None:
    page = show(explorer("labels", row=7, column=2))
    status = page.locator(".tfx-status")
    assert "j − i = −5, clipped to −3. 5 keys of this query share" in status.inner_text()
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.get_by_text("Query 8, key 3: j − i = −5").wait_for()
    page.locator('input[data-key="causal"]').check()
    page.locator("canvas").focus()
    page.keyboard.press("End")
    page.get_by_text("after the query, not allowed").wait_for()
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"RelativeTerms": RelativeTerms})
    wanted = explorer("labels", row=8, column=11, causal=True)
    assert again.state == wanted.state
    choose(page, "terms")
    text = "“it” asks “cat”: q·k 6.04"
    page.get_by_text(text).wait_for()
    choose(page, "buckets")
    page.get_by_text("distance 22 is in bucket 13, with the distances 20 to 22").wait_for()


@pytest.mark.parametrize("view", ["labels", "terms", "shift", "buckets"])
def test_fits_a_phone_and_a_desk(show: Callable[..., Any], view: str) -> None:
    for width in (390, 1280):
        page = show(explorer(view), width=width)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner, outer = (
            page.locator(s).bounding_box()["height"] for s in (".tfx", ".tfviz-explorer")
        )
        assert inner <= outer + 1, "higher than the room the page keeps for it"
        assert inner > outer - 96, "much room is kept for nothing"


def test_python_side() -> None:
    four = explorer().shown
    q, k = torch.tensor(Q), torch.tensor(K)
    torch.testing.assert_close(torch.tensor(four[0]), q @ k.T)
    total = torch.tensor(four[:4]).sum(0) / math.sqrt(2)
    torch.testing.assert_close(torch.tensor(four[4]), total)
    done = RelativeTerms("shift", step=4).shown
    for i in range(5):
        assert done[i][: i + 1] == [[i, i - j] for j in range(i + 1)]
    assert "k=3" in repr(RelativeTerms())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"view": "score"}, "view = 'score'"),
        ({"terms": [True]}, "four times"),
        ({"words": ["one"]}, "number of words = 1"),
        ({"R": R[1:]}, "R has 10 rows of"),
        ({"u": [1.0]}, "u, v has 2 rows"),
        ({"row": 6}, "row = 6"),
        ({"k": 25}, "k = 25"),
        ({"buckets": 7}, "buckets = 7 is odd"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
