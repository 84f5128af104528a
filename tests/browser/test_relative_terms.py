"""Relative positions in a real browser: the library's numbers in all four views, keys, phone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from browser.explorer_site import answer

from tfviz.explorers import RelativeTerms
from tfviz.position.sinusoidal_pe import sinusoids

WORDS = ["the", "cat", "sleeps", "because", "it", "purrs"]
Q = [[0.0, 0.1], [0.2, 1.0], [2.0, 0.0], [0.3, 0.0], [3.0, 0.2], [2.0, 0.1]]
K = [[0.2, 0.0], [2.0, 0.2], [0.0, 2.0], [0.0, 0.0], [0.4, 0.0], [0.2, 2.0]]
W_r = torch.tensor([[0.8, -0.6], [1.6, 0.4], [1.0, 1.8], [0.4, 1.2]])
R = (sinusoids(torch.arange(5.0, -6, -1), 4, 100.0) @ W_r).tolist()
GIVEN: dict[str, Any] = {"Q": Q, "K": K, "R": R, "u": [0.6, 0.8], "v": [1.0, 0.3], "words": WORDS}


def explorer(view: str = "terms", **options: Any) -> RelativeTerms:
    return RelativeTerms(view, **(GIVEN | {"row": 4, "column": 1} | options))


def choose(page: Any, view: str) -> None:
    page.locator(".tfx-segments label", has_text=view).click()


def said(page: Any) -> str:
    return str(page.locator(".tfx-status").inner_text())


def test_of_one_term_only_the_first_row_is_drawn_before_the_answer(
    show: Callable[..., Any],
) -> None:
    page = show(explorer())
    assert "Query “it”, key “cat”: q·k 6.04, q·r −2.14, u·k ?, v·r −0.43." in said(page)
    answer(page, "ArrowRight")
    page.get_by_text("you said: cat; it is: purrs.").wait_for()
    page.get_by_text("Query “it”, key “purrs”: q·k 1.00, q·r 1.82, u·k 1.72").wait_for()
    page.locator(".tfx-formula [data-term=term2]").hover()
    assert page.locator(".tfx-some[data-lit]").count() == 1
    page.locator('input[data-key="term1"]').uncheck()
    page.get_by_text("q·r off").first.wait_for()
    state = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers().shown[4]")
    right = explorer(terms=[True, False, True, True]).numbers()["shown"][4]
    torch.testing.assert_close(torch.tensor(state), torch.tensor(right))


def test_the_last_key_that_shares_a_vector_is_framed_first(show: Callable[..., Any]) -> None:
    page = show(explorer("labels", row=7, column=2))
    assert "j − i = −5; the labels of this query are hidden" in said(page)
    page.locator('svg[aria-label^="Labels"] .tfx-handle[data-ghost]').click()  # the reader's ring
    answer(page, *["ArrowRight"] * 4)
    page.get_by_text("✓ you said: key 4. So it is").wait_for()
    page.get_by_text("Query 7, key 4: j − i = −3, label −3. 5 keys of this query").wait_for()


def test_under_which_key_the_shift_puts_it_is_said_first(show: Callable[..., Any]) -> None:
    page = show(explorer("shift", row=2, step=1))
    answer(page, "ArrowRight")
    page.get_by_text("you said: key 1; it is: key 2.").wait_for()
    page.get_by_text("distance 2 under key 0 and distance 0 under key 2").wait_for()
    assert page.locator(".tfviz-explorer").evaluate("(node) => node.tfvizModel.get('step')") == 3


def test_keys_speak_in_every_view(show: Callable[..., Any]) -> None:
    page = show(explorer("labels", row=7, column=2))
    page.get_by_role("button", name="just show me").click()
    matrix = page.locator('svg[aria-label^="Labels"]')
    matrix.press("ArrowLeft")
    matrix.press("ArrowDown")
    page.get_by_text("Query 8, key 3: j − i = −5, clipped to −3").wait_for()
    page.locator('input[data-key="causal"]').check()
    page.locator('input[data-key="column"]').press("End")
    page.get_by_text("the key comes after the query and is masked").wait_for()
    choose(page, "terms")
    page.get_by_text("Query “it”, key “cat”: q·k 6.04").wait_for()
    choose(page, "buckets")
    page.get_by_text("distance 22 is in bucket 13, with the distances 20 to 22").wait_for()


def test_the_stairs_are_drawn_first_and_the_dots_are_dragged(show: Callable[..., Any]) -> None:
    page = show(explorer("buckets", row=36, column=24))
    page.get_by_text("Query 36, key 24: distance 12.").wait_for()
    page.get_by_label("the curve that you expect").press("ArrowUp")
    page.get_by_role("button", name="that is my curve").click()
    page.get_by_text("bucket 13 holds 20 to 22.").wait_for()
    page.get_by_text("distance 22 is in bucket 13, with the distances 20 to 22").wait_for()
    page.get_by_role("slider", name="last bucket begins by").last.press("ArrowRight")
    assert page.locator(".tfviz-explorer").evaluate("(node) => node.tfvizModel.get('far')") == 48
    choose(page, "labels")
    page.get_by_role("slider", name="largest label").last.press("ArrowRight")
    assert page.locator(".tfviz-explorer").evaluate("(node) => node.tfvizModel.get('k')") == 4
    assert not page.locator(".tfx-handle[data-ghost]").count()


def test_a_question_stays_in_its_own_view(show: Callable[..., Any]) -> None:
    page = show(explorer("labels", row=7, column=2))
    assert page.locator(".tfx-handle[data-ghost]").count() == 1
    choose(page, "buckets")
    page.get_by_text("distance 22 is in bucket 13").wait_for()
    assert page.locator(".tfx-handle[data-ghost]").count() == 0
    assert not page.locator(".tfx-ask").is_visible()


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
    four = explorer().numbers()["shown"]
    q, k = torch.tensor(Q), torch.tensor(K)
    torch.testing.assert_close(torch.tensor(four[0]), q @ k.T)
    total = torch.tensor(four[:4]).sum(0) / math.sqrt(2)
    torch.testing.assert_close(torch.tensor(four[4]), total)
    done = RelativeTerms("shift", step=4).numbers()["shown"]
    for i in range(5):
        assert done[i][: i + 1] == [1 + 5 * i + i - j for j in range(i + 1)]
    assert "k=3" in repr(RelativeTerms())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"view": "score"}, "view = 'score'"),
        ({"terms": [True]}, "four times"),
        ({"words": ["one"]}, "number of words = 1"),
        ({"R": R[1:]}, "R has 10 rows of"),
        ({"u": [1.0]}, "u, v has 2 rows"),
        ({"row": 40}, "row = 40"),
        ({"k": 25}, "k = 25"),
        ({"buckets": 7}, "buckets = 7 is odd"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
