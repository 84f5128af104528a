"""λ mixer, gate over a text, memory strip, in a real browser: their questions, play, handles."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz.explorers import KnnInterpolation, KnnMemory, SpalmGate
from tfviz.explorers.longer_context.knn_memory import strip


def test_the_best_lambda_of_a_larger_store_is_set_in_the_picture(show: Any) -> None:
    page = show(KnnInterpolation())
    page.locator(".tfx-handle[data-ghost]").press("Home")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said: λ = 0.00; it is: λ = 0.45").wait_for()
    page.locator('input[data-key="share"]').press("ArrowRight")
    page.get_by_text("their blend at λ = 0.50 gives").first.wait_for()


def test_contexts_are_played(show: Any) -> None:
    page = show(KnnInterpolation(place=0))
    page.get_by_role("button", name="just show me").click()
    page.locator('input[data-key="place"]').press("ArrowRight")
    page.get_by_text("Context 1:").first.wait_for()


def test_a_gate_that_is_pushed(show: Any) -> None:
    page = show(SpalmGate())
    page.locator(".tfx-handle[data-ghost]").press("End")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said: 3.00 nats; it is: 2.45 nats").wait_for()
    page.locator('input[data-key="push"]').press("End")
    page.get_by_text("The gate is 0.99").first.wait_for()


def test_where_an_old_fact_lies(show: Any) -> None:
    page = show(KnnMemory())
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("it is: 193 tokens back").wait_for()
    page.get_by_text("asks for a far fact").first.wait_for()


def test_python_side() -> None:
    sure = KnnInterpolation(k=1).numbers()
    assert sum(sure["near"]) == pytest.approx(1) or sum(sure["near"]) == 0
    found = [KnnInterpolation(size=n).numbers()["best"] for n in (0, 3)]
    assert found[0] == found[1] and found[0][0] < found[0][3]  # all four stores, whichever is shown
    gate = SpalmGate(push=6).numbers()
    assert min(gate["gates"]) > 0.9 and len(gate["gates"]) == 48
    assert gate["p"] == pytest.approx(gate["alone"], abs=0.1)
    one = strip()
    kinds = [row["kind"] for row in one["rows"]]
    assert all(
        (word[-1] == "?") == (kind > 0)
        for word, kind in zip(one["words"][256:], kinds, strict=True)
    )
    assert all(sum(ws) == pytest.approx(1) for ws in KnnMemory(k=3).numbers()["weights"])
