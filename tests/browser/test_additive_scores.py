"""Additive score against dot product in a real browser: the library's numbers, links, phone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_site import fits

from tfviz.basics.additive_attention import bahdanau_attention
from tfviz.explorers import AdditiveScores

CASE = AdditiveScores.examples[""]


@pytest.fixture
def scores(show: Any) -> Any:
    return show(AdditiveScores(**CASE))


def test_nothing_tells_before_the_answer(scores: Any) -> None:
    assert "additive" not in scores.locator(".tfx-marks").text_content()
    assert "additive" not in scores.locator(".tfx-status").inner_text()
    held = scores.locator(".tfx-table .tfx-number").get_by_text("?")
    assert held.count() == 4  # those of the additive score
    scores.get_by_role("button", name="just show me").click()
    scores.locator(".tfx-marks").get_by_text("additive").wait_for()
    assert not held.count()


def test_keys_and_limits(scores: Any) -> None:
    scores.get_by_role("button", name="just show me").click()
    scores.locator("input[data-key=size]").press("End")
    scores.get_by_text("the dot product 1.00 on “noir”").wait_for()
    scores.locator("input[data-key=sharpness]").press("Home")  # v = 0: the mean
    scores.get_by_text("the additive score puts 0.25").wait_for()
    dot = scores.get_by_role("slider", name="factor on v").and_(scores.locator(".tfx-handle"))
    dot.press("End")
    scores.get_by_text("the additive score puts 1.00").wait_for()


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [AdditiveScores(**CASE)])


def test_python_side() -> None:
    s, H, W, U, v = (
        torch.tensor(CASE[k], dtype=torch.float64) for k in ("s", "H", "W_a", "U_a", "v_a")
    )
    _, alpha = bahdanau_attention(5 * s[None], 5 * H, W, U, 2 * v)
    one = AdditiveScores(**CASE, size=5.0, sharpness=2.0)
    found = one.numbers()
    assert found["additive"] == pytest.approx(alpha[0].tolist())
    assert found["dot"] == pytest.approx(torch.softmax(25 * (H @ s) / 2**0.5, 0).tolist())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 3.0}, "size = 3.0"),
        ({"sharpness": -1.0}, "sharpness = -1.0"),
        ({"W_a": [[1.0, 2.0]]}, "W_a has 1 rows"),
        ({"H": [[1.0]] * 4}, "H has 4 rows"),
        ({"names": ["le"]}, "4 notes, 1 names"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AdditiveScores(**{**CASE, **wrong})
