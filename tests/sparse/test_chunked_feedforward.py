"""Chunked feed-forward: the same numbers and gradients, a smaller largest tensor."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from laws import Case, agree_with_gradients
from refusals import ranges
from torch import Tensor, nn

from tfviz.measure import largest_storage, saved_bytes
from tfviz.sparse.chunked_feedforward import chunked

D, L = 8, 48
X = torch.randn(2, L, D, dtype=torch.float64)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)).double()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("chunks", [1, 4, 7, L])
def test_chunks_change_nothing(chunks: int, again: bool) -> None:
    made, leaf = network(), X.clone().requires_grad_()
    wanted, got = made(leaf), chunked(made, leaf, chunks, again)
    agree_with_gradients(got, wanted, [leaf, *made.parameters()])


@torch.no_grad()
def test_the_largest_tensor_shrinks_to_the_input() -> None:
    made = network()
    found = {c: largest_storage(chunked, made, X, c) for c in (1, 2, 4, 16)}
    assert found[1] == 4 * X.nbytes
    assert found[2] == 2 * X.nbytes
    assert found[4] == found[16] == X.nbytes  # the result itself


def test_training_keeps_the_hidden_layer_unless_it_is_made_again() -> None:
    made = network()
    kept = {c: saved_bytes(chunked, made, X, c) for c in (1, 4)}
    assert kept[4] == kept[1] > 8 * X.nbytes
    assert saved_bytes(lambda X: chunked(made, X, 4, again=True), X) <= X.nbytes


def test_attention_is_no_function_of_each_row() -> None:
    def attend(X: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(X, X, X)

    assert not torch.allclose(chunked(attend, X, 4), attend(X))


def test_bad_input_is_named() -> None:
    ranges(partial(chunked, torch.exp, X), chunks=(2, 1, L))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "the last rows lost where chunks are uneven",
            "X.tensor_split(chunks, -2)",
            "X.split(X.shape[-2] // chunks, -2)[:chunks]",
        ),
    ],
)
