"""Strided: golden masks, counts, two hops both ways, definition = mask = sparse, and mutants."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from golden import GOLDEN, drawn
from laws import Case, Function, agree_with_gradients, over
from refusals import ranges, refused
from three import qkv, three
from torch import Tensor

from tfviz import attention, patterns
from tfviz.sparse import sparse_transformer_strided as strided

WINDOW, COLUMN = drawn(GOLDEN["sliding_window(lookback=2)"]), drawn(GOLDEN["column(stride=2)"])


def compose(later: Tensor, earlier: Tensor) -> Tensor:
    """M⁽²⁾M⁽¹⁾ with and/or; the layer that comes first stands on the right."""
    return later.int() @ earlier.int() > 0


def test_factors_are_the_hand_typed_masks() -> None:
    window, column = strided.factors(stride=2)
    assert torch.equal(window.mask(6), WINDOW)
    assert torch.equal(column.mask(6), COLUMN)


@pytest.mark.parametrize("mutant", ["window one short", "window one long", "i and j swapped"])
def test_golden_masks_reject_mutants(mutant: str) -> None:
    wrong = {
        "window one short": patterns.sliding_window(lookback=1).mask(6),
        "window one long": patterns.sliding_window(lookback=3).mask(6),
        "i and j swapped": strided.factors(stride=2)[0].mask(6).T,
    }[mutant]
    assert not torch.equal(wrong, WINDOW)


@pytest.mark.parametrize(("L", "stride"), [(1, 1), (6, 2), (16, 4), (64, 8), (50, 7), (9, 20)])
def test_key_counts_follow_the_closed_forms(L: int, stride: int) -> None:
    window, column = (factor.mask(L) for factor in strided.factors(stride))
    i = torch.arange(L)
    assert torch.equal(window.sum(-1), i.clamp(max=stride) + 1)
    assert torch.equal(column.sum(-1), i // stride + 1)
    assert strided.pairs(L, stride) == window.sum() + column.sum()
    assert strided.longest_row(L, stride) == (window.sum(-1) + column.sum(-1)).max()
    overlap = i.numel() + max(0, L - stride)  # i itself, and i − ℓ: the factors are not disjoint
    assert (window & column).sum() == overlap if stride > 1 else True


@pytest.mark.parametrize(("L", "stride"), [(6, 2), (64, 8), (50, 7), (33, 1), (20, 30)])
def test_two_hops_reach_everyone_in_either_order_without_residual(L: int, stride: int) -> None:
    window, column = (factor.mask(L) for factor in strided.factors(stride))
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    assert torch.equal(compose(column, window), causal)
    assert torch.equal(compose(window, column), causal)


def test_one_factor_alone_does_not_reach_everyone() -> None:
    window, column = (factor.mask(64) for factor in strided.factors(8))
    causal = torch.ones(64, 64, dtype=torch.bool).tril()
    assert not torch.equal(compose(window, window), causal)
    assert not torch.equal(compose(column, column), causal)


def test_a_window_too_short_breaks_the_proof() -> None:
    """The remainders are 0 … ℓ − 1: lookback ℓ − 1 suffices, ℓ − 2 does not."""
    causal = torch.ones(64, 64, dtype=torch.bool).tril()
    column = patterns.column(stride=8).mask(64)
    assert torch.equal(compose(column, patterns.sliding_window(lookback=7).mask(64)), causal)
    assert not torch.equal(compose(column, patterns.sliding_window(lookback=6).mask(64)), causal)


@pytest.mark.parametrize(("L", "stride"), [(40, 6), (17, 4)])
def test_relay_is_where_the_proof_says(L: int, stride: int) -> None:
    window, column = (factor.key_sets(L) for factor in strided.factors(stride))
    for i in range(L):
        for j in range(i + 1):
            m = strided.relay(i, j, stride)
            assert j in window[m] and m in column[i]
    assert strided.relay(63, 5, 8) == 7


@pytest.mark.parametrize(("base", "p"), [(4, 2), (4, 3), (3, 3), (2, 5)])
def test_radix_factors_reach_every_distance_below_the_power(base: int, p: int) -> None:
    L = base**p
    factors = strided.radix_factors(base, p)
    assert len(factors) == p
    assert all(factor.mask(L).sum(-1).max() == base for factor in factors)
    after = patterns.reach(list(factors), L, layers=p, residual=False).by_layer[-1]
    assert torch.equal(after, torch.ones(L, L, dtype=torch.bool).tril())
    assert patterns.reach(list(factors), L + 1, layers=p).unreachable == 1  # distance ℓᵖ itself
    assert patterns.reach(list(factors), L, layers=p - 1).unreachable > 0


def test_attend_is_softmax_over_the_listed_keys_only() -> None:
    Q, K, V = torch.randn(3, 2, 4, dtype=torch.float64)
    out = strided.attend(Q, K, V, [[1], []])
    torch.testing.assert_close(out[0], V[1])
    assert torch.equal(out[1], torch.zeros(4, dtype=torch.float64))  # no key: zeros, not NaN
    weights = torch.softmax(Q[0] @ K.T / 2, -1)  # √d_k = 2
    torch.testing.assert_close(strided.attend(Q, K, V, [[0, 1], [0]])[0], weights @ V)


@pytest.mark.parametrize(("L", "stride"), [(1, 3), (12, 3), (37, 6), (20, 1)])
def test_definition_mask_and_sparse_agree_with_gradients(L: int, stride: int) -> None:
    leaves = Q, K, V = qkv(L, h=2)
    pattern = patterns.strided(stride=stride)
    dense = attention(*leaves, pattern)[0]
    sparse = strided.strided_attention(*leaves, stride)
    agree_with_gradients(sparse, dense, leaves)
    loop = strided.attend(Q[1, 0], K[1, 0], V[1, 0], pattern.key_sets(L))
    torch.testing.assert_close(sparse[1, 0], loop)


def test_stride_as_long_as_the_sequence_is_full_attention() -> None:
    assert torch.equal(strided.factors(11)[0].mask(12), patterns.causal().mask(12))


def test_best_stride_is_the_minimum_and_close_to_the_root() -> None:
    for L in (10, 64, 100, 1000, 1024):
        rows = {s: strided.longest_row(L, s) for s in range(1, L + 1)}
        best = strided.best_stride(L)
        assert rows[best] == min(rows.values())
        assert all(rows[s] > rows[best] for s in range(1, best))  # the smallest of equals
        assert 2 * L**0.5 + 1 <= rows[best] + 1e-9 <= 2 * L**0.5 + 3


def test_bad_input_is_named() -> None:
    ranges(strided.factors, stride=(4, 1))
    ranges(strided.radix_factors, base=(3, 2), p=(2, 1))
    refused("j = 5 is out of range", strided.relay, 4, 5, 2)
    refused("one S_i per row", strided.attend, *three(torch.randn(3, 4, 2)), [[0]])


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    functions={
        "strided": Function(
            partial(strided.strided_attention, stride=4),
            over(patterns.strided(stride=4)),
            length=150,
        )
    },
)
