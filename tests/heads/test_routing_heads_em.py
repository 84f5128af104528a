"""EM routing of heads: rounds by hand, the definition, mixtures, floors and far votes, a model."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, agree_with_gradients, work_grows_no_faster
from refusals import of_no_kind, ranges, refused
from torch import Tensor
from torch.distributions import Normal

from tfviz import GPT
from tfviz.heads.routing_heads_em import EMRouting, em_definition, em_rounds
from tfviz.training import next_token, train

close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)
WIDTH, HEADS, LENGTH = 12, 4, 5


def votes(*before: int, h: int = 4, outputs: int = 3, d: int = 5, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*before, h, outputs, d, dtype=torch.float64, generator=rng)


# --- by hand --------------------------------------------------------------------------------------


def test_rounds_by_hand() -> None:
    """Two heads say 0 and one says 6; for the other output 1, −1 and 0. All outputs equally sure,
    and nearly no floor."""
    u = torch.tensor([[[0.0], [1.0]], [[0.0], [-1.0]], [[6.0], [0.0]]], dtype=torch.float64)
    first, second = em_rounds(u, 2, sharpness=0.0, floor=1e-12)
    assert first.mean.flatten().tolist() == [2.0, 0.0] and first.sure.tolist() == [0.5, 0.5]
    close(first.variance.flatten(), torch.tensor([8.0, 2 / 3], dtype=torch.float64))
    far = math.exp(-16 / 16) / math.sqrt(8)  # of 6 from 2, but for 1/√(2π)
    near = 1 / math.sqrt(2 / 3)  # of 0 from 0
    close(second.shares[2, 0].item(), far / (far + near))
    said = math.exp(-4 / 16) / math.sqrt(8)
    other = math.exp(-1 / (4 / 3)) / math.sqrt(2 / 3)
    close(second.shares[:2, 0], torch.full((2,), said / (said + other), dtype=torch.float64))


def test_how_sure_an_output_is_by_hand() -> None:
    u = torch.tensor([[[1.0, 0.0]], [[3.0, 4.0]]], dtype=torch.float64)
    (fit,) = em_rounds(u, 1, beta_s=0.5, beta_p=2.0, sharpness=0.1, floor=1e-12)
    cost = 2 * ((0.5 + math.log(1)) + (0.5 + math.log(2)))  # R = 2; σ = 1 and 2
    sure = 1 / (1 + math.exp(-0.1 * (2 - cost)))
    close(fit.sure.item(), sure)
    close(fit.out, sure * torch.tensor([[2.0, 2.0]]).double())


# --- the definition, and what must hold -----------------------------------------------------------

SETTINGS: list[dict[str, Any]] = [
    {},
    {"beta_s": 0.4, "beta_p": -0.3, "sharpness": 0.2, "floor": 1e-2},
    {"sharpness": 0.0},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_equal_to_the_definition_with_gradients(rounds: int, settings: dict[str, Any]) -> None:
    u, a = votes(6, seed=1).requires_grad_(), torch.rand(6, 4, dtype=torch.float64) + 0.2
    for counts in (None, a):
        got = em_rounds(u, rounds, counts=counts, **settings)[-1]
        tokens = [
            em_definition(x, rounds, counts=None if counts is None else counts[n], **settings)
            for n, x in enumerate(u)
        ]
        agree_with_gradients(got.out, torch.stack([x.out for x in tokens]), [u])
        for n in range(4):
            torch.testing.assert_close(got[n], torch.stack([x[n] for x in tokens]))


def test_shares_sum_to_one_over_outputs() -> None:
    for fit in em_rounds(3 * votes(7), 5):
        close(fit.shares.sum(-1), torch.ones(7, 4).double())
        assert ((fit.sure > 0) & (fit.sure < 1)).all()


def test_without_costs_it_is_em_of_a_mixture() -> None:
    """With outputs that are equally sure, a round is one step of EM for Gaussians with equal
    weights, with a vote for each pair; the likelihood of the votes does not fall."""
    u = votes(h=30, outputs=2, d=2)
    likelihoods = []
    for fit in em_rounds(u, 12, sharpness=0.0, floor=1e-9):
        log_p = Normal(fit.mean, fit.variance.sqrt()).log_prob(u).sum(-1)
        likelihoods.append(log_p.logsumexp(-1).sum())
    gains = torch.stack(likelihoods).diff()
    assert (gains > -1e-9).all() and gains[0] > 1e-3


def test_equal_votes_need_the_floor() -> None:
    u = votes(h=1, outputs=2, d=3).expand(4, 2, 3).clone().requires_grad_()  # one vote, from all
    fit = em_rounds(u, 4, floor=1e-4)[-1]
    close(fit.mean, u[0])
    assert fit.variance.allclose(torch.tensor(1e-4).double(), rtol=1e-6)
    fit.out.sum().backward()
    assert u.grad is not None and u.grad.isfinite().all()
    refused("floor = 0 divides by the variance of equal votes … give 1e-4", em_rounds, u, floor=0)


def test_far_votes_have_shares_where_densities_vanish() -> None:
    """Logarithms hold where a density underflows: the plain formula gives 0/0."""
    u = votes(h=8, outputs=2, d=64)  # one of eight votes is far in 64 numbers: e^(−224)
    u[0] += 30.0
    naive, ours = em_definition(u.float(), 3), em_rounds(u.float(), 3)[-1]
    assert naive.shares.isnan().any()
    assert all(x.isfinite().all() for x in ours)
    torch.testing.assert_close(ours.shares.sum(-1), torch.ones(8))


def test_an_outlier_is_left_out_wherever_it_lies() -> None:
    u = 0.3 * votes(100, h=8, outputs=2, d=2)
    honest = em_rounds(u, 4)[-1].mean[:, 0]
    for way in ((-6.0, 0.0), (6.0, 0.0), (0.0, 6.0)):
        wrong = u.clone()
        wrong[:, 0, 0] += torch.tensor(way)
        fit = em_rounds(wrong, 4)[-1]
        assert fit.shares[:, 0, 0].mean() < 0.05
        moved = (fit.mean[:, 0] - honest).norm(dim=-1).median()
        assert moved < 0.25 < (wrong - u).mean(1)[:, 0].norm(dim=-1).mean()


def test_a_head_that_does_not_count_is_not_heard() -> None:
    u, counts = votes(5), torch.ones(5, 4).double()
    counts[:, 2] = 0
    fit, without = em_rounds(u, 3, counts=counts)[-1], em_rounds(u[:, [0, 1, 3]], 3)[-1]
    close(fit.out, without.out)


# --- the code of others ---------------------------------------------------------------------------


def test_a_second_normalisation_takes_the_counts_out_again() -> None:
    """Code for translation multiplies the shares by the counts and divides by their sum over
    outputs. The counts are the same for all outputs, so they are gone."""
    shares, counts = torch.rand(6, 4, 3).softmax(-1), torch.rand(6, 4) + 0.1
    heard = shares * counts[..., None]
    torch.testing.assert_close(heard / heard.sum(-1, keepdim=True), shares)
    u = votes(6)
    apart = em_rounds(u, 3, counts=counts.double())[-1].out - em_rounds(u, 3)[-1].out
    assert apart.abs().max() > 0.01  # in the paper they count


# --- in a model -----------------------------------------------------------------------------------


@torch.no_grad()
def test_tokens_are_routed_each_for_itself() -> None:
    model = GPT(9, WIDTH, HEADS, 2, join=EMRouting).double()
    t = torch.randint(9, (2, LENGTH))
    cache = dict[Any, Any]()
    torch.testing.assert_close(torch.cat([model(x, cache) for x in t.split(1, 1)], 1), model(t))


def test_a_model_with_it_learns() -> None:
    torch.manual_seed(0)
    model = GPT(10, 16, 4, 2, join=EMRouting)
    losses = train(model, next_token(torch.arange(500) % 10, 8, 16), 120, lr=1e-2, progress=False)
    assert losses[-1] < 0.3 < losses[0]


def test_it_has_two_numbers_an_output_more_than_the_projection() -> None:
    routing = EMRouting(WIDTH, HEADS, 3)
    assert sum(p.numel() for p in routing.parameters()) == WIDTH**2 + 2 * 3
    routing(torch.randn(2, HEADS, LENGTH, 3)).square().sum().backward()
    for p in routing.parameters():
        assert p.grad is not None and p.grad.isfinite().all() and (p.grad != 0).all()


def test_it_is_told_how_sharp_and_with_which_floor() -> None:
    heads = torch.randn(1, HEADS, LENGTH, 3)
    made = EMRouting(WIDTH, HEADS, rounds=2, sharpness=0.3, floor=0.1)
    fit = em_rounds(made.votes(heads), 2, sharpness=0.3, floor=0.1)[-1]
    close(made(heads), fit.out.flatten(2))


def test_work_is_linear_in_the_length() -> None:
    torch.manual_seed(0)
    routing = EMRouting(16, 4)
    work_grows_no_faster(
        lambda L: lambda heads: routing(heads), 1.1, leaves=lambda L: [(1, 4, L, 4)]
    )


# --- what it refuses ------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    refused("votes has shape (3, 5); give (…, heads, outputs, numbers)", em_rounds, votes()[0])
    of_no_kind("votes", em_rounds, [[1.0]])
    refused(
        "counts has shape (3,) … give a number for each head, (4,)",
        em_rounds,
        votes(),
        counts=torch.ones(3),
    )
    ranges(partial(em_rounds, votes()), rounds=(2, 1), sharpness=(0.5, 0.0))
    refused("floor = -1.0 is out of range", em_rounds, votes(), floor=-1.0)
    refused("h = 5, outputs = 5", EMRouting, 12, 5)
    ranges(partial(EMRouting, 12, 4), outputs=(3, 1), rounds=(2, 1))


CASE = Case(
    mutants=[
        ("no floor", "(weights * apart**2).sum(-3) + floor", "(weights * apart**2).sum(-3)"),
        ("a standard deviation for the variance", "torch.log(variance) / 2", "torch.log(variance)"),
        ("nobody is sure", "log_joint = log_sure[..., None, :] - far", "log_joint = -far"),
        ("a cost for each output alike", ".sum(-1) * total", ".sum(-1)"),
        ("counts that nobody reads", "if counts is None else shares * counts[..., None]", ""),
        ("densities without their height", "far - normal[..., None, :]", "far"),
        ("the mean alone", "self.sure[..., None] * self.mean", "self.mean"),
        (
            "votes that are normalised over heads",
            "log_joint.logsumexp(-1, k",
            "log_joint.logsumexp(-2, k",
        ),
    ],
)
