"""Halting, a layer in a loop, a signal with twins: questions, play, handles."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz.explorers import HaltingSteps, LayerRecurrence, TimePositionSignal


def test_the_remainder_is_said_first(show: Any) -> None:
    page = show(HaltingSteps())
    page.get_by_role("textbox").fill("0.5")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("you said: 0.50; it is: 0.30").wait_for()
    page.get_by_text("After step 3, 1 of 6 words still runs.").wait_for()
    page.locator('input[data-key="step"]').press("End")
    page.get_by_text("0 of 6 words still run; the slowest took 5 steps").wait_for()
    page.locator('.tfx-handle[data-name="eps"]').press("End")
    page.locator('input[data-key="b"]').press("End")
    page.get_by_text("the slowest took 1 step").wait_for()
    page.get_by_text("6 of 6 states").wait_for()  # who has halted is not computed again


def test_another_bias_asks_for_the_share_and_stays(show: Any) -> None:
    page = show(HaltingSteps(b=-1.0))
    page.get_by_role("button", name="about half").click()
    page.get_by_text("So it is").wait_for()
    page.get_by_text("0 of 6 words still run; the slowest took 8 steps").wait_for()
    page.get_by_text("25 of 48 states").wait_for()
    assert page.locator('input[data-key="b"]').input_value() == "-1"


def test_codes_have_twins_until_the_base_differs(show: Any) -> None:
    page = show(TimePositionSignal())
    page.get_by_role("button", name="place 5 at step 3").click()
    page.get_by_text("So it is").wait_for()
    page.get_by_text("the nearest other code is place 5 at step 3, 0.00 away").wait_for()


def test_a_loop_goes_on_beyond_training(show: Any) -> None:
    page = show(LayerRecurrence())
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("After 6 steps,").wait_for()
    page.locator('input[data-key="t"]').press("Home")
    page.get_by_text("After 1 step,").wait_for()


def test_python_side() -> None:
    n = HaltingSteps().numbers()
    assert n["N"] == [2, 2, 3, 5, 3, 1] and n["p"][2][:4] == pytest.approx([0.3, 0.4, 0.3, 0])
    assert n["ran"] == [6, 5, 3, 1, 1, 0, 0, 0]
    assert sum(HaltingSteps(b=-1.0).numbers()["N"]) == 25
    assert HaltingSteps(b=8.0).numbers()["N"] == [1] * 6
    n = TimePositionSignal(t=5, i=3).numbers()
    assert n["far"][5][2] == pytest.approx(0) and n["far"][4][3] > 0.1
    assert TimePositionSignal(t=5, i=3, base=20.0).numbers()["far"][5][2] > 0.1
    n = LayerRecurrence(t=3).numbers()
    assert n["hits"] <= 5 and len(n["moved"]) == len(n["longer"]) == 8
