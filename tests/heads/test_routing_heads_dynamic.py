"""Dynamic routing of heads: rounds by hand, the definition, limits, W^o as one round, a model."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case, agree_with_gradients, work_grows_no_faster
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz import GPT
from tfviz.heads import routing_heads_dynamic as dynamic
from tfviz.heads.routing_heads_dynamic import DynamicRouting, HeadVotes, routing_rounds, squash
from tfviz.models.blocks import MultiHeadAttention
from tfviz.training import next_token, train

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
WIDTH, HEADS, LENGTH = 12, 4, 5


def votes(*before: int, h: int = 4, outputs: int = 3, d: int = 5, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*before, h, outputs, d, dtype=torch.float64, generator=rng)


# --- by hand --------------------------------------------------------------------------------------


def test_rounds_by_hand() -> None:
    """Two heads say 1, one says −1; for the other output nobody says anything."""
    u = torch.tensor([[[1.0], [0.0]], [[1.0], [0.0]], [[-1.0], [0.0]]], dtype=torch.float64)
    first, second = routing_rounds(u, 2, squashed=False)
    assert first.shares.tolist() == 3 * [[0.5, 0.5]] and first.out[0].item() == pytest.approx(1 / 3)
    more = 1 / (1 + math.exp(-1 / 3))  # of those who say 1, after they agreed by 1/3
    close(second.shares[:, 0], torch.tensor([more, more, 1 - more], dtype=torch.float64))
    close(second.out[0, 0].item(), (2 * more - (1 - more)) / (1 + more))
    squashed = routing_rounds(u, 1)[0]
    assert squashed.out.flatten().tolist() == pytest.approx([0.2, 0.0])  # of 1/2: 1/4 over 5/4


def test_squash_by_hand() -> None:
    s = torch.tensor([3.0, 4.0], dtype=torch.float64)
    close(squash(s), 25 / 26 * s / 5)
    zero = torch.zeros(2, 3, requires_grad=True)
    squash(zero).sum().backward()
    assert zero.grad is not None and zero.grad.isfinite().all() and squash(zero).eq(0).all()
    far = squash(1e3 * votes())
    assert ((far.norm(dim=-1) < 1) & (far.norm(dim=-1) > 0.99)).all()


# --- the definition, and what must hold -----------------------------------------------------------


@pytest.mark.parametrize("squashed", [True, False])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_equal_to_the_definition_with_gradients(rounds: int, squashed: bool) -> None:
    u = votes(6).requires_grad_()
    shares, out = routing_rounds(u, rounds, squashed)[-1]
    tokens = [dynamic.dynamic_definition(x, rounds, squashed) for x in u]
    close(shares, torch.stack([x.shares for x in tokens]))
    agree_with_gradients(out, torch.stack([x.out for x in tokens]), [u])


def test_each_head_divides_one_among_the_outputs() -> None:
    for shares, out in routing_rounds(2 * votes(7), 5):
        close(shares.sum(-1), torch.ones(7, 4).double())
        assert (out.norm(dim=-1) < 1).all()
    assert (shares.sum(-2) - 1).abs().max() > 0.1  # outputs are not equally popular


def test_agreement_grows_where_votes_lie_together() -> None:
    """Four heads vote alike for output 0, and at random for the others."""
    u = votes(50, outputs=3)
    u[:, :, 0] = 2 * F.normalize(u[:, :1, 0], dim=-1) + 0.1 * u[:, :, 0]
    shares = torch.stack([x.shares[:, :, 0].mean() for x in routing_rounds(u, 5)])
    assert (shares.diff() > 0).all() and shares[-1] > 0.8


def test_with_one_output_nothing_is_routed() -> None:
    """A head has nobody else to give its share to, so every round is the first: the plain sum."""
    u = votes(3, outputs=1)
    for shares, out in routing_rounds(u, 4):
        assert shares.eq(1).all()
        close(out, squash(u.sum(-3)))


def test_a_vote_to_the_other_side_loses_and_a_long_one_wins() -> None:
    """Agreement is a product: it grows with the length of a vote."""
    u = votes(200, h=8, outputs=2, d=4)
    u[:, :, 0] = torch.tensor([1.5, 0, 0, 0]) + 0.3 * u[:, :, 0]
    for shift, lower, upper in ((-4.0, 0.0, 0.02), (4.0, 0.98, 1.0)):
        wrong = u.clone()
        wrong[:, 0, 0, 0] += shift
        share = routing_rounds(wrong, 3, squashed=False)[-1].shares[:, 0, 0].mean()
        assert lower <= share <= upper


# --- in a model -----------------------------------------------------------------------------------


def test_one_round_of_simple_routing_is_the_output_projection() -> None:
    """The mean of the votes is W^o, cut into blocks, if each is h times its block."""
    routing = DynamicRouting(WIDTH, HEADS, 3, rounds=1, squashed=False).double()
    heads = torch.randn(2, HEADS, LENGTH, WIDTH // HEADS, dtype=torch.float64)
    W_o = routing.votes.W.transpose(1, 2).reshape(WIDTH, WIDTH) / HEADS
    close(routing(heads), heads.transpose(1, 2).flatten(2) @ W_o)
    assert sum(p.numel() for p in routing.parameters()) == WIDTH**2


def test_votes_begin_as_widely_spread_as_a_linear_layer() -> None:
    mean = HeadVotes(64, 4).W.transpose(1, 2).reshape(64, 64) / 4
    assert mean.abs().max() < 1 / 8 and abs(mean.std() * 8 * math.sqrt(3) - 1) < 0.05


@torch.no_grad()
def test_tokens_are_routed_each_for_itself() -> None:
    """So a model with it is causal, and writes with a cache what it would without."""
    model = GPT(9, WIDTH, HEADS, 2, join=DynamicRouting).double()
    t = torch.randint(9, (2, LENGTH))
    cache = dict[Any, Any]()
    parts = torch.cat([model(x, cache) for x in t.split(1, 1)], 1)
    close(parts, model(t))
    assert "W_o" not in dict(model.named_parameters())


def test_a_model_with_it_learns() -> None:
    torch.manual_seed(0)
    model = GPT(10, 16, 4, 2, join=DynamicRouting)
    losses = train(model, next_token(torch.arange(500) % 10, 8, 16), 120, lr=1e-2, progress=False)
    assert losses[-1] < 0.3 < losses[0]
    attend = MultiHeadAttention(16, 4, join=DynamicRouting)
    attend(torch.randn(1, 5, 16)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in attend.parameters())


def test_work_is_linear_in_the_length() -> None:
    torch.manual_seed(0)
    routing = DynamicRouting(16, 4)
    work_grows_no_faster(
        lambda L: lambda heads: routing(heads), 1.1, leaves=lambda L: [(1, 4, L, 4)]
    )


# --- the code of others ---------------------------------------------------------------------------


def labml_rule(u: Tensor, rounds: int, axis: int) -> tuple[Tensor, Tensor]:
    """The rounds of labml's capsule_networks.Router, whose softmax runs over axis 1 of (batch,
    inputs, outputs): the inputs. The paper's runs over the outputs, axis 2. Typed from its code,
    for the package does not install beside torch 2.13."""
    b = torch.zeros(u.shape[:3], dtype=u.dtype)
    for _ in range(rounds):
        c = b.softmax(axis)
        s = torch.einsum("bij,bijm->bjm", c, u)
        s2 = (s**2).sum(-1, keepdim=True)
        v = (s2 / (1 + s2)) * (s / torch.sqrt(s2 + 1e-8))
        b = b + torch.einsum("bjm,bijm->bij", v, u)
    return c, v


def test_labml_normalises_over_the_other_axis() -> None:
    u = votes(6, h=5, outputs=3)
    ours = routing_rounds(u, 3)[-1]
    c, v = labml_rule(u, 3, axis=2)
    torch.testing.assert_close(tuple(ours), (c, v), atol=1e-6, rtol=1e-6)  # but for its 1e-8
    c, v = labml_rule(u, 3, axis=1)
    close(c.sum(1), torch.ones(6, 3).double())  # each output is divided among the heads
    assert (c.sum(2) - 1).abs().max() > 0.3 and (v - ours.out).abs().max() > 0.3


# --- what it refuses ------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    refused("votes has shape (3, 5); give (…, heads, outputs, numbers)", routing_rounds, votes()[0])
    of_no_kind("votes", routing_rounds, [[1.0]])
    of_no_kind("votes", routing_rounds, votes().long())
    ranges(partial(routing_rounds, votes()), rounds=(2, 1))
    ranges(partial(DynamicRouting, 12, 4), outputs=(3, 1), rounds=(2, 1))
    refused("h = 5, outputs = 5; h and outputs must divide d", DynamicRouting, 12, 5)
    refused("outputs = 5; h and outputs must divide d", HeadVotes, 12, 4, 5)
    refused(
        "heads have shape (2, 3, 5, 3); give (batch, 4, L, 3)",
        HeadVotes(12, 4),
        torch.zeros(2, 3, 5, 3),
    )


CASE = Case(
    mutants=[
        ("the other axis", "shares = agreed.softmax(-1)", "shares = agreed.softmax(-2)"),
        ("agreement that is forgotten", "agreed = agreed + torch", "agreed = 0 * agreed + torch"),
        (
            "a sum where the mean is due",
            "s / shares.sum(-2)[..., None]",
            "s",
        ),
        ("a length that may pass 1", "sqrt() / (1 + square)", "sqrt()"),
        (
            "votes that begin h times too small",
            "nn.init.uniform_(self.W, -h / math.sqrt(d), h / math.sqrt(d))",
            "nn.init.uniform_(self.W, -1 / math.sqrt(d), 1 / math.sqrt(d))",
        ),
        ("heads in another order", '"bmli,mcio->blmco"', '"bmli,mcio->blcmo"'),
    ],
)
