"""The rotary clocks in a real browser: the library's numbers, keys, pointer, phone, themes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_site import drag

from tfviz.explorers import RotaryClocks
from tfviz.position.rope import rotate

ALIKE = [1.0, 0.0] * 4
BACK = rotate(torch.tensor([ALIKE], dtype=torch.float64), torch.tensor([-5]))[0].tolist()
RANDOM = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).double().tolist()
PAIRS = {"looks 5 back": (BACK, ALIKE), "random": (RANDOM[0], RANDOM[1])}


def explorer(**options: Any) -> RotaryClocks:
    return RotaryClocks(**({"pairs": PAIRS, "trained": 16} | options))


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(explorer())


def expect(page: Any, **state: Any) -> None:
    ours = explorer(**state).numbers()
    theirs = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    assert theirs["score"] == pytest.approx(ours["score"], abs=1e-9)
    assert theirs["product"] == pytest.approx(ours["product"], abs=1e-9)
    wanted = torch.tensor(ours["arrows"])
    torch.testing.assert_close(torch.tensor(theirs["arrows"]), wanted, atol=1e-9, rtol=0)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_which_clock_turns_most_is_said_before_the_query_moves(lab: Any) -> None:
    lab.get_by_role("button", name="clock 0").click()
    lab.get_by_text("✓ you said: clock 0").wait_for()
    expect(lab, i=13)
    slide(lab, "shift", 700)
    lab.get_by_text("Query at 713, key at 709: distance 4, score").wait_for()
    expect(lab, i=13, shift=700)


def test_the_dot_is_the_distance(lab: Any) -> None:
    dot = lab.locator(".tfx-handle")
    drag(dot, 60)
    host = lab.locator(".tfviz-explorer")
    i, j = (host.evaluate(f"(node) => node.tfvizModel.get('{key}')") for key in "ij")
    assert j == 9 and i > 20
    expect(lab, i=i, j=j)
    dot.press("ArrowLeft")
    expect(lab, i=i - 1, j=j)
    lab.locator('select[data-key="pair"]').select_option("random")
    expect(lab, i=i - 1, j=j, pair="random")


def test_python_side() -> None:
    one = explorer().numbers()
    assert explorer(i=5, j=0).numbers()["score"] == pytest.approx(4.0)
    assert explorer(shift=900).numbers()["product"] == pytest.approx(one["score"])
    assert explorer(pair="random").pair == "random"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pairs": {}}, "pairs is empty"),
        ({"pairs": {"a": ([1.0], [1.0])}}, r"widths \[1\]; give 2 rows of one width, 2, 4, 6"),
        ({"pairs": {"a": ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0])}}, r"widths \[2, 4\]"),
        ({"pair": "nobody"}, "pair = 'nobody'"),
        ({"i": 65}, "i = 65"),
        ({"shift": -1}, "shift = -1"),
        ({"base": 0.5}, "base = 0.5"),
        ({"interpolate": 9.0}, "interpolate = 9"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
