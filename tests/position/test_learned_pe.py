"""Learned positions: one-hot rows, the end of the table, a table in every layer, equivariance."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.models.blocks import Stack
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights, generate
from tfviz.patterns import full
from tfviz.position.learned_pe import (
    Learned,
    PositionedBlock,
    by_distance,
    cosines,
    one_hot_rows,
    positions_in_every_layer,
    table_rows,
)
from tfviz.position.sinusoidal_pe import similarity, sinusoids

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
VOCAB, D, H, N, LENGTH = 17, 16, 2, 3, 9


def tokens(length: int = LENGTH) -> Tensor:
    return torch.randint(VOCAB, (2, length))


def test_golden_rows() -> None:
    P = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    asked = torch.tensor([2, 0, 2])
    expected = torch.tensor([[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]])
    for rows in (one_hot_rows, table_rows):
        close(rows(asked, P), expected)
    close(Learned.beginning_as(P)(asked), expected)


def test_it_is_an_embedding_of_the_position() -> None:
    theirs = nn.Embedding(20, 6)
    ours = Learned.beginning_as(theirs.weight)
    i = torch.tensor([0, 7, 19])
    close(ours(i), theirs(i))
    grads = []
    for table, P in ((ours, ours.P), (theirs, theirs.weight)):
        table(i).square().sum().backward()
        assert P.grad is not None
        grads.append(P.grad)
    close(*grads)
    assert (grads[0].abs().sum(1) > 0).nonzero().flatten().tolist() == [0, 7, 19]


@pytest.mark.parametrize("place", [9, 100, -1])
def test_beyond_the_table_is_an_error_and_never_wraps(place: int) -> None:
    says = f"position {place} was asked, but P has rows 0 … 8 only"
    refused(says, Learned(9, 4), torch.tensor([0, place]))
    with pytest.raises((RuntimeError, ValueError)):
        one_hot_rows(torch.tensor([place]), torch.zeros(9, 4))


def test_a_model_says_so_too() -> None:
    refused("position 9 was asked", GPT(VOCAB, D, H, 1, positions=Learned(9, D)), tokens(10))


def test_beginning_as_copies() -> None:
    P = sinusoids(torch.arange(5), 4)
    table = Learned.beginning_as(P)
    table.P.data += 1
    close(P, sinusoids(torch.arange(5), 4))
    assert table.P.requires_grad and len(list(table.parameters())) == 1


def test_standard_deviation_and_size() -> None:
    assert Learned(400, 50, std=0.02).P.std().item() == pytest.approx(0.02, rel=0.03)
    assert Learned(3, 5, std=0.0).P.abs().max() == 0
    assert sum(x.numel() for x in Learned(64, 32).parameters()) == 64 * 32


# --- order ----------------------------------------------------------------------------------------


def test_a_table_of_zeros_leaves_a_model_blind_for_order() -> None:
    turn = torch.randperm(LENGTH)
    t = tokens()
    for std, blind in ((0.0, True), (1.0, False)):
        model = GPT(VOCAB, D, H, N, positions=Learned(LENGTH, D, std), pattern=full()).eval()
        same = torch.allclose(model(t[:, turn]), model(t)[:, turn], atol=1e-4)
        assert same is blind


# --- a table in every layer -----------------------------------------------------------------------


def per_layer() -> Any:
    model = GPT(VOCAB, D, H, N)
    positions_in_every_layer(model.stack, lambda: Learned(LENGTH, D, std=1.0))
    return model.eval()


def test_every_layer_adds_its_own_table_before_anything_else() -> None:
    model, t = per_layer(), tokens()
    X = model.embed(t)
    tables = [placed.positions.P for placed in model.stack.blocks]
    for placed, P in zip(model.stack.blocks, tables, strict=True):
        X = placed.block(X + P)
    close(model(t), model.stack.norm(X) @ model.embed.weight.T)
    assert len({P.data_ptr() for P in tables}) == N
    assert sum(P.numel() for P in tables) == N * LENGTH * D


def test_a_single_table_at_the_input_is_the_first_of_them() -> None:
    model, t = per_layer(), tokens()
    for placed in list(model.stack.blocks)[1:]:
        nn.init.zeros_(placed.positions.P)
    plain = GPT(
        VOCAB, D, H, N, positions=Learned.beginning_as(model.stack.blocks[0].positions.P)
    ).eval()
    plain.embed.weight = model.embed.weight
    plain.stack.norm = model.stack.norm
    plain.stack.blocks = nn.ModuleList(placed.block for placed in model.stack.blocks)
    close(model(t), plain(t))


@pytest.mark.parametrize("parts", [[1] * LENGTH, [4, 2, 3]])
def test_with_a_cache_the_rows_go_on(parts: list[int]) -> None:
    model, t = per_layer(), tokens()
    cache: dict = {}
    pieces = [model(part, cache) for part in t.split(parts, 1)]
    close(torch.cat(pieces, 1), model(t))


def test_the_table_of_every_layer_ends_too() -> None:
    model = per_layer()
    refused(f"position {LENGTH} was asked", model, tokens(LENGTH + 1))
    refused(f"position {LENGTH} was asked", generate, model, tokens(LENGTH), 2)
    assert generate(model, tokens(3), LENGTH - 3).shape == (2, LENGTH)


def test_attention_can_still_be_watched_and_gradients_reach_every_table() -> None:
    model = per_layer()
    assert len(attention_weights(model, tokens())) == N
    model(tokens()).square().sum().backward()
    assert all(placed.positions.P.grad.abs().sum() > 0 for placed in model.stack.blocks)


def test_it_wraps_any_stack() -> None:
    stack = Stack(2, D, H)
    positions_in_every_layer(stack, lambda: Learned(5, D))
    assert all(isinstance(block, PositionedBlock) for block in stack.blocks)
    assert stack(torch.randn(1, 5, D)).shape == (1, 5, D)


# --- looking at a table ---------------------------------------------------------------------------


def test_cosines_and_means_by_distance() -> None:
    P = torch.tensor([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    half = 2**-0.5
    close(
        cosines(P),
        torch.tensor([[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 0.0]]),
    )
    M = torch.arange(9.0).reshape(3, 3)
    close(by_distance(M), torch.tensor([4.0, 4.0, 4.0]))
    close(by_distance(torch.tensor([[1.0, 2.0], [4.0, 5.0]])), torch.tensor([3.0, 3.0]))


def test_the_cosines_of_sinusoids_are_their_similarity() -> None:
    P = sinusoids(torch.arange(20), 16)
    close(by_distance(cosines(P)), similarity(torch.arange(20), 16) / 8)


def test_bad_arguments_are_named() -> None:
    ranges(Learned, max_length=(3, 1), d=(4, 1), std=(1.0, 0.0))
    refused("P has shape (3,)", Learned.beginning_as, torch.zeros(3))
    refused("M has shape (2, 3)", by_distance, torch.zeros(2, 3))
    for i in (torch.tensor([True, False]), torch.tensor([1, 0]).byte()):
        of_no_kind(f"i is {i.dtype}; give whole numbers", table_rows, i, torch.randn(2, 3))
