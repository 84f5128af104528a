"""The experiment on tables of positions: its parts, the probe, the stored result."""

from __future__ import annotations

import pytest
import torch
from refusals import refused
from torch import nn

import tfviz_lab
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoids
from tfviz_lab.position import position_tables as tables
from tfviz_lab.position.position_tables import WanderingStart, look_back, probe, right_at

close = torch.testing.assert_close


def test_the_probe_reads_places_off_a_line() -> None:
    known, asked = torch.tensor([0, 2, 5, 9]), torch.tensor([1, 4, 20])
    P = torch.stack([torch.arange(30.0) * 3 + 1, torch.zeros(30)], 1)
    close(probe(P, known, asked), torch.zeros(3, 3, dtype=torch.float64), atol=1e-9, rtol=0)
    nothing = probe(torch.zeros(30, 2), known, asked)  # it answers 0 for every pair
    close(nothing, -(asked[:, None] - asked).double())


def test_the_probe_finds_places_between_in_sinusoids_and_not_in_noise() -> None:
    known, asked = torch.arange(0, 64, 2), torch.arange(1, 63, 2)
    assert probe(sinusoids(torch.arange(64), 64), known, asked).abs().max() < 1e-2
    assert probe(torch.randn(64, 64), known, asked).abs().mean() > 5


def test_a_wandering_start_wanders_in_training_only() -> None:
    places = WanderingStart(Sinusoidal(8), 50)
    i = torch.arange(4)
    firsts = {
        int((places(i)[0] - sinusoids(torch.arange(51), 8)).norm(dim=1).argmin()) for _ in range(60)
    }
    assert len(firsts) > 20 and min(firsts) >= 0 and max(firsts) <= 50
    close(places.eval()(i), sinusoids(i, 8))
    refused("farthest = -1", WanderingStart, Sinusoidal(8), -1)


class Oracle(nn.Module):
    """Right at every place up to `until`; the first place has no answer."""

    def __init__(self, back: int, until: int) -> None:
        super().__init__()
        self.back, self.until = back, until

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        answers = x.roll(self.back, 1)
        answers[:, self.until :] = (answers[:, self.until :] + 1) % tables.SYMBOLS
        return 50 * nn.functional.one_hot(answers, tables.SYMBOLS).float()


def test_loss_and_score_of_looking_back() -> None:
    rng = torch.Generator().manual_seed(0)
    assert look_back(3)(Oracle(3, 99), rng, 0) < 1e-6
    assert look_back(3)(Oracle(2, 99), rng, 0) > 10
    assert right_at(Oracle(5, 40)) == [1.0] * 35 + [0.0] * 88


def test_a_short_run_has_the_form_of_the_stored_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tables.STEPS, "text", 20)
    monkeypatch.setitem(tables.STEPS, "look back", 10)
    made = {}
    for task, places in (
        ("text", "a table in every layer"),
        ("look back", "sinusoids, any start"),
    ):
        config = {"task": task, "places": places, "steps": tables.STEPS[task]}
        made[task] = tables.measure(config, 0)
        assert len(made[task]["losses"]) == 1
    assert len(made["text"]["by_distance"]) == tables.LAYERS
    assert len(made["look back"]["right"]) == tables.LONGER - tables.BACK


def test_the_stored_result_is_whole() -> None:
    stored = tfviz_lab.load("position_tables")
    C = torch.tensor(stored["cosines"])
    assert C.shape == (tables.LENGTH, tables.LENGTH)
    close(C, C.T)
    close(C.diagonal(), torch.ones(tables.LENGTH))
    for name, kinds in (("text", tables.TEXT), ("look_back", tables.BACKWARDS)):
        assert set(stored[name]["losses"]) == set(kinds)
        for seeds in stored[name]["losses"].values():
            assert len(seeds) == len(tables.SEEDS)
    assert not stored["provenance"]["commit"].endswith("+")
