"""The soft dictionary in a real browser: the library's numbers, keys, pointer, phone, themes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.basics.soft_dictionary import lookup
from tfviz.explorers import SoftDictionary

K = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
V = [[0.9, 0.35], [0.7, 0.9], [0.25, 0.55], [0.1, 0.2]]
NAMES = ["red", "yellow", "green", "blue"]


def explorer(**options: Any) -> SoftDictionary:
    return SoftDictionary(**({"query": [0.8, 0.6], "K": K, "V": V, "names": NAMES} | options))


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(explorer())


def shown(page: Any) -> tuple[list[float], list[float]]:
    """(weights, answer) as the page computes them."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    cells = page.locator(".sd-weight")
    weights = [float(cells.nth(n).get_attribute("data-weight")) for n in range(cells.count())]
    return weights, json.loads(page.locator(".tfx").get_attribute("data-z"))


def expect(page: Any, query: list[float], beta: float) -> None:
    q, keys, values = (torch.tensor(x, dtype=torch.float64) for x in (query, K, V))
    z, a = lookup(q, keys, values, beta=beta)
    weights, answer = shown(page)
    torch.testing.assert_close(torch.tensor(weights, dtype=torch.float64), a)
    torch.testing.assert_close(torch.tensor(answer, dtype=torch.float64), z)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_the_page_shows_the_numbers_of_the_library(lab: Any) -> None:
    expect(lab, [0.8, 0.6], 2.0)
    for beta in (0.0, 0.7, 20.0):
        slide(lab, "beta", beta)
        expect(lab, [0.8, 0.6], beta)
    lab.get_by_text("β = 20.0: red answers with").wait_for()


def test_keyboard_turns_and_stretches_the_query(lab: Any) -> None:
    lab.locator(".sd-plane").focus()
    lab.keyboard.press("ArrowLeft")  # counter-clockwise by 3°: towards yellow
    q = torch.tensor([0.8, 0.6], dtype=torch.float64)
    angle = torch.tensor(3.0, dtype=torch.float64).deg2rad()
    turn = torch.stack(
        [torch.stack([angle.cos(), angle.sin()]), torch.stack([-angle.sin(), angle.cos()])]
    )
    expect(lab, [round(x, 4) for x in (q @ turn).tolist()], 2.0)
    lab.keyboard.press("Home")  # a query of length 0 asks nothing
    expect(lab, [0.0, 0.0], 2.0)
    lab.keyboard.press("End")  # … and still knows its direction
    weights, _ = shown(lab)
    assert weights[0] > weights[1] > weights[3] > weights[2]


def test_twice_the_length_is_twice_beta(lab: Any) -> None:
    slide(lab, "length", 2.0)
    long = shown(lab)
    slide(lab, "length", 1.0)
    slide(lab, "beta", 4.0)
    assert shown(lab)[0] == pytest.approx(long[0], abs=1e-3)


def test_dragging_moves_the_query(lab: Any) -> None:
    box = lab.locator(".sd-plane").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    lab.mouse.move(x, y)
    lab.mouse.down()
    lab.mouse.move(x, y + box["height"] / 4, steps=3)  # straight down: blue
    lab.mouse.up()
    weights, _ = shown(lab)
    assert max(range(4), key=lambda j: weights[j]) == NAMES.index("blue")
    lab.get_by_role("button", name="reset").click()
    expect(lab, [0.8, 0.6], 2.0)


def test_link_restores_the_state(lab: Any, tmp_path: Path) -> None:
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    slide(lab, "beta", 7.5)
    lab.get_by_role("button", name="copy link").click()
    lab.wait_for_function("window.copied")
    link = lab.evaluate("window.copied")
    lab.goto("about:blank")
    lab.goto(link)
    lab.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(lab, [0.8, 0.6], 7.5)
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    code = lab.evaluate("window.copied")
    again = eval(code, {"SoftDictionary": SoftDictionary})
    assert again.beta == 7.5 and again.state == explorer(beta=7.5).state


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [explorer()])


def test_python_side() -> None:
    one = explorer(beta=1.0)
    z, a = lookup(*(torch.tensor(x, dtype=torch.float64) for x in (one.query, K, V)), beta=1.0)
    assert one.weights == a.tolist() and one.answer == z.tolist()
    assert explorer().html() == explorer().html()  # nothing of this run in the page


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"query": [3.0, 0.0]}, "at most 2"),
        ({"query": [1.0]}, "two numbers"),
        ({"beta": -1.0}, "beta = -1"),
        ({"K": [[1.0, 2.0, 3.0]]}, "K = "),
        ({"names": ["red"]}, "1 names"),
        ({"axes": ["warm"]}, "axes"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
