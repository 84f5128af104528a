"""Distance curves in a real browser: what is hidden until it was guessed, two dots, the sign."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tfviz.explorers import DistanceCurves
from tfviz.explorers.longer_context.distance_curves import NAMES


def test_what_the_clip_leaves_is_guessed_first(show: Any) -> None:
    page = show(DistanceCurves())
    weights = page.locator("svg[aria-label^='Weights']")
    assert "DA" not in str(weights.get_attribute("aria-label"))
    page.get_by_role("button", name="just show me").click()
    page.locator("svg[aria-label^='Weights 4 places back: DA']").wait_for()
    share = 100 * DistanceCurves().numbers()["far"][0]
    page.get_by_text(f"DA {share:.1f} %").first.wait_for()


def test_the_dots_choose_a_head_and_alpha(show: Any) -> None:
    page = show(DistanceCurves())
    page.get_by_role("button", name="just show me").click()
    page.locator('.tfx-handle[data-name="slope"]').press("ArrowUp")
    page.get_by_text("ALiBi's head 4 leaves").first.wait_for()
    page.locator('.tfx-handle[data-name="preference"]').press("ArrowUp")
    share = 100 * DistanceCurves(alpha=-0.9, head=4).numbers()["far"][0]
    page.get_by_text(f"DA {share:.1f} %").first.wait_for()
    page.locator("svg[aria-label^='Head 4']").press("ArrowDown")
    page.get_by_text("ALiBi's head 5 leaves").first.wait_for()


def test_a_dragged_dot_is_where_it_was_put(show: Any) -> None:
    page = show(DistanceCurves())
    page.get_by_role("button", name="just show me").click()
    for name, dy in (("slope", 60), ("preference", -60)):
        dot = page.locator(f'.tfx-handle[data-name="{name}"] circle').last
        box = dot.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y + dy, steps=4)
        page.mouse.up()
    found = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    first = DistanceCurves().numbers()
    assert found["scores"][1][12] < first["scores"][1][12] - 1  # steeper
    assert found["scores"][0][4] > first["scores"][0][4] + 1


def test_python_side() -> None:
    by_name = dict(zip(NAMES, DistanceCurves(content=0.0).numbers()["weights"], strict=True))
    flat = [1 / 64] * 64
    assert by_name["DA"] == pytest.approx(flat) and by_name["rotary"] == pytest.approx(flat)
    assert by_name["ALiBi"][0] > by_name["ALiBi"][1] > by_name["ALiBi"][63]
    below = dict(zip(NAMES, DistanceCurves(content=-4.0).numbers()["weights"], strict=True))
    assert below["DA"] == pytest.approx(flat)
    assert below["rotary"][0] < below["rotary"][8]  # what is disliked is disliked most near by
    assert below["ALiBi"] == pytest.approx(by_name["ALiBi"])
    ratio = [math.log(a / b) for a, b in zip(below["ALiBi"][:-1], below["ALiBi"][1:], strict=True)]
    assert ratio == pytest.approx([1 / 8] * 63)
