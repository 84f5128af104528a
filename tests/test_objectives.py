"""The experiment on objectives: fair games, honest measures, and the form that is stored."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch

import tfviz_lab
from tfviz import data
from tfviz.basics.encoder_decoder import write
from tfviz_lab import runner
from tfviz_lab.basics import objectives as o

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # it finds them by their names


def batch() -> torch.Tensor:
    return data.windows(o.TRAINING, 4, o.LENGTH, torch.Generator().manual_seed(0))[0]


@pytest.mark.parametrize("name", list(o.OBJECTIVES))
def test_an_untrained_model_guesses_and_is_scored_as_often_as_stored(name: str) -> None:
    make, game = o.OBJECTIVES[name]
    torch.manual_seed(0)
    model = make()
    calls: list[int] = []
    real = o.scored_loss

    def counting(logits: Any, targets: torch.Tensor, scored: Any = None) -> torch.Tensor:
        text = targets < o.V if name == "T5" else torch.ones_like(targets, dtype=torch.bool)
        calls.append(int((text if scored is None else text & scored).sum()) // 4)
        return real(logits, targets, scored)

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(o, "scored_loss", counting)
        loss = game(model, batch(), torch.Generator().manual_seed(1), False)
    assert calls == [tfviz_lab.load("objectives")["scored"][name]]
    assert 0.8 * math.log(o.V) < loss < 2.5 * math.log(o.V)


def test_the_bag_is_the_best_guess_without_an_order() -> None:
    best = o.best_from_the_bag(4000)
    assert best[-1] == 1 and all(a < b for a, b in pairwise(best))
    assert abs(best[-2] - (1 / 8 + 7 / 16)) < 0.03  # two left: the same, or one of two


def test_models_without_positions_or_without_a_source_know_less() -> None:
    s = torch.randint(o.SYMBOLS, (2, o.ROW), generator=torch.Generator().manual_seed(2))
    p = torch.randperm(o.ROW)
    for name, kind in o.SOURCES.items():
        m = o.reverser(steps=0, kind=kind)
        same = torch.equal(write(m, s, 4, o.START), write(m, s[:, p], 4, o.START))
        with torch.no_grad():
            close = torch.allclose(m(s, s), m(s[:, p], s), atol=1e-4)
        assert close == (name != "source with positions") and (same or not close)
    with torch.no_grad():
        blank = o.reverser(steps=0, kind=o.Unread)
        assert torch.equal(blank(s, s), blank((s + 1) % o.SYMBOLS, s))


def test_it_is_collected_in_the_form_that_is_stored() -> None:
    stored = tfviz_lab.load("objectives")
    done = [
        {
            "run": {"name": t.run.name, "seed": t.run.seed},
            "result": stored[t.run.config["part"]][t.run.config["name"]][t.run.seed],
        }
        for t in reversed(runner.tasks(o))
    ]
    assert o.collect(done) == {k: v for k, v in stored.items() if k != "provenance"}
    assert "+" not in str(stored["provenance"]["commit"])


def test_what_the_lesson_says_of_the_stored_numbers() -> None:
    stored = tfviz_lab.load("objectives")

    def span(part: str, name: str, read: Any) -> tuple[float, float]:
        values = [read(run) for run in stored[part][name]]
        return min(values), max(values)

    last = {name: span("objective", name, lambda r: r["bits"][-1]) for name in o.OBJECTIVES}
    assert last["GPT"][1] < last["GPT, 15 % scored"][0] < last["T5"][0] < last["BERT"][0]
    at = stored["objective"]["GPT"][0]["at"]
    few = span("objective", "GPT, 15 % scored", lambda r: r["bits"][-1])
    assert span("objective", "GPT", lambda r: r["bits"][at.index(200)])[1] > few[0]
    assert span("objective", "GPT", lambda r: r["bits"][at.index(400)])[1] < few[0]
    assert span("mask", "no mask", lambda r: r["one_pass"])[1] < 0.25
    assert span("mask", "no mask", lambda r: r["one_by_one"])[0] > math.log2(o.V)
    for run in stored["mask"]["causal mask"]:
        assert abs(run["one_pass"] - run["one_by_one"]) < 1e-3
    assert span("reversal", "source with positions", lambda r: r["right"])[0] > 0.99
    for run in stored["reversal"]["source without positions"]:
        assert all(a < b + 0.05 for a, b in zip(run["by_place"], stored["bag"], strict=True))
