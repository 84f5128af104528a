"""Binary partitioning: every token covers the text once, and the quick way is the formula."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from golden import drawn
from laws import Case, D, agree_with_gradients, work_grows_no_faster
from refusals import refused
from three import Three, qkv
from torch import Tensor

from tfviz.cores import Where
from tfviz.sparse import bp_transformer as bpt

GOLDEN = """
    1 1 . . . . . . . 1 . . . 1 .
    1 1 1 1 . . . . . . . . . 1 .
    1 1 1 1 . . . . . . 1 1 . . .
    . . 1 1 1 1 . . 1 . . 1 . . .
    . . 1 1 1 1 . . 1 . . 1 . . .
    . . . . 1 1 1 1 1 1 . . . . .
    . . . . 1 1 1 1 . . . . 1 . .
    . . . . . . 1 1 . . 1 . 1 . .
"""  # eight tokens, four pairs, two halves, the root; k = 1, read off a tree on paper


def rows(L: int) -> Three:
    return qkv(bpt.levels(L)[-1].stop, 4, h=2)


def covered(L: int, k: int, is_causal: bool) -> Tensor:
    """(L, L): how often token i covers token j."""
    table, (first, end) = bpt.reads(L, k, is_causal), bpt.spans(L).T
    j = torch.arange(L)
    inside = (first[table][..., None] <= j) & (j < end[table][..., None])
    return (inside & (table >= 0)[..., None]).sum(1)


def test_eight_tokens_by_hand() -> None:
    wanted = drawn(GOLDEN)
    X = torch.ones(1, 1, 15, 2)
    A = bpt.tree_definition(X, X, X, k=1)[1][0, 0]
    assert (A[:8] > 0).equal(wanted)
    assert (A[8:] > 0).sum(1).tolist() == [2, 2, 2, 2, 4, 4, 8]  # each span its tokens
    assert bpt.edges(8, 1) == int((A > 0).sum())
    assert (A[13] > 0).nonzero().flatten().tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("L", [1, 2, 3, 7, 16, 21, 64, 100])
def test_every_token_covers_the_text_exactly_once(L: int, k: int) -> None:
    once = torch.ones(L, L, dtype=torch.long)
    assert covered(L, k, False).equal(once)
    assert covered(L, k, True).equal(once.tril())
    assert bpt.length(bpt.levels(L)[-1].stop) == L


def test_so_many_nodes_are_read() -> None:
    def mean(L: int, k: int) -> float:
        return (bpt.reads(L, k) >= 0).sum().item() / L

    assert mean(64, 1) == pytest.approx(11.0, abs=0.05)  # 2k log2(L/k) = 12
    assert mean(256, 4) == pytest.approx(38.8, abs=0.05)  # 48
    grown = [mean(2 * L, 2) - mean(L, 2) for L in (512, 1024)]
    assert grown == pytest.approx([4, 4], abs=0.05)  # twice the text: 2k more
    near = bpt.reads(64, 4)[30, :9].tolist()
    assert near == [30, 29, 28, 27, 26, 31, 32, 33, 34]


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("L", "k"), [(1, 1), (2, 1), (31, 2), (32, 1), (100, 3), (256, 2)])
def test_the_quick_way_is_the_formula(L: int, k: int, is_causal: bool, typed: bool) -> None:
    leaves = rows(L)
    types = bpt.reads(L, k, is_causal).shape[1]
    a = torch.randn(types + 2, 4, dtype=torch.float64, requires_grad=True) if typed else None
    wanted, A = bpt.tree_definition(*leaves, k, is_causal, a)
    got = bpt.tree_attention(*leaves, k, is_causal, a)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    agree_with_gradients(got, wanted, leaves if a is None else [*leaves, a])


def test_a_type_is_a_level_a_side_and_a_step() -> None:
    """One type made loud draws every token to the one node that it names."""
    Q, K, V = (torch.ones_like(x) for x in rows(16))
    table = bpt.reads(16, 2)
    for column in (0, 1, 4, 6, 9):  # itself, next on the left, second on the right, second pair …
        a = torch.zeros(table.shape[1], 4, dtype=torch.float64)
        a[column] = 100
        A = bpt.tree_definition(Q, K, V, 2, a=a)[1][0, 0, :16]
        has = table[:, column] >= 0
        assert has.any() and A[has].argmax(-1).equal(table[has, column])


def test_with_k_as_long_as_the_text_it_is_full_attention() -> None:
    leaves = rows(12)
    q, k, v = (x[:, :, :12] for x in leaves)
    got = bpt.tree_attention(*leaves, k=12)[:, :, :12]
    agree_with_gradients(got, torch.nn.functional.scaled_dot_product_attention(q, k, v), leaves)


@torch.no_grad()
def test_two_layers_reach_everybody_and_causal_ones_no_one_ahead() -> None:
    L = 64
    for is_causal in (False, True):
        at = bpt.with_spans(torch.eye(L, dtype=torch.float64)[None])[None]  # who is heard where
        even = torch.zeros_like(at)
        one = bpt.tree_attention(even, even, at, 1, is_causal)
        two = bpt.tree_attention(even, even, one + at, 1, is_causal)[0, 0, :L]
        wanted = torch.ones(L, L, dtype=torch.bool)
        assert (one[0, 0, :L] > 0).sum(1).max() <= 5  # spans have nothing to say yet
        assert (two > 0).equal(wanted.tril() if is_causal else wanted)


def test_work_and_memory_grow_with_the_length() -> None:
    nodes = lambda L: 3 * [(1, 1, bpt.levels(L)[-1].stop, 8)]  # noqa: E731
    attend = partial(bpt.tree_attention, k=2)  # L log L; L² would be 2
    work_grows_no_faster(lambda L: attend, 1.25, leaves=nodes, memory=(1024, 4096))


def test_what_was_planned_in_inference_mode_serves_training() -> None:
    leaves = rows(37)
    for cached in (bpt.reads, bpt._gathers, bpt._plan):
        cached.cache_clear()
    a = torch.randn(40, 4, dtype=torch.float64, requires_grad=True)
    with torch.inference_mode():
        bpt.tree_attention(*leaves, 2, a=a)
    got = bpt.tree_attention(*leaves, 2, a=a)
    agree_with_gradients(got, bpt.tree_definition(*leaves, 2, a=a)[0], [*leaves, a])


def test_shared_heads_are_heads_repeated() -> None:
    Q, K, V = qkv(15, 4, h=4)
    shared, core = (K[:, :2], V[:, :2]), bpt.Tree(4, k=1).double()
    many = [x.repeat_interleave(2, 1) for x in shared]
    torch.testing.assert_close(core(Q, *shared, Where())[0], core(Q, *many, Where())[0])


def test_bad_input_is_named() -> None:
    Q, K, V = rows(8)
    refused("k = 0 is out of range", bpt.tree_attention, Q, K, V, 0)
    refused("no tree has 8 rows", bpt.tree_attention, Q[:, :, :8], K[:, :, :8], V[:, :, :8], 1)
    says = "a has 2 vectors, the edges of L = 8 are of 7 types"
    refused(says, bpt.tree_attention, Q, K, V, 1, a=torch.zeros(2, 4))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def on_the_tree(
    core: bpt.Tree, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    is_causal = not mask.all()
    return bpt.tree_definition(Q, K, V, core.k, is_causal, core.a)


CASE = Case(
    lambda: bpt.Tree(D, k=1, types=20),
    on_the_tree,
    answers="whole",
    length=11,  # the rows of five tokens and their spans
    but={
        "rows_are_shares_of_what_is_allowed": "a token reads spans, whose columns come later",
        "the_future_changes_no_bit": "a token reads spans of earlier ones, whose rows come later",
        "it_grows_no_faster_than_it_says": "no tree has 1024 rows",
    },
    mutants=[
        (
            "a tree whose shared heads take turns",
            "x.repeat_interleave(Q.shape[1] // x.shape[1], 1)",
            "x.repeat(1, Q.shape[1] // x.shape[1], 1, 1)",
        ),
        (
            "a span read whole where half of it was read already",
            "half[side] = at[side] % 2 == (side > 0)",
            "half[side] = i < 0",
        ),
        (
            "a tree whose levels have one node more on each side",
            "            for _ in range(k):",
            "            for _ in range(k + (level > 0)):",
        ),
        (
            "spans that miss their last token",
            "(keys < end[one])",
            "(keys < end[one] - 1)",
        ),
    ],
)
