"""Four quadrants in a real browser: the question, rows that are pressed, two softmaxes."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz.explorers import GlobalLocalAttention


def test_how_many_layers_is_said_first(show: Any) -> None:
    page = show(GlobalLocalAttention())
    page.get_by_role("button", name="2", exact=True).click()
    page.get_by_text("you said: 2; it is: 3.").wait_for()
    page.get_by_text("after 3 layers").wait_for()
    page.get_by_label("hard masks").uncheck()
    page.get_by_text("after 2 layers").wait_for()


def test_a_row_stays_with_its_word_and_two_softmaxes_sum_to_two(show: Any) -> None:
    page = show(GlobalLocalAttention(sentences=2, query=7))
    page.get_by_role("button", name="just show me").click()  # it sets three sentences
    page.locator('[data-key="sentences"]').press("ArrowLeft")
    page.get_by_text("word 3 (a) reads 2 tokens").wait_for()
    page.get_by_label("two softmaxes").check()
    page.get_by_text("2.00").wait_for()
    page.locator('[data-key="sentences"]').press("End")
    page.get_by_text("word 3 (b) reads").wait_for()


def test_python_side() -> None:
    hard, soft = GlobalLocalAttention().numbers(), GlobalLocalAttention(hard=False).numbers()
    assert (hard["hops"], soft["hops"]) == (3, 2)
    assert hard["pairs"] == [9, 12, 12, 54] and soft["pairs"] == [9, 36, 36, 54]
    two = GlobalLocalAttention(apart=True).numbers()
    assert two["to_globals"] == two["to_words"] == pytest.approx(1)
    assert hard["to_globals"] + hard["to_words"] == pytest.approx(1)
