"""Sinkhorn: sums of one, the best permutation in the limit, blocks moved as the definition says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from golden import drawn
from laws import (
    Case,
    Function,
    agree_with_gradients,
    work_grows_no_faster,
)
from refusals import refused
from scipy.optimize import linear_sum_assignment
from three import qkv, three
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.patterns import causal
from tfviz.sparse import sparse_sinkhorn as sk

GOLDEN = """
    1 1 . . 1 1
    1 1 . . 1 1
    1 1 1 1 . .
    1 1 1 1 . .
    . . 1 1 1 1
    . . 1 1 1 1
"""


def scores(n: int) -> Tensor:
    return torch.randn(2, 3, n, n, dtype=torch.float64)


def test_three_blocks_by_hand() -> None:
    P = torch.tensor([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]).double()
    Q, K, V = (x[:, :, :6].detach() for x in qkv())
    out, A = sk.sinkhorn_definition(Q, K, V, P.expand(2, 3, 3, 3))
    wanted = drawn(GOLDEN)
    assert (A > 0).equal(wanted.expand_as(A))
    dense = (Q @ K.mT / 6**0.5).masked_fill(~wanted, -torch.inf).softmax(-1)
    torch.testing.assert_close(A, dense)
    torch.testing.assert_close(out, dense @ V)
    torch.testing.assert_close(sk.sinkhorn_attention(Q[0, 0], K[0, 0], V[0, 0], P), out[0, 0])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("n", [1, 3, 8, 24])
def test_blocks_are_the_definition(is_causal: bool, n: int) -> None:
    leaves = qkv()

    def P() -> Tensor:
        return sk.sorting(sk.block_scores(leaves[0], leaves[1], n, is_causal), 5, 0.3)

    wanted, A = sk.sinkhorn_definition(*leaves, P(), is_causal)
    agree_with_gradients(sk.sinkhorn_attention(*leaves, P(), is_causal), wanted, leaves)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    if is_causal:
        assert (A.triu(1) == 0).all()


def test_sums_become_one() -> None:
    for steps in (40, 41):
        P = sk.sinkhorn(scores(6), steps, tau=0.5)
        for dim in (-1, -2):
            torch.testing.assert_close(P.sum(dim), torch.ones(2, 3, 6).double(), atol=1e-3, rtol=0)
    odd, even = (sk.sinkhorn(scores(6), n) for n in (3, 4))
    torch.testing.assert_close(odd.sum(-1), torch.ones(2, 3, 6).double())
    torch.testing.assert_close(even.sum(-2), torch.ones(2, 3, 6).double())
    R = scores(6)
    torch.testing.assert_close(sk.sinkhorn(R, 1), R.softmax(-1))
    assert sk.sinkhorn(R * 500, 5).isfinite().all()


def test_a_cold_sort_is_the_best_permutation() -> None:
    for R in scores(6).flatten(0, 1):
        rows, columns = linear_sum_assignment(R.numpy(), maximize=True)
        P = sk.sinkhorn(R, 1001, tau=0.01)
        assert P.argmax(-1).tolist() == columns.tolist() and P[rows, columns].min() > 0.95


def test_who_stays_sees_its_own_block_only() -> None:
    leaves, n = qkv(), 4
    stay = torch.eye(n, dtype=torch.float64).expand(2, 3, n, n)
    place = torch.arange(24) // 6
    own = attention(*leaves, place[:, None] == place)[0]
    agree_with_gradients(sk.sinkhorn_attention(*leaves, stay), own, leaves)


def test_work_grows_with_the_length_to_the_three_halves() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        core = sk.Sinkhorn(round(L**0.5))
        return lambda *X: core(*X, Where(causal()))[0]

    work_grows_no_faster(attend, 1.6)


def test_parity_with_sinkhorn_transformer() -> None:
    """Version 0.11.4 takes the sorted *keys* for the sorted values: they are given as values here.
    Its sort net is set aside; what sorts is the same P."""
    theirs = pytest.importorskip("sinkhorn_transformer.sinkhorn_transformer")
    R = scores(5).flatten(0, 1)
    torch.testing.assert_close(theirs.sinkhorn_sorting_operator(R, 4), sk.sinkhorn(R, 8))
    Q, K, V = (x.detach() for x in qkv(20))
    P = sk.sinkhorn(scores(5), 9)
    module = theirs.SinkhornAttention(4, 18, 6, 3, 20).double().eval()

    class Given(torch.nn.Module):
        def forward(self, *_: Tensor, topk: int) -> Tensor:
            return P.flatten(0, 1)

    module.sort_net = Given()
    torch.testing.assert_close(module(Q, K, K), sk.sinkhorn_attention(Q, K, K, P))
    V = torch.cat([V, V[..., :1]], -1)
    assert not torch.allclose(module(Q, K, V), sk.sinkhorn_attention(Q, K, V, P), atol=1e-2)


def test_gradients_can_be_differentiated() -> None:
    Q, K, _ = qkv()
    V = torch.randn_like(Q, requires_grad=True)  # as wide as the queries: the fused kernel's case
    P = sk.sinkhorn(scores(4), 5)
    ways = sk.sinkhorn_attention(Q, K, V, P), sk.sinkhorn_definition(Q, K, V, P)[0]
    first = [torch.autograd.grad(out.sin().sum(), Q, create_graph=True)[0] for out in ways]
    agree_with_gradients(first[0], first[1], [Q, K, V])


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    refused("n = 5 does not divide L = 24", sk.cut, Q, 5)
    refused("R has shape (2, 3, 4, 5); give", sk.sinkhorn, torch.zeros(2, 3, 4, 5), 3)
    refused("m = 5 does not divide L = 24", sk.Sinkhorn(5), Q, K, V, Where(causal()))
    short = [x[:, :, :3] for x in (Q, K, V)]  # a text that is shorter than a block is one
    torch.testing.assert_close(
        sk.Sinkhorn(5)(*short, Where(causal()))[0], attention(*three(short), causal())[0]
    )
    refused("tau = 0; a temperature is above 0", sk.sinkhorn, scores(3), 3, tau=0)
    refused("steps = 4 ends with columns", sk.Sinkhorn, 4, steps=4)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_matrices(
    core: sk.Sinkhorn, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    is_causal, n = not mask.all(), max(1, Q.shape[2] // core.m)
    P = sk.sorting(sk.block_scores(Q, K, n, is_causal), core.steps, core.tau)
    return sk.sinkhorn_definition(Q, K, V, P, is_causal)


MOVES = torch.eye(4, dtype=torch.float64).roll(1, 0).expand(2, 3, 4, 4)


CASE = Case(
    lambda: sk.Sinkhorn(3),
    by_matrices,
    answers="whole",
    sized=lambda L: sk.Sinkhorn(round(L**0.5)),
    grows=1.6,
    functions={
        "Sinkhorn": Function(
            lambda Q, K, V: sk.sinkhorn_attention(Q, K, V, MOVES.to(Q)),
            lambda Q, K, V: sk.sinkhorn_definition(Q, K, V, MOVES.to(Q)),
        )
    },
    mutants=[
        (
            "Sinkhorn's steps over rows only",
            "log.logsumexp(-1 - step % 2",
            "log.logsumexp(-1 - 0 * step",
        ),
        (
            "a causal block that summarises its later queries",
            "cut(Q, n)[..., 0, :] if causal",
            "cut(Q, n).mean(-2) if causal",
        ),
    ],
)
