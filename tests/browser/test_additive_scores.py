"""Additive score against dot product in a real browser: the library's numbers, links, phone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.basics.additive_attention import additive_attention
from tfviz.explorers import AdditiveScores

CASE: dict[str, Any] = {
    "s": [0.6, 0.9],
    "H": [[0.2, -0.3], [1.0, 0.1], [0.3, 1.1], [-0.8, 0.6]],
    "W_a": [[1.0, -0.4, 0.3], [0.5, 1.2, -0.8]],
    "U_a": [[0.7, -0.2, 0.4], [-0.3, 1.0, 0.9]],
    "v_a": [0.9, 1.1, 0.7],
    "names": ["le", "chat", "noir", "dort"],
}


@pytest.fixture
def scores(show: Any) -> Any:
    return show(AdditiveScores(**CASE))


def expect(page: Any, size: float, sharpness: float) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    one = AdditiveScores(**CASE, size=size, sharpness=sharpness)
    for kind, weights in (("additive", one.additive), ("dot", one.dot)):
        shown = page.locator(f".ad-{kind} .ad-weight").evaluate_all(
            "nodes => nodes.map((n) => Number(n.dataset.weight))"
        )
        assert shown == pytest.approx(weights, abs=1e-9), kind


def test_numbers_keys_and_limits(scores: Any) -> None:
    expect(scores, 1.0, 1.0)
    size = scores.get_by_label("length of all states")
    size.press("End")
    expect(scores, 100.0, 1.0)
    scores.get_by_text("the dot product 1.00 on “noir”").wait_for()
    scores.get_by_label("v, times").press("Home")  # v = 0: the mean
    expect(scores, 100.0, 0.0)
    first = scores.locator(".ad-additive .ad-weight").first
    assert float(first.get_attribute("data-weight")) == 0.25
    scores.get_by_role("button", name="reset").click()
    expect(scores, 1.0, 1.0)


def test_copied_python_makes_the_same_explorer(scores: Any) -> None:
    scores.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    scores.get_by_label("v, times").press("End")
    scores.get_by_role("button", name="copy Python").click()
    scores.wait_for_function("window.copied")
    again = eval(scores.evaluate("window.copied"), {"AdditiveScores": AdditiveScores})
    assert again.state == AdditiveScores(**CASE, sharpness=10.0).state


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [AdditiveScores(**CASE)])


def test_python_side() -> None:
    s, H, W, U, v = (
        torch.tensor(CASE[k], dtype=torch.float64) for k in ("s", "H", "W_a", "U_a", "v_a")
    )
    _, alpha = additive_attention(5 * s[None], 5 * H, W, U, 2 * v)
    one = AdditiveScores(**CASE, size=5.0, sharpness=2.0)
    assert one.additive == pytest.approx(alpha[0].tolist())
    assert one.dot == pytest.approx(torch.softmax(25 * (H @ s) / 2**0.5, 0).tolist())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 3.0}, "size = 3.0"),
        ({"sharpness": -1.0}, "sharpness = -1.0"),
        ({"W_a": [[1.0, 2.0]]}, "W_a = "),
        ({"H": [[1.0]] * 4}, "H = "),
        ({"names": ["le"]}, "4 notes, 1 names"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AdditiveScores(**(CASE | wrong))
