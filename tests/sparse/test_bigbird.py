"""Big Bird: hand-typed blocks, definition = blocks with gradients, limits, graph, parity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from laws import Case, Function, agree_with_gradients, work_grows_no_faster
from refusals import of_no_kind, refused
from three import Three, qkv, three
from torch import Tensor

from tfviz import attention, patterns
from tfviz.sparse import bigbird as bb

GOLDEN = [  # blocks; block 2 drew 4, block 3 drew 1, block 4 drew 2
    (0, 1, 2, 3, 4, 5, 6),
    (0, 1, 2, 4, 6),
    (0, 1, 2, 3, 4, 6),
    (0, 1, 2, 3, 4, 6),
    (0, 2, 3, 4, 5, 6),
    (0, 3, 4, 5, 6),
    (0, 1, 2, 3, 4, 5, 6),
]
DRAWN = torch.tensor([[[0], [4], [4], [1], [2], [3], [0]]])


def test_blocks_are_the_hand_typed_ones() -> None:
    assert bb.key_blocks(DRAWN[0]) == tuple(GOLDEN)
    made = bb.mask(tuple(GOLDEN), 2)
    assert made[4].tolist() == [True] * 10 + [False] * 2 + [True] * 2
    assert made[4].equal(made[5]) and made[2].sum() == 10


@pytest.mark.parametrize(
    ("n", "block", "r", "heads", "g"),
    [(7, 3, 1, 2, 1), (12, 4, 3, 1, 1), (12, 2, 2, 2, 2), (9, 5, 0, 1, 1), (8, 3, 2, 2, 0),
     (3, 4, 0, 1, 1), (2, 3, 0, 1, 1), (1, 4, 0, 1, 1), (40, 8, 3, 2, 1)],
)  # fmt: skip
def test_blocks_do_what_the_definition_does(n: int, block: int, r: int, heads: int, g: int) -> None:
    Q, K, V = qkv(n * block, h=2)
    drawn = bb.random_blocks(n, r, heads, seed=1, g=g)
    wanted, A = bb.bigbird_definition(Q, K, V, block, drawn, g)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    agree_with_gradients(bb.bigbird_attention(Q, K, V, block, drawn, g), wanted, [Q, K, V])


def test_what_is_drawn_is_new_and_the_same_again() -> None:
    n, r, g = 11, 3, 1
    drawn = bb.random_blocks(n, r, heads=5, seed=2)
    assert drawn.equal(bb.random_blocks(n, r, heads=5, seed=2))
    assert not drawn.equal(bb.random_blocks(n, r, heads=5, seed=3))
    assert not drawn[0].equal(drawn[1])
    for head in drawn:
        for I, keys in list(enumerate(bb.key_blocks(head)))[2:-2]:
            assert len(keys) == 2 * g + 3 + r and {0, I - 1, I, I + 1, n - 1} <= set(keys)


def test_the_graph_and_the_limits() -> None:
    drawn = bb.random_blocks(16, 2, seed=0)
    mask = bb.mask(bb.key_blocks(drawn[0]), 2)
    assert mask.diagonal().all()
    assert patterns.table(mask).reach(32).diameter == 2
    # nothing drawn: the pattern of the same name without its random part
    none = bb.mask(bb.key_blocks(bb.random_blocks(16, 0)[0]), 2)
    formula = patterns.block_window(block=2, window=1) | patterns.global_blocks(block=2, count=1)
    assert none.equal(formula.mask(32))
    Q, K, V = qkv(12, h=2)  # four blocks: all of them are in the window or global
    few = bb.bigbird_attention(Q, K, V, 4, bb.random_blocks(3, 0))
    torch.testing.assert_close(few, attention(Q, K, V)[0])


def test_work_grows_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        return partial(bb.bigbird_attention, block=16, drawn=bb.random_blocks(L // 16, 2))

    work_grows_no_faster(attend, 1.2, work=(4096, 16384))


def theirs(training: bool, X: Tensor) -> tuple[Tensor, Three, Tensor]:
    """Hugging Face's output and A, and its Q, K, V: 12 blocks of 4, r = 2, 3 heads."""
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import (
        BigBirdBlockSparseAttention,
        BigBirdModel,
    )

    config = BigBirdConfig(
        hidden_size=12, num_attention_heads=3, block_size=4, num_random_blocks=2,
        max_position_embeddings=48, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    layer = BigBirdBlockSparseAttention(config, seed=3).double().train(training)
    masks = BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(2, 48).double(), 4)
    blocked, band, rows, columns = masks
    with torch.no_grad():
        out, A = layer(X, band, rows, columns, blocked, blocked, output_attentions=True)
        QKV = three(
            f(X).unflatten(-1, (3, 4)).transpose(1, 2)
            for f in (layer.query, layer.key, layer.value)
        )
    return out, QKV, A


def test_parity_with_hugging_face() -> None:
    torch.manual_seed(0)
    X = torch.randn(2, 48, 12, dtype=torch.float64)
    wanted, QKV, A = theirs(True, X)
    met = A[0].unflatten(-1, (12, 4)).unflatten(1, (12, 4)).sum((2, 4)) > 0  # (3, 12, 12)
    drawn = torch.zeros(3, 12, 2, dtype=torch.long)
    nothing = bb.key_blocks(torch.zeros(12, 0, dtype=torch.long))
    for head in range(3):
        for I in range(1, 11):
            new = set(met[head, I].nonzero().flatten().tolist()) - set(nothing[I])
            assert len(new) == 2  # two blocks are drawn, and both are new
            drawn[head, I] = torch.tensor(sorted(new))
    got = bb.bigbird_attention(*QKV, 4, drawn)
    torch.testing.assert_close(got.transpose(1, 2).flatten(2), wanted, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(bb.bigbird_definition(*QKV, 4, drawn)[1], A, atol=1e-6, rtol=1e-5)


def test_hugging_face_in_eval_counts_the_first_block_three_times() -> None:
    """A known deviation: without training nothing is drawn, and block 0 stands in r times more."""
    torch.manual_seed(0)
    X = torch.randn(2, 48, 12, dtype=torch.float64)
    found, QKV, _ = theirs(False, X)
    found = found.unflatten(-1, (3, 4)).transpose(1, 2)
    nothing = torch.zeros(1, 12, 0, dtype=torch.long)
    mask = bb.mask(bb.key_blocks(nothing[0]), 4)
    thrice = torch.zeros(48, 48, dtype=torch.float64)
    thrice[4:-4, :4] = torch.tensor(3.0).log()
    wanted, _ = attention(*QKV, mask, bias=thrice)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    ours = bb.bigbird_attention(*QKV, 4, nothing)
    assert not torch.allclose(ours[:, :, 4:-4], found[:, :, 4:-4], atol=1e-3)


def test_a_drawn_block_that_the_row_has_anyway_counts_once() -> None:
    """Global ones, those of the window, and one that is drawn twice; the heads draw others."""
    Q, K, V = qkv(24, h=2)
    drawn = torch.randint(8, (2, 8, 4))
    drawn[0] = torch.tensor([0, 7, 3, 3])
    for g in (0, 1, 2):
        wanted, _ = bb.bigbird_definition(Q, K, V, 3, drawn, g)
        agree_with_gradients(bb.bigbird_attention(Q, K, V, 3, drawn, g), wanted, [Q, K, V])


def test_a_plan_made_in_inference_mode_serves_training_twice() -> None:
    bb._plan.cache_clear()
    Q, K, V = qkv(24, h=2)
    drawn = bb.random_blocks(8, 2)
    with torch.inference_mode():
        bb.bigbird_attention(Q, K, V, 3, drawn)
    (first,) = torch.autograd.grad(
        bb.bigbird_attention(Q, K, V, 3, drawn).sin().sum(), Q, create_graph=True
    )
    (dense,) = torch.autograd.grad(
        bb.bigbird_definition(Q, K, V, 3, drawn)[0].sin().sum(), Q, create_graph=True
    )
    agree_with_gradients(first, dense, [Q, K, V])


def test_bad_input_is_named() -> None:
    attend = partial(bb.bigbird_attention, *qkv(12, h=2))
    refused("4 blocks of 4 are not L = 12", attend, 4, bb.random_blocks(4, 0))
    refused("drawn is for 3 heads, Q has 2", attend, 4, bb.random_blocks(3, 0, heads=3))
    refused("block = 0", attend, 0, bb.random_blocks(3, 0))
    refused("r = 2", bb.random_blocks, 6, 2)
    for wrong in (-1, 3):
        drawn = torch.full((1, 3, 1), wrong)
        refused(f"drawn names block {wrong} to {wrong}; there are 3", attend, 4, drawn)
        refused(f"drawn names block {wrong}", bb.key_blocks, drawn[0])
    of_no_kind("drawn is torch.float32; give whole numbers", attend, 4, torch.zeros(1, 3, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------


SIX = bb.random_blocks(6, 1, seed=0)


CASE = Case(
    functions={
        "Big Bird": Function(
            partial(bb.bigbird_attention, block=4, drawn=SIX),
            partial(bb.bigbird_definition, block=4, drawn=SIX),
        )
    },
    mutants=[
        (
            "a drawn block that is in the window",
            "((I - J).abs() > 1)",
            "((I - J).abs() > 0)",
        ),
    ],
)
