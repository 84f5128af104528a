"""The soft dictionary in a real browser: what is asked, the pointer, the keyboard."""

from __future__ import annotations

import math
from typing import Any

import pytest
from browser.explorer_site import drag

from tfviz.explorers import SoftDictionary

NAMES = SoftDictionary.examples[""]["names"]
QUERY = "(node) => node.tfvizModel.get('query')"


def explorer(**options: Any) -> Any:
    return SoftDictionary.example(**options)


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    shown = show(explorer(beta=3.0))
    shown.get_by_role("button", name="just show me").click()
    shown.get_by_role("button", name="reset").click()
    return shown


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_beta_is_shut_until_it_was_said_what_zero_gives(show: Any) -> None:
    page = show(explorer())
    drag(page.locator(".tfx-handle[data-ghost]"), 115, 50)
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("it is: (0.49, 0.50)").wait_for()
    assert numbers(page)["weights"] == [0.25] * 4


def test_keyboard_moves_turns_and_stretches_the_query(lab: Any) -> None:
    host = lab.locator(".tfviz-explorer")
    lab.get_by_role("slider", name="query", exact=True).press("ArrowLeft")
    assert host.evaluate(QUERY) == [0.75, 0.6]
    lab.get_by_label("direction of the query").press("ArrowRight")  # by 1° from where it looks
    angle = math.degrees(math.atan2(*reversed(host.evaluate(QUERY))))
    assert angle == pytest.approx(math.degrees(math.atan2(0.6, 0.75)), abs=1.5) and angle > 39
    lab.get_by_label("length of the query").press("Home")  # a query of length 0 asks nothing
    assert host.evaluate(QUERY) == [0, 0]
    lab.get_by_label("length of the query").press("End")  # … and still knows its direction
    weights = numbers(lab)["weights"]
    assert weights[0] > weights[1] > weights[3] > weights[2]


def test_twice_the_length_is_twice_beta(lab: Any) -> None:
    slide(lab, "length", 2.0)
    long = numbers(lab)["weights"]
    slide(lab, "length", 1.0)
    slide(lab, "beta", 6.0)
    assert numbers(lab)["weights"] == pytest.approx(long, abs=1e-3)


def test_dragging_moves_the_query(lab: Any) -> None:
    dot = lab.get_by_role("slider", name="query", exact=True)
    box, board = (
        dot.locator("circle").last.bounding_box(),
        lab.locator(".tfx-plane svg").first.bounding_box(),
    )
    here, middle = ([b["x"] + b["width"] / 2, b["y"] + b["height"] / 2] for b in (box, board))
    drag(dot, middle[0] - here[0], middle[1] + board["height"] / 4 - here[1])  # straight down
    weights = numbers(lab)["weights"]
    assert max(range(4), key=lambda j: weights[j]) == NAMES.index("south")
    lab.get_by_role("button", name="reset").click()
    assert lab.locator(".tfviz-explorer").evaluate(QUERY) == [0.8, 0.6]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"query": [3.0, 0.0]}, "at most 2"),
        ({"query": [1.0]}, "two numbers"),
        ({"beta": -1.0}, "beta = -1"),
        ({"K": [[1.0, 2.0, 3.0]]}, "K has 1 rows"),
        ({"names": ["red"]}, "1 names"),
        ({"axes": ["warm"]}, "axes"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
