"""Maps of a trained encoder: they are the model's own, and what replaces them leaves it alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tfviz.compressed.clustered_attention import Clustered
from tfviz.compressed.linformer import mean_pooling
from tfviz.cores import Dense
from tfviz.models.use import attention_weights
from tfviz_lab import compare, protocol
from tfviz_lab.compressed import linformer, linformer_digits, prototypes, trained_maps
from tfviz_lab.protocol import HIDDEN, WHICH_DIGIT

TEXT = trained_maps.held_out()[:2, :20]


@pytest.fixture
def model() -> Any:
    return trained_maps.encoder(1, 2)[0]


def test_the_encoder_is_the_plain_one_of_the_protocol_and_repeats(model: Any) -> None:
    again, _ = protocol.trained(lambda: {}, HIDDEN, 1, 2, trained_maps.RATE)
    for mine, theirs in zip(model.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=0, rtol=0)
    assert HIDDEN.task(0).steps == trained_maps.STEPS and trained_maps.RATE in HIDDEN.rates


@torch.no_grad()
def test_maps_are_those_that_the_model_applies(model: Any) -> None:
    ours = [trained_maps.weights(Q, K) for Q, K in trained_maps.heads_of(model, TEXT)]
    theirs = [*attention_weights(model, TEXT).values()]
    for mine, A in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.float(), A, atol=1e-5, rtol=1e-4)


def test_a_head_that_looks_at_its_left_neighbour_is_near_and_of_full_rank() -> None:
    A = torch.eye(16, dtype=torch.float64).roll(1, 0)[None, None]
    (head,) = trained_maps.by_head(A)
    assert head["near"] == pytest.approx(15 / 16)  # the first one looks at the last
    assert head["first"] == pytest.approx(1 / 16)
    assert head["rank 8 misses"] == pytest.approx(0.5**0.5, abs=1e-4)
    even = torch.full((1, 1, 16, 16), 1 / 16, dtype=torch.float64)
    assert trained_maps.by_head(even)[0]["rank 8 misses"] == pytest.approx(0, abs=1e-4)


@torch.no_grad()
def test_a_replaced_core_is_turned_and_the_model_stays_as_it_is(model: Any) -> None:
    before = model(TEXT)
    same = prototypes.replaced(model, Dense)
    torch.testing.assert_close(same(TEXT), before)
    one_row = prototypes.replaced(model, lambda: Clustered(1, 0))
    assert not torch.allclose(one_row(TEXT), before)
    torch.testing.assert_close(model(TEXT), before, atol=0, rtol=0)


def test_pooling_does_not_learn_and_one_matrix_is_all_there_is() -> None:
    def cores(variant: str) -> list[Any]:
        made = compare.model(linformer_digits.VARIANTS[variant], WHICH_DIGIT.task(0), 0)
        return [block.attend.core for block in made.stack.blocks]

    for core in cores("mean pooling"):
        assert not any(x.requires_grad for x in core.parameters())
        assert core.E[0].equal(mean_pooling(4, 16)) and core.F[0].equal(mean_pooling(4, 16))
    first, second = cores("one matrix")
    assert first.E is first.F is second.E is second.F
    first, second = cores("k = 4")
    assert len({id(x) for core in (first, second) for x in (core.E, core.F)}) == 4


def test_linformer_and_its_rival_have_the_same_positions() -> None:
    made = [
        compare.model(linformer.VARIANTS[name], HIDDEN.task(0), 0)
        for name in ("full attention, own positions", "Linformer")
    ]
    tables = [one.embed.positions.P.detach() for one in made]
    assert tables[0].shape == tables[1].shape == (64, 64)
    assert tables[0].std() == pytest.approx(tables[1].std().item(), rel=0.1)
