"""Routing: what centroids take is the mean of their softmaxes, and they follow their members."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from golden import drawn
from laws import (
    Case,
    D,
    Function,
    H,
    agree_with_gradients,
    work_grows_no_faster,
)
from refusals import of_no_kind, ranges, refused
from three import qkv, three
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.patterns import causal, full
from tfviz.sparse import routing_transformer as routing

GOLDEN = """
    1 . . . . .
    . . . . . .
    1 . 1 . . .
    . 1 . 1 . .
    1 1 1 1 1 .
    . 1 . 1 . 1
"""


def centroids(k: int, d: int = 6, seed: int = 1) -> Tensor:
    dice = torch.Generator().manual_seed(seed)
    return torch.randn(3, k, d, dtype=torch.float64, generator=dice)


def test_six_tokens_and_two_centroids_by_hand() -> None:
    degrees = torch.tensor([[10.0, 200.0, -20.0, 100.0, 40.0, 80.0], [0, 90, 20, 95, -10, 100]])
    Q, K = torch.stack([degrees.deg2rad().cos(), degrees.deg2rad().sin()], -1)
    mu = torch.eye(2)
    assert routing.clusters(Q, mu).tolist() == [0, 1, 0, 1, 0, 1]
    assert routing.members(Q, mu, 3).tolist() == [[0, 2, 4], [3, 4, 5]]
    assert routing.members(K, mu, 3).tolist() == [[0, 2, 4], [1, 3, 5]]
    q, k = (routing.taken(routing.members(X, mu, 3), 6) for X in (Q, K))
    meet = routing.together(q, k, causal=True)
    wanted = drawn(GOLDEN)
    assert meet.any(0).equal(wanted)  # nobody takes query 1; both take query 4
    _, A = routing.routing_definition(Q, K, K, meet)
    torch.testing.assert_close(A.sum(-1), torch.tensor([1.0, 0, 1, 1, 1, 1]))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("k", "w"), [(4, 6), (3, 4), (5, 12), (24, 1)])
def test_what_centroids_take_is_the_definition(is_causal: bool, k: int, w: int) -> None:
    leaves, mu = qkv(), centroids(k)
    q, k_ = (routing.taken(routing.members(X, mu, w), 24) for X in leaves[:2])
    meet = routing.together(q, k_, causal=is_causal)
    wanted, A = routing.routing_definition(*leaves, meet)
    agree_with_gradients(routing.routing_attention(*leaves, mu, w, is_causal), wanted, leaves)
    some = meet.any(-1).any(-2)
    torch.testing.assert_close(A.sum(-1), some.double())
    if w * k <= 24:  # then some query is in no cluster, and says nothing
        assert not some.all() and (wanted[~some] == 0).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_one_cluster_is_attention(is_causal: bool) -> None:
    leaves = qkv()
    pattern = causal() if is_causal else full()
    got = routing.routing_attention(*leaves, centroids(1), 24, is_causal)
    agree_with_gradients(got, attention(*leaves, pattern)[0], leaves)


def test_only_directions_are_routed() -> None:
    X, mu = qkv()[0], centroids(5)
    louder = X * torch.rand(2, 3, 24, 1, dtype=torch.float64).add(0.1)
    assert routing.clusters(louder, mu).equal(routing.clusters(X, mu))
    assert routing.members(louder, mu, 7).equal(routing.members(X, mu, 7))


def test_centroids_come_to_rest_at_the_mean_of_their_members() -> None:
    X, mu, count = qkv(60)[0], centroids(4), torch.ones(3, 4, dtype=torch.float64)
    for _ in range(400):
        mu, count = routing.moved(mu, count, X, decay=0.8)
    at, x = routing.clusters(X, mu), F.normalize(X, dim=-1)
    for head in range(3):
        for c in at[:, head].unique():
            mine = at[:, head] == c
            torch.testing.assert_close(mu[head, c], x[:, head][mine].mean(0))
            torch.testing.assert_close(count[head, c], mine.sum().double())


def test_a_step_by_hand_and_who_has_no_member_stays() -> None:
    mu, count = torch.eye(2)[None].repeat(1, 1, 1), torch.tensor([[3.0, 1.0]])
    X = torch.tensor([[[[2.0, 0.0], [0.6, 0.8], [0.8, 0.6]]]])  # the second goes to (0, 1)
    new, n = routing.moved(mu, count, X[:, :, ::2], decay=0.5)
    torch.testing.assert_close(n, torch.tensor([[2.5, 0.5]]))
    torch.testing.assert_close(new[0], torch.tensor([[(1.5 + 0.9) / 2.5, 0.3 / 2.5], [0.0, 1.0]]))
    assert routing.clusters(X, mu).tolist() == [[[0, 1, 0]]]


def test_centroids_get_no_gradient_and_move_in_training_only() -> None:
    core, (Q, K, V) = routing.Routing(3, 6, k=4, decay=0.5).double(), qkv()
    assert not list(core.parameters())
    before = core.mu.clone()
    core.eval()(Q, K, V, Where(causal()))
    assert core.mu.equal(before)
    out, _ = core.train()(Q, K, V, Where(causal()))
    assert not core.mu.equal(before) and not core.mu.requires_grad
    torch.testing.assert_close(out, routing.routing_attention(Q, K, V, before, 6, causal=True))


def test_a_later_token_may_change_who_is_taken() -> None:
    QKV = three(x.detach() for x in qkv())
    other = three(torch.cat([x[..., :20, :], torch.randn_like(x[..., 20:, :])], -2) for x in QKV)
    found = [routing.routing_attention(*X, centroids(4), 6, True) for X in (QKV, other)]
    assert not found[0][..., :20, :].allclose(found[1][..., :20, :])
    whole = [routing.routing_attention(*X, centroids(4), 24, True) for X in (QKV, other)]
    torch.testing.assert_close(whole[0][..., :20, :], whole[1][..., :20, :])  # all are taken


def test_work_grows_as_its_square_root_says() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        k = round(L**0.5)
        mu = torch.randn(1, k, 16)
        return partial(routing.routing_attention, mu=mu, w=L // k, causal=True)

    work_grows_no_faster(attend, 1.6)


@pytest.mark.parametrize("is_causal", [False, True])
def test_parity_with_routing_transformer(is_causal: bool) -> None:
    """Its mean divides by the number + 1e-5. Causal, it adds a learned key to each cluster, which
    here gets no weight; queries are keys, so that every query finds one besides."""
    theirs = pytest.importorskip("routing_transformer.routing_transformer")
    module = theirs.KmeansAttention(4, 8, 3, 6, causal=is_causal).double().eval()
    Q, K, V = (x.detach() for x in qkv())
    V = torch.cat([V, V[..., :1]], -1)
    if is_causal:
        K = Q = torch.cat([torch.ones_like(Q[..., :1]), Q[..., 1:]], -1)
        module.mem_key.data.zero_()[..., 0] = -1e5
    mu = F.normalize(centroids(4), dim=-1)
    module.kmeans.means.copy_(mu)
    module.kmeans.initted.fill_(True)
    wanted, _ = module(Q, K, V)
    got = routing.routing_attention(Q, K, V, mu, 8, is_causal)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=2e-5)


def test_shared_heads_are_heads_repeated() -> None:
    Q, K, V = qkv(h=4)
    shared, core = (K[:, :2], V[:, :2]), routing.Routing(4, 6, k=3).double().eval()
    many = [x.repeat_interleave(2, 1) for x in shared]
    torch.testing.assert_close(core(Q, *shared, Where())[0], core(Q, *many, Where())[0])


@pytest.mark.parametrize("learns", [False, True])
def test_autocast_changes_the_numbers_a_little_and_the_type_never(learns: bool) -> None:
    core, X = routing.Routing(3, 6, k=1), [x.detach().float() for x in qkv()]
    X[0].requires_grad_(learns)
    wanted = core.eval()(*X, Where(causal()))[0]
    with torch.autocast("cpu", torch.bfloat16):
        got = core.train()(*X, Where(causal()))[0]
        core(*(x.bfloat16() for x in X), Where(causal()))
    assert got.dtype == torch.float32 and core.mu.dtype == torch.float32
    torch.testing.assert_close(got, wanted, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_can_be_differentiated(is_causal: bool) -> None:
    Q, K, _ = qkv()
    V = torch.randn_like(Q, requires_grad=True)  # as wide as the queries: the fused kernel's case
    pattern = causal() if is_causal else full()
    ways = (
        routing.routing_attention(Q, K, V, centroids(1), 24, is_causal),
        attention(Q, K, V, pattern)[0],
    )
    first = [torch.autograd.grad(out.sin().sum(), Q, create_graph=True)[0] for out in ways]
    agree_with_gradients(first[0], first[1], [Q, K, V])


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    refused("mu holds NaN", routing.routing_attention, Q, K, V, centroids(4) * torch.nan, 6)
    of_no_kind("mu has dtype torch.int64", routing.clusters, Q, centroids(4).long())
    ranges(partial(routing.members, Q, centroids(4)), w=(6, 1, 24))
    refused("X has rows of 6 numbers, mu has 8", routing.clusters, Q, centroids(4, d=8))
    refused("decay = 2", routing.moved, centroids(4), torch.ones(3, 4), Q, decay=2)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def mean_of_clusters(
    core: routing.Routing, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    w = -(-Q.shape[2] // core.k)
    q, k = (routing.taken(routing.members(X, core.mu, w), X.shape[2]) for X in (Q, K))
    return routing.routing_definition(Q, K, V, routing.together(q, k) & mask)


def of_four(Q: Tensor, K: Tensor, V: Tensor) -> Any:
    q, k = (routing.taken(routing.members(x, centroids(4), 6), x.shape[2]) for x in (Q, K))
    return routing.routing_definition(Q, K, V, routing.together(q, k))


ROUNDING = "a member that rounding changes brings other pairs together"


CASE = Case(
    lambda: routing.Routing(H, D, k=3),
    mean_of_clusters,
    answers="whole",
    sized=lambda L: routing.Routing(H, D, k=round(L**0.5)),
    grows=1.6,
    functions={
        "routing": Function(
            lambda Q, K, V: routing.routing_attention(Q, K, V, centroids(4), 6),
            of_four,
            length=150,
            but={"half_precision_is_near": ROUNDING},
        )
    },
    but={
        "rows_are_shares_of_what_is_allowed": "whom no centroid takes gets 0",
        "the_future_changes_no_bit": "whom a centroid takes depends on later tokens",
        "any_real_type": ROUNDING,
        "half_precision_is_near": ROUNDING,
    },
    mutants=[
        (
            "routing whose shared heads take turns",
            "X.repeat_interleave(Q.shape[1] // X.shape[1], 1)",
            "X.repeat(1, Q.shape[1] // X.shape[1], 1, 1)",
        ),
        (
            "centroids that count members anew at each step",
            "new = decay * count + (1 - decay) * many",
            "new = many.clamp(min=1)",
        ),
        (
            "routed queries that compare seats instead of places",
            "(i.unsqueeze(-1) >= j.unsqueeze(-2))",
            "torch.ones_like(i.unsqueeze(-1) >= j.unsqueeze(-2)).tril()",
        ),
    ],
)
