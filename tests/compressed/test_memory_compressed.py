"""The experiment with memory-compressed letters: its exam, its layers, what is scored by phase."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tfviz import data
from tfviz_lab import compare, protocol, trivial
from tfviz_lab.compressed import memory_compressed as experiment


def cores_of(layers: str) -> list[Any]:
    blocks: Any = experiment.gpt(layers).stack.blocks
    return [block.attend.core for block in blocks]


def test_each_letter_makes_its_layer_and_all_queries_are_turned() -> None:
    made = {layers: [core.__name__ for core in cores_of(layers)] for layers in ("FF", "LL", "LM")}
    assert made["FF"] == made["LL"] == ["Dense", "Dense"]
    assert made["LM"] == ["Dense", "MemoryCompressed"]
    assert all(isinstance(core, protocol.Turned) for core in cores_of("LM"))


@pytest.mark.parametrize("variant", experiment.VARIANTS)
def test_no_variant_sees_the_future(variant: str) -> None:
    task = experiment.EXAM.task(0)
    model = compare.model(experiment.VARIANTS[variant], task, 0)
    assert compare.seeing_ahead(model, task) == []


def test_a_compressed_layer_does_not_read_the_tokens_of_its_phase() -> None:
    """Beside its own, which goes on by the residual connection."""
    model = experiment.gpt("MM").eval()
    text = data.characters()[0][:13][None]
    for query, unread in ((12, 0), (10, 1), (11, 2)):
        assert query % experiment.C == unread
        changed = {}
        for place in range(query):
            other = text.clone()
            other[0, place] = (other[0, place] + 1) % 20
            apart = (model(other) - model(text))[0, query].abs().max()
            changed[place] = bool(apart > 1e-6)
        assert [place for place, x in changed.items() if not x] == [*range(query - unread, query)]


def test_phases_are_shares_of_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = trivial.held_out_rows(experiment.LENGTH, experiment.SCORED)
    monkeypatch.setattr(trivial, "held_out_rows", lambda length, scored: rows[::100])
    model = experiment.gpt("LM").eval()
    by_phase = experiment.by_phase(model)
    whole = protocol.whole_text(model, experiment.LENGTH, experiment.SCORED)
    places = torch.arange(experiment.LENGTH - experiment.SCORED, experiment.LENGTH)
    counts = torch.bincount(places % experiment.C)
    together = (torch.tensor(by_phase) * counts).sum() / counts.sum()
    assert together.item() == pytest.approx(whole, abs=2e-4)


def test_lines_are_counted_where_models_are_scored() -> None:
    lines = experiment.EXAM.trivial(0)
    assert lines == trivial.ngrams(5, experiment.LENGTH, experiment.SCORED)
    rows = trivial.held_out_rows(experiment.LENGTH, experiment.SCORED)
    assert rows.shape[1] == experiment.LENGTH + 1
    assert list(lines.values()) == sorted(lines.values(), reverse=True)
