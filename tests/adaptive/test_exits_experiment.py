"""Exits: what is trained and stored, and what may be said of it."""

from __future__ import annotations

import pytest
import torch

import tfviz_lab
from tfviz.adaptive.calm_confidence import token_flops
from tfviz_lab.adaptive import exits, guarantee


def test_a_few_steps_repeat_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STEPS": 2, "HEAD_STEPS": 1, "ROWS": 2, "WORLD": 8}.items():
        monkeypatch.setattr(exits, name, value)
    monkeypatch.setattr(guarantee, "DRAWS", 2)
    found = exits.measure({"trained": "aligned"}, 1)
    assert found == exits.measure({"trained": "aligned"}, 1)
    last = found["early"]["classifiers"]["fixed"][-1]
    assert last["flops"] == last["agree"] == 1 and last["depth"] == exits.N
    assert exits.trained("mixed", 0).embed.weight.isfinite().all()


def test_the_share_of_flops_is_counted_behind_the_prompt() -> None:
    n = torch.full((1, exits.L), 2)
    n[:, : exits.PROMPT] = exits.N
    zeros = torch.zeros_like(n)
    found = exits.point(None, n, zeros, zeros, zeros, 1)  # type: ignore[arg-type]
    sizes, vocab = range(exits.PROMPT + 1, exits.L + 1), len(exits.data.characters()[1])
    low, full = (sum(token_flops(e, 4, 64, vocab, t) for t in sizes) for e in (2, 4))
    assert found["flops"] == pytest.approx(low / full, abs=1e-4)
    assert found["depth"] == 2 and found["right"] == 1


def test_the_promise_of_a_world_without_losses() -> None:
    world = {"lost": ["0" * 50] * 20, "depth": [1.0] * 20}
    safe = guarantee.promise(world, 4, "exact", 0.1, 50, 0)
    assert safe == {"broken": 0.0, "depth": 1.0, "none safe": 0.0}
    assert guarantee.promise(world, 4, "Hoeffding", 0.1, 50, 0)["none safe"] == 1


def test_stored_exits_have_all_of_it() -> None:
    stored = tfviz_lab.load("exits")
    assert stored["blocks"] == exits.N
    assert list(stored["depths"]) == list(exits.TRAINED)
    for runs in [*stored["depths"].values(), stored["early"], stored["worlds"]]:
        assert len(runs) == 3
    for one in stored["early"]:
        for name, row in one["measures"].items():
            assert len(row["points"]) == len(row["exits"]) == len(stored["levels"][name])
            flops = [point["flops"] for point in row["points"]]
            assert flops == sorted(flops) and row["points"][-1]["agree"] > 0.99
        agrees = one["classifiers"]["first that agrees"][0]
        assert agrees["depth"] < 2 and agrees["agree"] > 0.95
    for world in stored["worlds"]:
        assert all(len(row) == exits.WORLD for row in world["lost"])
        tested = [row for row in world["promises"] if row["test"] != "none"]
        assert max(row["broken"] for row in tested) <= guarantee.EPSILON
        assert max(row["broken"] for row in world["promises"]) > 0.3
