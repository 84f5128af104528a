"""Blockwise: the mask and the block products are the same thing, for any permutation."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, permutations

import pytest
import torch
from golden import drawn
from laws import Case, Function, agree_with_gradients, over
from refusals import ranges, refused
from three import qkv

from tfviz import attention, patterns
from tfviz.sparse import blockwise_attention as blockwise

GOLDEN = """
    . . 1 1 . .
    . . 1 1 . .
    . . . . 1 1
    . . . . 1 1
    1 1 . . . .
    1 1 . . . .
"""


def test_mask_is_the_hand_typed_one() -> None:
    wanted = drawn(GOLDEN)
    assert torch.equal(patterns.blockwise(permutation=(1, 2, 0)).mask(6), wanted)
    # i and j swapped is the inverse permutation, which differs for n >= 3
    assert not torch.equal(patterns.blockwise(permutation=(2, 0, 1)).mask(6), wanted)


@pytest.mark.parametrize("order", [(0,), *permutations(range(3))])
def test_mask_equals_blocks_for_every_permutation_with_gradients(order: tuple[int, ...]) -> None:
    leaves = Q, K, V = qkv(12, h=2)
    heads = [order, tuple(range(len(order)))]
    dense = attention(*leaves, blockwise.heads(heads))[0]
    blocks = blockwise.blockwise_self_attention(*leaves, heads)
    agree_with_gradients(blocks, dense, leaves)
    for m, p in enumerate(heads):
        loop = blockwise.blockwise_definition(Q[1, m], K[1, m], V[1, m], p)
        torch.testing.assert_close(blocks[1, m], loop)


@pytest.mark.parametrize(("L", "n"), [(10, 3), (11, 4), (7, 7), (13, 5)])
def test_uneven_blocks_definition_equals_mask(L: int, n: int) -> None:
    Q, K, V = torch.randn(3, L, 4, dtype=torch.float64)
    order = blockwise.shift(n, 2)
    dense = attention(Q, K, V, patterns.blockwise(permutation=order))[0]
    torch.testing.assert_close(blockwise.blockwise_definition(Q, K, V, order), dense)
    starts = blockwise.block_starts(L, n)
    sizes = [b - a for a, b in pairwise(starts)]
    assert sum(sizes) == L and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_counts_and_limits(n: int) -> None:
    mask = patterns.blockwise(permutation=blockwise.shift(n, 1)).mask(12)
    assert mask.sum() == 12 * 12 // n
    assert (mask.sum(0) == 12 // n).all()  # a permutation: each key is read equally often
    home = patterns.blockwise(permutation=blockwise.shift(n, 0)).mask(12)
    assert torch.equal(home, patterns.block_local(block=12 // n).mask(12))


@pytest.mark.parametrize("n", range(1, 8))
def test_sums_of_shifts_decide_the_reach(n: int) -> None:
    for bits in range(2**n):
        shifts = [s for s in range(n) if bits >> s & 1]
        if not shifts:
            continue
        # two tokens in each block: the skip keeps a token, not its neighbour in the block
        layer = blockwise.heads([blockwise.shift(n, s) for s in shifts])
        by_graph = patterns.reach([layer], 2 * n, layers=2).unreachable == 0
        assert blockwise.shifts_reach_all(n, shifts) == by_graph, (n, shifts)


def test_identity_alone_never_leaves_its_block() -> None:
    assert not blockwise.shifts_reach_all(4, [0], layers=50)
    assert blockwise.shifts_reach_all(4, [1], layers=4)  # the fourth comes home to its neighbours
    assert not blockwise.shifts_reach_all(4, [1], layers=3)


def test_bad_input_is_named() -> None:
    Q, K, V = torch.randn(3, 1, 2, 10, 4)
    attend = partial(blockwise.blockwise_self_attention, Q, K, V)
    refused("L = 10 is not a multiple of n = 3 blocks; choose n", attend, [(1, 2, 0)] * 2)
    refused("permutations has 1 members for h = 2", attend, [(1, 2, 0)])
    for wrong in ((0, 0), (0, 1, 2, 3, 4)):
        refused("not a permutation", attend, [(0, 1), wrong])
    refused("not a permutation", blockwise.blockwise_definition, Q[0, 0], K[0, 0], V[0, 0], (0, 0))
    ranges(partial(blockwise.block_starts, 10), n=(4, 1, 10))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    functions={
        "blockwise": Function(
            partial(blockwise.blockwise_self_attention, permutations=[(1, 0)] * 3),
            over(patterns.blockwise(permutation=(1, 0))),
        )
    },
)
