"""Hops: the task's answers, what is measured, and what is stored."""

from __future__ import annotations

from typing import Any

import torch

import tfviz_lab
from tfviz.longer_context.ut_act import pondered
from tfviz_lab.longer_context import ponder_time as hops


def test_answers_are_hops() -> None:
    pi, asked, answers = hops.rows(40, torch.Generator().manual_seed(0))
    assert pi.sort(1).values.equal(torch.arange(hops.NODES).expand(40, -1))
    assert set(asked.unique().tolist()) == {1, 2, 3}
    for row in range(40):
        for start in range(hops.NODES):
            at = start
            for _ in range(int(asked[row, start])):
                at = int(pi[row, at])
            assert at == answers[row, start]


def test_a_few_steps_repeat_exactly_and_compute_the_same_as_compact() -> None:
    config = {"tau": 0.01, "steps": 2}
    assert hops.measure(config, 1) == hops.measure(config, 1)
    model: Any = hops.made(0, hops.MOST, halts=True)
    pi, asked, _ = hops.rows(8, torch.Generator().manual_seed(0))
    one, N = model(pi, asked), pondered(model).N
    model.stack.compact = True
    torch.testing.assert_close(model(pi, asked), one, atol=1e-4, rtol=1e-4)
    assert pondered(model).N.equal(N) and N.min() < N.max()


def test_stored_result_has_all_of_it() -> None:
    found = tfviz_lab.load("ponder_time")
    assert [x["config"]["tau"] for x in found["ponder"]] == list(hops.TAUS)
    kinds = [(x["config"]["T"], x["config"]["signal of steps"]) for x in found["fixed"]]
    assert kinds == list(hops.FIXED)
    for x in found["ponder"]:
        N = torch.tensor(x["N"])
        assert N.shape == (3, 3) and N.min() >= 1 and N.max() <= hops.MOST
    for x in found["fixed"]:
        assert torch.tensor(x["longer"]).shape == (3, hops.LONGEST)
        assert {len(row["moved"]) for row in x["row"]} == {hops.LONGEST}
        T = x["config"]["T"]
        for longer, right in zip(x["longer"], x["right"], strict=True):
            assert abs(longer[T - 1] - sum(right) / 3) < 0.02  # hops are drawn alike
