"""Reverse copy: what its notes know, and that the stored result says what the chapter says."""

from __future__ import annotations

import torch

import tfviz_lab
from tfviz_lab.basics import reverse_copy

close = torch.testing.assert_close


def test_a_note_on_a_single_symbol_does_not_know_its_neighbours() -> None:
    source = torch.tensor([[0, 1, 2, 3]])
    changed = torch.tensor([[0, 1, 2, 7]])
    alone, recurrent = (reverse_copy.Writer(neighbours=n) for n in (False, True))
    target = torch.zeros_like(source)  # what is fed back is the same for both
    for model, same in ((alone, True), (recurrent, False)):
        seen: list[torch.Tensor] = []
        model.attention.register_forward_hook(lambda m, args, out, seen=seen: seen.append(args[1]))
        model(source, target)
        model(changed, target)
        assert torch.equal(seen[0][:, 0], seen[4][:, 0]) is same


def test_stored_result_says_what_the_chapter_says() -> None:
    result = tfviz_lab.load("reverse_copy")
    fixed, attends = (
        torch.tensor(result["accuracy"][name]).mean(0)
        for name in ("one fixed vector", "additive attention")
    )
    assert fixed[0] > 0.97 and fixed[-1] < 0.55 and attends.min() > 0.93
    mean = {
        name: {key: sum(run[key] for run in runs) / len(runs) for key in ("now", "before")}
        for name, runs in result["looked_at"].items()
    }
    assert mean["context alone"]["now"] > 0.7
    assert mean["state and context"]["before"] > mean["state and context"]["now"]
    assert mean["state and context, notes on single symbols"]["now"] > 0.7
    assert result["provenance"]["steps"] <= 200
    for runs in result["looked_at"].values():
        for run in runs:
            close(torch.tensor(run["map"]).sum(-1), torch.ones(8), atol=1e-3, rtol=0)
