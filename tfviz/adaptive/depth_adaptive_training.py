"""Anytime training: an exit after every block, so that one network answers at any depth.

    LLⁿ = Σ_t log P(y_t | h_tⁿ)           what the exit after block n gives to the right tokens

    𝓛_aligned = −1/Σω_n · Σ_n ω_n LLⁿ     all exits at once, each on states of its own depth
    𝓛_mixed = −1/M Σ_r Σ_t LL_t^{n_t}     M draws of an exit n_t for each token

In mixed training a token that has left has no state further up, so its last one is copied.

Elbayad, Gu, Grave, Auli 2020 (arXiv 1910.10073), where the exits are a decoder's. Where we deviate:
a GPT in the place of an encoder and a decoder, one norm and the embedding as the classifier of all
exits, and means over tokens for sums (the 1/M of the mixed loss is the paper's, equation 5).

>>> from tfviz.models.gpt import GPT
>>> model, t = GPT(vocab=11, d=8, h=2, N=3), torch.tensor([[3, 1, 4]])
>>> read(model, states(model, t)).shape  # what each of three exits says of three tokens
torch.Size([3, 1, 3, 11])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.blocks import Tokens
from tfviz.models.gpt import GPT

__all__ = ["aligned_loss", "exit_losses", "mixed_loss"]


def states(model: GPT, t: Tokens) -> Float[Tensor, "N b L d"]:
    """What leaves each block, the lowest first: the stream, not yet normalised."""
    X, found = model.embed(t), []
    for block in model.stack.blocks:
        X = block(X)
        found.append(X)
    return torch.stack(found)


def read(model: GPT, X: Float[Tensor, "... d"]) -> Float[Tensor, "... vocab"]:
    """Logits of an exit: the classifier is the model's own, the same for all."""
    logits: Tensor = model.stack.norm(X) @ model.embed.weight.T
    return logits


@named
def exit_losses(model: GPT, x: Tokens, y: Tokens) -> Float[Tensor, "N"]:
    """−LLⁿ of each exit, in nats per token."""
    logits = read(model, states(model, x))
    return torch.stack([F.cross_entropy(exit_.flatten(0, 1), y.flatten()) for exit_ in logits])


@named
def aligned_loss(
    model: GPT, x: Tokens, y: Tokens, omega: Sequence[float] | None = None
) -> Float[Tensor, ""]:
    """The mean of all exits' losses, weighted by ω_n; 1 for each if none are given."""
    N = len(model.stack.blocks)
    # in doubles, so that a model in doubles is weighed as exactly as it computes
    weights = torch.as_tensor([1.0] * N if omega is None else omega, dtype=torch.float64)
    if len(weights) != N or not (weights >= 0).all() or not weights.sum() > 0:
        raise ValueError(
            f"omega = {omega}, and the model has {N} exits; give one weight for each, none below "
            "0 and not all 0"
        )
    losses = exit_losses(model, x, y)
    weights = weights.to(losses)
    return (weights * losses).sum() / weights.sum()


def leave_at(model: GPT, t: Tokens, n: Int[Tensor, "b L"]) -> Float[Tensor, "b L d"]:
    """The state with which each token leaves, token by token after block n_t = 1 … N.

    A token that left lower is copied up: higher blocks make its keys and values from that state.
    """
    N = len(model.stack.blocks)
    if n.shape != t.shape or n.min() < 1 or n.max() > N:
        raise ValueError(
            f"n has shape {tuple(n.shape)} and values {n.min()} to {n.max()}, t has shape "
            f"{tuple(t.shape)}; give each token a block from 1 to {N}"
        )
    X = model.embed(t)
    for below, block in enumerate(model.stack.blocks):
        X = torch.where((n > below)[..., None], block(X), X)
    return X


@named
def mixed_loss(model: GPT, x: Tokens, y: Tokens, rng: Generator, M: int = 1) -> Float[Tensor, ""]:
    """Nats per token, each token read at an exit that is drawn for it, M times over."""
    N, total = len(model.stack.blocks), torch.zeros(())
    for _ in range(_arguments.integer("M", M, 1)):
        n = torch.randint(1, N + 1, x.shape, generator=rng)
        logits = read(model, leave_at(model, x, n))
        total = total + F.cross_entropy(logits.flatten(0, 1), y.flatten())
    return total / M
