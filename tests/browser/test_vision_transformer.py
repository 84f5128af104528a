"""Drawing a digit in a real browser: by mouse, by keys, and not before the question is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser.explorer_laws import AT_REST

from tfviz.explorers import VisionTransformer


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def drawing(page: Any) -> list[int]:
    python = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.python()")
    pixels: list[int] = eval(python, {"VisionTransformer": lambda **named: named["drawing"]})
    return pixels


def canvas(page: Any) -> Any:
    return page.locator('svg[aria-label^="An image of 8 × 8"]')


def test_it_is_drawn_on_by_mouse_and_by_keys(show: Callable[..., Any]) -> None:
    page, first = show(VisionTransformer()), list(VisionTransformer().drawing)
    box = canvas(page).bounding_box()
    cell = (box["height"] - 11) / 8  # without heads: 3 above, 8 below

    def middle(i: int, j: int) -> tuple[float, float]:
        return box["x"] + 3 + (j + 0.5) * cell, box["y"] + 3 + (i + 0.5) * cell

    page.mouse.click(*middle(7, 0))
    page.get_by_text("You looked: it is: a 9").wait_for()
    assert sum(a != b for a, b in zip(drawing(page), first, strict=True)) == 1  # and still mine

    page.get_by_role("button", name="clear").click()
    box = canvas(page).bounding_box()
    page.mouse.move(*middle(1, 3))
    page.mouse.down()
    page.mouse.move(*middle(2, 3))
    page.mouse.move(*middle(3, 3))
    page.mouse.up()
    lit = {k for k, x in enumerate(drawing(page)) if x == 16}
    assert lit == {8 * i + 3 for i in (1, 2, 3)} and sum(drawing(page)) == 48
    canvas(page).focus()
    for key in ("ArrowDown", "Space", "ArrowRight", "Enter", "ArrowLeft", "Space"):
        page.keyboard.press(key)  # the last one rubs out what the first one drew
    lit = {k for k, x in enumerate(drawing(page)) if x == 16}
    assert lit == {11, 19, 27, 36}
    right = VisionTransformer(drawing=drawing(page)).numbers()
    assert numbers(page)["shares"] == pytest.approx(right["shares"], abs=1e-9)
    for found, wanted in zip(numbers(page)["weights"], right["weights"], strict=True):
        assert found == pytest.approx(wanted, abs=1e-9)


def test_a_link_with_another_drawing_is_refused_where_it_is_none(show: Callable[..., Any]) -> None:
    page = show(VisionTransformer())
    page.get_by_role("button", name="just show me").click()
    page.evaluate(AT_REST)
    right = numbers(page)
    for wrong in ([0] * 63, [17] + [0] * 63, [0.5] + [0] * 63):
        page.locator(".tfviz-explorer").evaluate(
            """(node, drawing) => {
              node.dispatchEvent(new CustomEvent("tfviz:show", { detail: { drawing } }));
              node.tfviz.paint();
            }""",
            wrong,
        )
        assert "drawing = " in page.locator(".tfx-said").inner_text()
    page.locator(".tfviz-explorer").evaluate(
        "(node) => node.dispatchEvent(new CustomEvent('tfviz:show', { detail: {} }))"
    )
    assert numbers(page)["shares"] != right["shares"]  # the first state, with the whole eight


@pytest.mark.parametrize(
    ("pixels", "says"),
    [
        ([0] * 63, "length of drawing = 63"),
        ([17] + [0] * 63, "pixel of drawing = 17"),
        ([-1] + [0] * 63, "pixel of drawing = -1"),
    ],
)
def test_a_drawing_of_another_size_is_refused(pixels: list[int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        VisionTransformer(drawing=pixels)
