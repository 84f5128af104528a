"""The tree of spans in a real browser: its question, its play, the message that is followed."""

from __future__ import annotations

from typing import Any

from tfviz.explorers import BinaryPartitioning


def test_the_number_is_asked_before_anything_is_told(show: Any) -> None:
    page = show(BinaryPartitioning())
    assert "29" not in page.locator(".tfviz-explorer").inner_text()
    page.get_by_role("textbox").fill("8")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("you said: 8. So it is").wait_for()
    page.get_by_text("16 of 16, each once").wait_for()


def test_levels_are_stepped_and_the_message_comes_through_a_span(show: Any) -> None:
    page = show(BinaryPartitioning(step=0))
    page.get_by_role("button", name="just show me").click()  # goes to the last step
    arrows = page.locator(".tfx-mark-arrow")
    page.get_by_text("“mat” is heard through a span of 4 words").wait_for()
    assert arrows.count() == 2
    for _ in range(3):
        page.get_by_role("button", name="← back").click()
    page.get_by_text("“man” has read 3 nodes, 3 of 16 words").wait_for()
    assert arrows.count() == 1  # up to the span; nobody has read it yet
    page.get_by_role("button", name="on →").click()
    page.get_by_text("“man” has read 5 nodes, 6 of 16 words").wait_for()


def test_python_side() -> None:
    numbers = BinaryPartitioning(token=15, causal=True, speaker=2).numbers()
    assert numbers["reads"] == [[15, 16, 0], [14, 15, 0], [12, 14, 1], [8, 12, 2], [0, 8, 3]]
    assert numbers["through"] == 4 and numbers["edges"][0] == 16 * 4 + 16 + 33 + 16
    assert BinaryPartitioning(token=3, speaker=9, causal=True).numbers()["through"] == -1
