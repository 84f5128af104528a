"""Exits in a real browser: questions, a curve that is dragged, a walk that is played."""

from __future__ import annotations

from typing import Any

import torch

from tfviz.explorers import ConfidenceExits, ExitClassifiers, LearnThenTest, TrainedExits


def test_the_threshold_follows_its_curve(show: Any) -> None:
    page = show(ConfidenceExits())
    page.locator(".tfx-handle[data-ghost]").press("ArrowDown")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said: 97 %; it is: 94 %").wait_for()
    page.locator('.tfx-handle[data-name="level"]').press("End")
    page.get_by_text("λ = 1: the prediction of letter 22").wait_for()


def test_the_walk_stops_by_itself(show: Any) -> None:
    page = show(LearnThenTest())
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("Testing stops after").wait_for()
    page.locator('[data-key="step"]').first.press("Home")
    page.get_by_text("0 tests made").wait_for()


def test_a_high_price_lets_all_leave_at_once(show: Any) -> None:
    page = show(ExitClassifiers())
    page.get_by_role("button", name="just show me").click()
    page.locator('.tfx-handle[data-name="price"]').press("End")
    page.get_by_text("At γ = 0.3, the oracle").wait_for()


def test_python_side() -> None:
    n = ExitClassifiers(price=0.3, beta=10000.0).numbers()
    assert set(n["exits"]) == {n["whole"]} or len(set(n["exits"])) <= 2
    assert n["means"] == sorted(n["means"], reverse=True)
    assert TrainedExits(exit=4).numbers()["alike"] == 64
    early = ConfidenceExits(level=20).numbers()
    assert set(early["exits"]) == {4} and early["same"] == 48
    safe = LearnThenTest().numbers()
    p = torch.tensor(safe["p"])
    assert (p[: safe["safe"]] <= 0.1).all() and p[safe["safe"]] > 0.1
    assert sum(safe["tally"]) == 100 and safe["broken"] <= 10
