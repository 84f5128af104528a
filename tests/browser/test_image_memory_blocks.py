"""The image lens in a real browser: its question, its corners, the order that is played."""

from __future__ import annotations

from typing import Any

from browser.explorer_site import answer, drag

from tfviz.explorers import ImageMemoryBlocks

STATE = "(node, names) => names.map((name) => node.tfvizModel.get(name))"


def shown(page: Any, label: str) -> str:
    return str(page.locator(".tfx-readout", has_text=label).locator("dd").inner_text())


def test_how_far_up_the_memory_reaches_is_framed_first(show: Any) -> None:
    page = show(ImageMemoryBlocks())
    assert shown(page, "straight above, 1-D") == "up to row 5"
    assert shown(page, "straight above, 2-D") == "?"
    answer(page, "ArrowUp")
    page.get_by_text("you said: row 5; it is: row 3.").wait_for()
    page.get_by_text("the framed pixel looks 13 back").wait_for()
    assert shown(page, "straight above, 2-D") == "up to row 3"
    show(ImageMemoryBlocks(l_m=20))  # no longer as many in both
    assert page.get_by_role("button", name="just show me").count() == 0


def test_the_pixel_that_is_made_next_is_said_first(show: Any) -> None:
    page = show(ImageMemoryBlocks(place=19, in_order=True))
    page.get_by_text("Pixel 7, row 0, column 7").wait_for()
    answer(page, "ArrowDown", *["ArrowLeft"] * 3)
    page.get_by_text("✓ you said: row 1, column 4. So it is").wait_for()
    page.get_by_text("Pixel 12, row 1, column 4, is number 12 line by line").wait_for()
    show(ImageMemoryBlocks(place=63, in_order=True))  # the last: there is no next
    assert page.get_by_role("button", name="just show me").count() == 0


def test_corners_are_dragged_and_the_pixel_stays(show: Any) -> None:
    page = show(ImageMemoryBlocks(in_order=True))
    page.get_by_role("button", name="just show me").click()
    page.get_by_role("button", name="← back").click()
    host = page.locator(".tfviz-explorer")
    page.get_by_text("Pixel 53, row 6, column 5, is number 53 line by line").wait_for()
    drag(page.locator('.tfx-handle[data-name="block"]'), -80, -80)
    page.mouse.move(0, 0)  # a pixel under the mouse is looked at
    h_q, w_q = host.evaluate(STATE, ["h_q", "w_q"])
    assert h_q < 4 and w_q < 4
    page.get_by_text("Pixel 53, row 6, column 5, is number 53 line by line").wait_for()
    memory = page.locator('.tfx-handle[data-name="memory"]')
    memory.press("ArrowLeft")  # the handle goes to the left, away from the block
    assert host.evaluate(STATE, ["h_m", "w_m"]) == [1, 2]


def test_a_pixel_is_pressed_and_the_order_is_stepped(show: Any) -> None:
    page = show(ImageMemoryBlocks(in_order=True, place=2))
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("Pixel 3, row 0, column 3, is number 3 line by line").wait_for()
    page.get_by_role("button", name="on →").click()  # the next row of the block
    page.get_by_text("Pixel 8, row 1, column 0, is number 8 line by line and number 4").wait_for()
    page.locator(".tfx-grid svg").first.press("ArrowRight")
    page.get_by_text("Pixel 9, row 1, column 1").wait_for()


def test_python_side() -> None:
    numbers = ImageMemoryBlocks(place=4).numbers()
    assert numbers["order"][:6] == [0, 1, 2, 3, 8, 9] and numbers["pixel"] == 8
    assert numbers["one"] == list(range(9)) and numbers["two"] == [0, 1, 2, 3, 8]
    assert numbers["pairs"] == [832, 832]
