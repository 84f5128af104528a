"""1-D image memory: how far each pixel of a block sees, its limits, and what it costs."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from laws import Case, Function, agree_with_gradients, over
from refusals import ranges
from three import three

from tfviz import attention
from tfviz import patterns as P
from tfviz.sparse import image_transformer_1d as one
from tfviz.sub_quadratic import plan


@pytest.mark.parametrize(("L", "block", "memory"), [(24, 4, 3), (50, 8, 8), (17, 5, 0), (9, 20, 2)])
def test_first_and_last_pixel_of_a_block(L: int, block: int, memory: int) -> None:
    sets = P.image_1d(block=block, memory=memory).key_sets(L)
    for i, found in enumerate(sets):
        assert found == list(one.keys(i, block, memory))
        start = i // block * block
        assert found[0] == max(0, start - memory) and found[-1] == i
        if start >= memory:  # nothing cut off by the start of the image
            assert len(found) - 1 == one.sees_back(i, block, memory) == i - start + memory
    if 2 * block < L and block >= memory:
        assert len(sets[block]) - 1 == memory
        assert len(sets[2 * block - 1]) - 1 == memory + block - 1
    first = [set(found) for found in sets[:block]]
    assert first == [set(range(i + 1)) for i in range(min(block, L))]  # block 0 is plain causal


@pytest.mark.parametrize("L", [1, 7, 30])
def test_enough_memory_is_causal_attention(L: int) -> None:
    causal = P.causal().mask(L)
    assert P.image_1d(block=4, memory=L).mask(L).equal(causal)
    assert P.image_1d(block=L, memory=0).mask(L).equal(causal)
    assert P.image_1d(block=6, memory=0).mask(L).equal(P.own_block(block=6).mask(L))
    assert P.image_1d(block=1, memory=3).mask(L).equal(P.sliding_window(lookback=3).mask(L))


@pytest.mark.parametrize(("block", "memory"), [(4, 3), (8, 10), (3, 8), (8, 8), (5, 7)])
def test_who_does_not_see_the_pixel_above(block: int, memory: int) -> None:
    mask, width = P.image_1d(block=block, memory=memory).mask(64), 8
    blind = [i for i in range(width, 64) if not mask[i, i - width]]
    assert one.blind_above(8, width, block, memory) == blind
    assert (not blind) == (memory >= width)


@pytest.mark.parametrize(("L", "block", "memory"), [(12, 4, 4), (150, 16, 9), (300, 64, 64)])
def test_definition_and_sparse_agree_with_gradients(L: int, block: int, memory: int) -> None:
    leaves = three(x.requires_grad_() for x in torch.randn(3, 2, 2, L, 4, dtype=torch.float64))
    dense = attention(*leaves, P.image_1d(block=block, memory=memory))[0]
    sparse = one.image_attention_1d(*leaves, block, memory)
    agree_with_gradients(sparse, dense, leaves)


@pytest.mark.parametrize("L", [4096, 16_384])
@pytest.mark.parametrize(("block", "memory"), [(64, 64), (256, 256), (100, 60)])
def test_it_computes_little_more_than_block_and_memory(L: int, block: int, memory: int) -> None:
    scores = sum(call.scores for call in plan(P.image_1d(block=block, memory=memory), L))
    assert scores <= 1.2 * L * (block + memory)


def test_bad_input_is_named() -> None:
    QKV = three(torch.randn(3, 8, 4))
    ranges(partial(one.image_attention_1d, *QKV), block=(4, 1), memory=(2, 0))
    ranges(one.keys, i=(3, 0), block=(4, 1), memory=(1, 0))
    ranges(one.blind_above, height=(8, 1), width=(8, 1), block=(4, 1), memory=(4, 0))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    functions={
        "image 1-D": Function(
            partial(one.image_attention_1d, block=4, memory=2),
            over(P.image_1d(block=4, memory=2)),
            length=150,
        )
    },
    mutants=[
        (
            "a memory below nothing",
            '    memory = _arguments.integer("memory", memory, 0)\n',
            "",
        ),
    ],
)
