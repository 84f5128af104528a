"""Chapter 20's explorers in a real browser: asked first, then centroids, steps and edges move."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz.explorers import PredictedEdges, RoutingCentroids, SinkhornSteps

STATE = "(node, names) => names.map((name) => node.tfvizModel.get(name))"


def test_what_is_asked_is_not_told_before_and_then_played(show: Any) -> None:
    page = show(RoutingCentroids())
    host = page.locator(".tfviz-explorer")
    assert page.get_by_text("of the attention.").count() == 0
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("97.2 % of the attention").wait_for()
    page.get_by_role("button", name="← back").click()
    assert host.evaluate(STATE, ["step", "k"]) == [11, 4]


def test_a_block_gives_way_when_columns_count(show: Any) -> None:
    page = show(SinkhornSteps())
    page.get_by_role("button", name="block 3", exact=True).click()
    page.get_by_text("you said: block 3; it is: block 4.").wait_for()
    page.get_by_text("Block 2 gets most of block 4.").wait_for()


def test_reward_makes_an_edge_frequent(show: Any) -> None:
    page = show(PredictedEdges())
    page.get_by_role("button", name="just show me").click()
    page.get_by_text(
        "After 120 steps of training: 8 edges drawn, 8 of them from 1 to 4."
    ).wait_for()


def test_python_side() -> None:
    begin, end = (RoutingCentroids(step=step).numbers() for step in (0, 12))
    assert set(begin["queries"]) == {2, 3} and set(end["queries"]) == {0, 1, 2, 3}
    assert begin["mass"] < 0.4 and end["mass"] > 0.9 and end["pairs"] == 0.25
    first, last = (SinkhornSteps(step=step).numbers() for step in (1, 20))
    assert first["most"] == [0, 0, 3, 3, 2] and last["most"] == [1, 0, 4, 3, 2]
    assert last["columns"] == pytest.approx([1.0] * 5) and max(first["columns"]) > 1.8
    drawn = PredictedEdges(learnt=8, named=15).numbers()
    assert len(drawn["edges"]) == 7 and drawn["chance"] > 0.9
    assert drawn["next"] == PredictedEdges.data()["second"][8][1]
