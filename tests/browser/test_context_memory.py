"""Who hears the past, and the conveyor belt, in a real browser: their questions, play, handles."""

from __future__ import annotations

from typing import Any

import pytest
from browser.explorer_site import answer

from tfviz.explorers import CompressiveMemory, SegmentRecurrence


def test_the_first_word_that_is_heard_is_shown_first(show: Any) -> None:
    page = show(SegmentRecurrence())
    assert "token 21" not in page.locator(".tfx").inner_text()
    answer(page, *["ArrowLeft"] * 9)  # 28, where N · m would reach
    page.get_by_text("you said: token 28; it is: token 21.").wait_for()
    page.locator(".tfx-readout", has_text="how far back").get_by_text("19 tokens").wait_for()
    page.locator('[data-key="m"]').press("Home")
    page.get_by_text("within its own segment only").wait_for()


def test_keys_within_one_frame_are_all_counted(show: Any) -> None:
    page = show(SegmentRecurrence())
    page.locator(".tfx-handle[data-ghost]").evaluate(
        """(node) => {
          const key = { key: "ArrowLeft", bubbles: true, cancelable: true };
          for (let n = 0; n < 9; n++) node.dispatchEvent(new KeyboardEvent("keydown", key));
        }"""
    )
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said").wait_for()
    assert "You said: token 28;" in page.locator(".tfx").inner_text()


def test_a_message_goes_on_while_segments_are_read(show: Any) -> None:
    page = show(SegmentRecurrence())
    page.locator('input[data-key="read"]').press("Home")
    page.get_by_text("Token 9 has not been read yet").wait_for()
    for segments, far in ((2, 15), (3, 23), (4, 31), (5, 31)):
        page.locator('input[data-key="read"]').press("ArrowRight")
        said = f"{segments} segments read. Token 9 is heard in layer 3 up to token {far},"
        page.get_by_text(said).wait_for()


def test_rows_wait_until_a_group_is_full(show: Any) -> None:
    page = show(CompressiveMemory(step=4, m=8, c=8))
    page.get_by_role("button", name="just show me").click()  # twelve segments, three to one
    page.get_by_text("27 to 41 in 5 squeezed rows").wait_for()
    page.locator('[data-key="c"]').press("End")
    page.get_by_text("0 to 39 in 5 squeezed rows").wait_for()
    page.locator('[data-key="m_c"]').press("Home")
    page.get_by_text("12 segments read. Tokens 40 to 47 are kept as they were.").wait_for()


def test_python_side() -> None:
    found = SegmentRecurrence(p=10, m=4).numbers()
    assert (found["back"], found["product"]) == (20, 12)
    assert found["heard"] == [10, 15, 23, 31] and found["first"] == [20, 28, 36, 40]
    assert SegmentRecurrence(read=1).numbers()["heard"] == [-1] * 4
    full = CompressiveMemory(step=12).numbers()
    assert full["ranges"][3] == 24 and [a for a, _ in full["squeezed"]] == [24, 28, 32, 36]
    assert CompressiveMemory(step=12, f="max").numbers()["off"] > full["off"]
    assert CompressiveMemory().numbers()["off"] == pytest.approx(0)
