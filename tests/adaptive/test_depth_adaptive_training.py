"""Anytime training: the last exit is the model, one exit is plain training, what left is copied."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from laws import Case
from refusals import ranges, refused
from torch import Generator, Tensor

from tfviz.adaptive.depth_adaptive_training import (
    aligned_loss,
    exit_losses,
    leave_at,
    mixed_loss,
    read,
    states,
)
from tfviz.models.gpt import GPT
from tfviz.position.rope import Rope
from tfviz.training import seeded


def model_and_text(N: int = 3, L: int = 9) -> tuple[GPT, Tensor, Tensor]:
    model = seeded(1, lambda: GPT(11, 12, 2, N, core=Rope)).double()
    t = torch.randint(11, (2, L + 1), generator=Generator().manual_seed(0))
    return model, t[:, :-1], t[:, 1:]


def plain(model: GPT, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def test_the_last_exit_is_the_model() -> None:
    model, x, y = model_and_text()
    torch.testing.assert_close(read(model, states(model, x))[-1], model(x))
    torch.testing.assert_close(exit_losses(model, x, y)[-1], plain(model, x, y))


def test_every_exit_is_a_shallower_model() -> None:
    model, x, y = model_and_text()
    losses, blocks = exit_losses(model, x, y), model.stack.blocks
    for n in (1, 2):
        model.stack.blocks = blocks[:n]
        torch.testing.assert_close(plain(model, x, y), losses[n - 1])


def test_weights_and_limits() -> None:
    model, x, y = model_and_text()
    losses = exit_losses(model, x, y)
    torch.testing.assert_close(aligned_loss(model, x, y), losses.mean())
    torch.testing.assert_close(
        aligned_loss(model, x, y, (1, 2, 5)), (losses * torch.tensor([1, 2, 5])).sum() / 8
    )
    torch.testing.assert_close(aligned_loss(model, x, y, (0, 0, 3)), plain(model, x, y))
    shares = torch.tensor([0.1, 0.3, 0.7], dtype=torch.float64)  # in doubles, as the model is
    found = aligned_loss(model, x, y, shares.tolist())
    torch.testing.assert_close(found, (losses * shares).sum() / 1.1, atol=1e-14, rtol=1e-14)
    one, x, y = model_and_text(N=1)
    torch.testing.assert_close(aligned_loss(one, x, y), plain(one, x, y))
    drawn = mixed_loss(one, x, y, Generator().manual_seed(0), M=2)
    torch.testing.assert_close(drawn, plain(one, x, y))


def test_every_block_learns_from_its_own_exit() -> None:
    model, x, y = model_and_text()
    second, third = (list(model.stack.blocks[n].parameters()) for n in (1, 2))
    first = torch.autograd.grad(
        aligned_loss(model, x, y, (1, 0, 0)), second, allow_unused=True, materialize_grads=True
    )
    assert not any(g.any() for g in first)
    assert all(g.any() for g in torch.autograd.grad(aligned_loss(model, x, y), third))


def test_what_left_is_copied_up() -> None:
    """Token by token: a block's query is the token's own, its keys are what each token has."""
    model, x, _ = model_and_text()
    n = torch.randint(1, 4, x.shape, generator=Generator().manual_seed(3))
    X = model.embed(x)
    for below, block in enumerate(model.stack.blocks):
        rows = [block(X)[b, t] if n[b, t] > below else X[b, t] for b in (0, 1) for t in range(9)]
        X = torch.stack(rows).view_as(X)
    torch.testing.assert_close(leave_at(model, x, n), X)
    torch.testing.assert_close(leave_at(model, x, torch.full_like(n, 3)), states(model, x)[-1])
    torch.testing.assert_close(leave_at(model, x, torch.ones_like(n)), states(model, x)[0])


def test_the_mixed_loss_draws_all_exits_alike() -> None:
    model, x, y = model_and_text(N=2, L=1)  # one token: its exit alone counts
    both = exit_losses(model, x[:1], y[:1])
    rng = Generator().manual_seed(5)
    drawn = torch.stack([mixed_loss(model, x[:1], y[:1], rng) for _ in range(200)])
    low = (drawn - both[0]).abs() < 1e-9
    assert ((drawn - both[1]).abs() < 1e-9).equal(~low) and 80 < low.sum() < 120
    many = mixed_loss(model, x[:1], y[:1], Generator().manual_seed(5), M=200)
    assert math.isclose(many.item(), drawn.mean().item(), rel_tol=1e-6)


def test_bad_input_is_named() -> None:
    model, x, y = model_and_text()
    refused("omega = (1, 2), and the model has 3 exits", aligned_loss, model, x, y, (1, 2))
    refused("not all 0", aligned_loss, model, x, y, (0, 0, 0))
    refused("give each token a block from 1 to 3", leave_at, model, x, torch.full_like(x, 4))
    ranges(partial(mixed_loss, model, x, y, Generator()), M=(2, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "exits weighed in single precision",
            "omega, dtype=torch.float64)",
            "omega, dtype=torch.float32)",
        ),
        (
            "what left is computed on",
            "torch.where((n > below)[..., None], block(X), X)",
            "block(X)",
        ),
        (
            "exits that all weigh the same",
            "(weights * losses).sum()",
            "losses.mean() * weights.sum()",
        ),
    ],
)
