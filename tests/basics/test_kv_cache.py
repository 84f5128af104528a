"""The cache: the same outputs as recomputing, one row a step."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from refusals import refused
from torch import Tensor

from tfviz import attention, patterns
from tfviz.basics.kv_cache import Rows, attend_next

close = torch.testing.assert_close
Step = Callable[..., tuple[Tensor, Rows]]


def tensors(L: int = 6, d: int = 5, d_k: int = 3, d_v: int = 4) -> tuple[Tensor, ...]:
    return tuple(
        torch.randn(*s, dtype=torch.float64) for s in ((L, d), (d, d_k), (d, d_k), (d, d_v))
    )


def run(step: Step, X: Tensor, *W: Tensor) -> tuple[Tensor, list[int]]:
    """All outputs, and how many rows were kept after each step."""
    kept, out, rows = None, [], []
    for x in X:
        z, kept = step(x, *W, kept)
        out.append(z)
        rows.append(len(kept[0]))
    return torch.stack(out), rows


def is_causal_attention(step: Step) -> None:
    X, *W = tensors()
    Q, K, V = (X @ w for w in W)
    out, rows = run(step, X, *W)
    close(out, attention(Q, K, V, patterns.causal())[0])
    assert rows == [1, 2, 3, 4, 5, 6]


def test_token_by_token_is_causal_attention() -> None:
    is_causal_attention(attend_next)


def forgets_the_new(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    _, new = attend_next(x, W_q, W_k, W_v, kept)
    return attention((x @ W_q)[None], *(kept or new))[0][0], new


def puts_it_in_front(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    z, (K, V) = attend_next(x, W_q, W_k, W_v, kept)
    return z, (K.flip(0), V)


def keeps_the_input(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    return attend_next(x, W_q, W_k, W_v, None)


@pytest.mark.parametrize("wrong", [forgets_the_new, puts_it_in_front, keeps_the_input])
def test_wrong_caches_are_noticed(wrong: Step) -> None:
    with pytest.raises(AssertionError):
        is_causal_attention(wrong)


def test_golden_numbers() -> None:
    # keys 0 and 1, query 1: the second token weighs the values 0 and 6 as 1 : e
    one = torch.ones(1, 1, dtype=torch.float64)
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    _, kept = attend_next(x[0], one, one, one)
    z, (K, V) = attend_next(x[1], one, one, 6 * one, kept)
    close(K, torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    close(z[0], torch.tensor(6 * math.e / (1 + math.e), dtype=torch.float64))
    close(V, torch.tensor([[0.0], [6.0]], dtype=torch.float64))


def test_what_does_not_fit_is_refused() -> None:
    X, *W = tensors()
    kept = torch.zeros(1, 2), torch.zeros(1, 4)
    refused("kept has shapes (1, 2), (1, 4)", attend_next, X[0], *W, kept)
    refused("give the row of one token", attend_next, X, *W)  # rows would look ahead
