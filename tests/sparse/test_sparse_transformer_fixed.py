"""Fixed: golden masks, counts, the order that works and the one that does not, empty rows."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from golden import GOLDEN, drawn
from laws import Case, Function, agree_with_gradients, over
from refusals import ranges, refused
from three import qkv

from tfviz import attention, patterns
from tfviz.sparse import sparse_transformer_fixed as fixed
from tfviz.sparse import sparse_transformer_strided as strided

OWN, ONE = drawn(GOLDEN["own_block(block=3)"]), drawn(GOLDEN["summary_columns(block=3, summary=1)"])
SUMMARY_3_2 = """
    . . . . . .
    . 1 . . . .
    . 1 1 . . .
    . 1 1 . . .
    . 1 1 . 1 .
    . 1 1 . 1 1
"""


def test_factors_are_the_hand_typed_masks() -> None:
    own, one = fixed.factors(block=3, summary=1)
    assert torch.equal(own.mask(6), OWN)
    assert torch.equal(one.mask(6), ONE)
    assert torch.equal(fixed.factors(block=3, summary=2)[1].mask(6), drawn(SUMMARY_3_2))


def test_golden_masks_reject_mutants() -> None:
    own, one = (factor.mask(6) for factor in fixed.factors(block=3))
    assert not torch.equal(own.T, OWN)
    assert not torch.equal(one.T, ONE)
    i, j = torch.arange(6)[:, None], torch.arange(6)[None, :]
    paper = (j <= i) & (j % 3 >= 3 - 1 - 1)  # {ℓ − c − 1, …}: the paper's one column too many
    assert not torch.equal(paper, ONE)


@pytest.mark.parametrize(("L", "block", "c"), [(6, 3, 1), (64, 8, 2), (50, 7, 3), (5, 8, 1)])
def test_key_counts_follow_the_closed_forms(L: int, block: int, c: int) -> None:
    own, summary = (factor.mask(L) for factor in fixed.factors(block, c))
    i = torch.arange(L)
    assert torch.equal(own.sum(-1), i % block + 1)
    inside = (i % block - (block - c) + 1).clamp(min=0)
    assert torch.equal(summary.sum(-1), c * (i // block) + inside)


@pytest.mark.parametrize(("L", "block", "c"), [(16, 4, 1), (64, 8, 1), (50, 7, 3), (30, 5, 4)])
def test_only_one_order_reaches_everyone_and_it_needs_the_residual(
    L: int, block: int, c: int
) -> None:
    own, summary = fixed.factors(block, c)
    assert patterns.reach([own, summary], L, layers=2).unreachable == 0
    bare = patterns.reach([own, summary], L, layers=2, residual=False).by_layer[-1]
    assert (~bare).tril().any() and not bare.triu(1).any()
    lost = patterns.reach([summary, own], L, layers=2).unreachable
    assert lost == fixed.lost_when_swapped(L, block, c) > 0
    assert patterns.reach([summary, own], L, layers=3).unreachable == 0  # a third layer repairs it


def test_lost_pairs_are_the_ordinary_tokens_of_earlier_blocks() -> None:
    own, summary = fixed.factors(block=4)
    hops = patterns.reach([summary, own], 16, layers=2).hops
    assert hops[4, 0] == -1 and hops[15, 9] == -1
    assert hops[4, 3] > 0 and hops[15, 13] > 0
    assert fixed.lost_when_swapped(16, 4) == 4 * 3 * (4 * 3 // 2)  # ℓ(ℓ − c) per pair of blocks


def test_adding_the_query_to_the_summaries_replaces_the_residual() -> None:
    own, summary = (factor.mask(30) for factor in fixed.factors(block=5))
    with_self = (summary | torch.eye(30, dtype=torch.bool)).int()
    assert torch.equal(with_self @ own.int() > 0, torch.ones(30, 30, dtype=torch.bool).tril())


@pytest.mark.parametrize(("L", "block"), [(16, 4), (23, 5)])
def test_relay_is_where_the_proof_says(L: int, block: int) -> None:
    own, summary = (factor.key_sets(L) for factor in fixed.factors(block))
    for i in range(L):
        for j in range(i + 1):
            m = fixed.relay(i, j, block)
            if m is None:
                assert j in own[i]
            else:
                assert j in own[m] and m in summary[i]


def test_rows_before_the_first_summary_are_empty_and_give_zeros() -> None:
    summary = fixed.factors(block=5, summary=2)[1]
    empty = [i for i, keys in enumerate(summary.key_sets(17)) if not keys]
    assert empty == list(fixed.empty_rows(block=5, summary=2)) == [0, 1, 2]
    Q, K, V = torch.randn(3, 17, 4).unbind()
    leaf = Q.requires_grad_()
    out = attention(leaf, K, V, summary)[0]
    assert torch.equal(out[:3], torch.zeros(3, 4))
    out.sum().backward()
    assert leaf.grad is not None and leaf.grad.isfinite().all()


def test_all_columns_as_summaries_is_full_causal_attention() -> None:
    assert torch.equal(fixed.factors(6, 6)[1].mask(20), patterns.causal().mask(20))


@pytest.mark.parametrize(("L", "block", "c"), [(1, 4, 1), (24, 4, 1), (37, 6, 2), (10, 16, 3)])
def test_definition_mask_and_sparse_agree_with_gradients(L: int, block: int, c: int) -> None:
    leaves = Q, K, V = qkv(L, h=2)
    pattern = patterns.fixed(block=block, summary=c)
    dense = attention(*leaves, pattern)[0]
    sparse = fixed.fixed_attention(*leaves, block, c)
    agree_with_gradients(sparse, dense, leaves)
    loop = strided.attend(Q[1, 0], K[1, 0], V[1, 0], pattern.key_sets(L))
    torch.testing.assert_close(sparse[1, 0], loop)


def test_bad_input_is_named() -> None:
    ranges(fixed.factors, block=(4, 1), summary=(1, 1, 4))
    ranges(fixed.lost_when_swapped, L=(16, 1), block=(8, 1), summary=(1, 1, 8))
    refused("j = 3 is out of range", fixed.relay, 2, 3, 4)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    functions={
        "fixed": Function(
            partial(fixed.fixed_attention, block=4),
            over(patterns.fixed(block=4, summary=1)),
            length=150,
        )
    },
)
