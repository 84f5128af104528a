"""SAC: edges are a mask, their number is kept, the policy gradient is that of the mean reward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from golden import drawn
from laws import (
    Case,
    Function,
    agree_with_gradients,
    work_grows_no_faster,
)
from refusals import of_no_kind, refused
from three import qkv
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.patterns import causal, full
from tfviz.sparse import sac

GOLDEN = """
    1 . . . . 1
    . . . . . .
    . 1 1 . . .
    . . . . 1 .
    . . . . . .
    . . . . . 1
"""
EDGES = [[0, 5], [2, 1], [0, 0], [2, 2], [3, 4], [2, 1], [5, 5]]


def test_edges_of_six_nodes_by_hand() -> None:
    wanted = drawn(GOLDEN)
    assert sac.edge_mask(torch.tensor(EDGES), 6).equal(wanted)


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_edges_are_attention_on_their_mask(shape: tuple[int, int]) -> None:
    leaves, edges = qkv(), torch.randint(24, (*shape, 40, 2))
    mask = sac.edge_mask(edges, 24).expand(2, 3, 24, 24)
    assert not mask.any(-1).all()  # some query has no edge: its answer is 0
    agree_with_gradients(sac.edge_attention(*leaves, edges), attention(*leaves, mask)[0], leaves)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_scores_in_half_precision_stay_finite(dtype: torch.dtype) -> None:
    Q, K, V = (300 * torch.randn(2, 3, 24, 6).to(dtype) for _ in range(3))
    edges = torch.randint(24, (1, 1, 60, 2))
    out = sac.edge_attention(Q, K, V, edges)
    assert out.dtype == dtype and out.isfinite().all()
    exact = sac.edge_attention(Q.double(), K.double(), V.double(), edges)
    torch.testing.assert_close(out.double(), exact, atol=1.0, rtol=0.01)


def test_all_edges_are_full_attention() -> None:
    leaves, place = qkv(), torch.arange(24)
    every = torch.cartesian_prod(place, place)[None, None]
    agree_with_gradients(sac.edge_attention(*leaves, every), attention(*leaves)[0], leaves)


def test_a_predictor_draws_as_many_as_it_is_asked_for() -> None:
    X, dice = torch.randn(5, 9, 4), torch.Generator().manual_seed(0)
    drawn = sac.EdgePredictor(4)(X, 7, dice)
    assert drawn.edges.shape == (5, 7, 2) and drawn.log_p.shape == (5,)
    again = sac.EdgePredictor(4, causal=True)(X, 50, dice).edges
    assert (again[..., 1] <= again[..., 0]).all()
    each = sac.EdgePredictor(4, every_node=True)(X, 9, dice).edges
    assert each[..., 0].equal(torch.arange(9).expand(5, -1))


@pytest.mark.parametrize("every_node", [False, True])
def test_probabilities_of_all_lists_sum_to_one(every_node: bool) -> None:
    predictor = sac.EdgePredictor(3, every_node=every_node).double()
    lists = torch.cartesian_prod(*[torch.arange(2)] * 4).view(16, 2, 2)
    if every_node:
        lists = lists[(lists[..., 0] == torch.arange(2)).all(-1)]
    X = torch.randn(2, 3, dtype=torch.float64).expand(len(lists), -1, -1)
    total = predictor(X, 2, given=lists).log_p.exp().sum()
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("baseline", [0.0, -1.7])
def test_the_policy_gradient_is_unbiased_with_any_baseline(baseline: float) -> None:
    """Two nodes, one edge: the mean over all four edges is the gradient of the mean reward."""
    predictor = sac.EdgePredictor(3).double()
    lists = torch.cartesian_prod(torch.arange(2), torch.arange(2))[:, None]
    X = torch.randn(2, 3, dtype=torch.float64).expand(4, -1, -1)
    reward = torch.randn(4, dtype=torch.float64)
    weights = list(predictor.parameters())
    log_p = predictor(X, 1, given=lists).log_p
    mean = (log_p.exp() * reward).sum()
    wanted = torch.autograd.grad(mean, weights, retain_graph=True)
    sampled = [
        torch.autograd.grad(
            sac.reinforce(log_p[n : n + 1], reward[n : n + 1], baseline), weights, retain_graph=True
        )
        for n in range(4)
    ]
    p = log_p.exp().detach()
    for n, w in enumerate(wanted):
        assert w.abs().max() > 1e-6
        torch.testing.assert_close(-sum(p[e] * sampled[e][n] for e in range(4)), w)


def test_draws_come_as_often_as_their_probability_says() -> None:
    torch.manual_seed(1)
    predictor, X = sac.EdgePredictor(2), torch.randn(3, 2)
    with torch.no_grad():
        drawn = predictor(X.expand(20_000, -1, -1), 1, torch.Generator().manual_seed(0)).edges
        lists = torch.cartesian_prod(torch.arange(3), torch.arange(3))[:, None]
        wanted = predictor(X.expand(9, -1, -1), 1, given=lists).log_p.exp()
    counted = (drawn[:, 0, 0] * 3 + drawn[:, 0, 1]).bincount(minlength=9) / 20_000
    torch.testing.assert_close(counted, wanted, atol=0.02, rtol=0)


def test_work_grows_with_the_edges() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        return partial(sac.edge_attention, edges=torch.randint(L, (1, 1, 8 * L, 2)))

    work_grows_no_faster(attend, 1.1)


def test_the_edge_that_matters_is_found() -> None:
    found = sac.bandit(steps=200, every=100, seed=0)
    assert found.chance[0] < 0.05 and found.chance[-1] > 0.9
    assert found.reward[-1] > found.reward[0] + 0.8
    torch.testing.assert_close(torch.tensor(found.first).sum(-1), torch.ones(3))
    torch.testing.assert_close(torch.tensor(found.second).sum(-1), torch.ones(3, 6))


def test_bad_input_is_named() -> None:
    leaves, core = qkv(), sac.Edges()
    attend = partial(sac.edge_attention, *leaves)
    refused("edges name node 0 to 24; there are 24", attend, torch.tensor([[[[0, 24]]]]))
    refused("edges has shape (1, 2); give", attend, torch.tensor([[0, 2]]))
    refused("edges name node -1", sac.edge_mask, torch.tensor([[-1, 2]]), 4)
    given = torch.zeros(1, 2, 2).long()
    refused("given has shape (1, 2, 2)", sac.EdgePredictor(4), torch.randn(1, 5, 4), 1, given=given)
    for predictor, says in (
        (sac.EdgePredictor(4, causal=True), "given looks ahead"),
        (sac.EdgePredictor(4, every_node=True), "given names other first nodes"),
    ):
        ahead = torch.tensor([[[1, 2]]])
        refused(says, predictor, torch.randn(1, 5, 4), 1, given=ahead)
    outside = torch.tensor([[[5, 0]]])
    refused("edges name node 0 to 5", sac.EdgePredictor(4), torch.randn(1, 5, 4), 1, given=outside)
    of_no_kind("edges is torch.bool; give whole numbers", attend, torch.ones(1, 1, 3, 2) > 0)
    refused("set core.edges", core, *leaves, Where(full()))
    core.edges = torch.tensor([[[[0, 3]]]])
    refused("edges look ahead", core, *leaves, Where(causal()))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def with_edges(L: int = 9) -> sac.Edges:
    """The same for all texts and heads, none of them ahead; the last token has none."""
    core, dice = sac.Edges(), torch.Generator().manual_seed(0)
    both = torch.randint(L - 1, (4 * L, 2), generator=dice).sort(-1, descending=True).values
    core.edges = both[None, None]
    return core


def masked(core: sac.Edges, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    assert core.edges is not None
    return attention(Q, K, V, sac.edge_mask(core.edges[0, 0], Q.shape[2]) & mask)


SOME = torch.randint(24, (2, 3, 60, 2), generator=torch.Generator().manual_seed(0))


CASE = Case(
    with_edges,
    masked,
    answers="whole",
    sized=with_edges,
    grows=1.1,
    but={"rows_are_shares_of_what_is_allowed": "a token without an edge gets 0"},
    functions={
        "edges": Function(
            partial(sac.edge_attention, edges=SOME),
            lambda Q, K, V: attention(Q, K, V, sac.edge_mask(SOME, Q.shape[2])),
        )
    },
    mutants=[
        (
            "edges that count as often as they are drawn",
            "torch.unique((graph + i) * L + j)",
            "((graph + i) * L + j).flatten()",
        ),
        (
            "edges that look at no query, key or value",
            "    _qkv.check(Q, K, V, self_attention=True, reads_values=True)\n",
            "",
        ),
        (
            "a policy gradient that makes good draws rarer",
            "return -((reward.detach() - baseline) * log_p)",
            "return ((reward.detach() - baseline) * log_p)",
        ),
    ],
)
