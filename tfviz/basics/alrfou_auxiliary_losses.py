"""Auxiliary losses: ask every position, every layer for a while, and two characters ahead.

    ℓ⁽ⁿ⁾_{i,m} = −log p⁽ⁿ⁾_m(x_{i+m} | x_{≤i})              layer n = 1 … N predicts m ahead of i

    𝓛(s) = Σ_n [n = N or s/T < n/2N] · 1/L Σ_i (ℓ⁽ⁿ⁾_{i,1} + ½ ℓ⁽ⁿ⁾_{i,2})     at step s of T

Al-Rfou, Choe, Constant, Guo, Jones 2018 (arXiv 1808.04444): 64 layers, windows of 512 characters, a
table of positions added to the input of each layer. Every pair of layer and target has its own
classifier; only that of (N, 1) is used afterwards.

Where we deviate: pre-norm blocks unless told otherwise, and then a LayerNorm before the classifiers
of each layer; no dropout. In code, layers and targets count from 0.

>>> scored(step=2, steps=16, N=4).tolist()
[False, True, True, True]
>>> steps_scored(16, 4).tolist()
[2, 4, 6, 16]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import places
from tfviz.models.blocks import Block, Embedding, Logits, Seq, Tokens, post_norm, pre_norm
from tfviz.models.padding import each_text_alone
from tfviz.patterns import causal
from tfviz.position.learned_pe import Learned

__all__ = ["DeepCharacterModel", "auxiliary_loss"]

WEIGHTS = (1.0, 0.5)
"""Of the next character, and of the one after it."""


# --- the schedule ---------------------------------------------------------------------------------


def scored(step: int, steps: int, N: int) -> Bool[Tensor, "N"]:
    """Which layers' losses are on in step s of T: n = N, or s/T < n/2N. In whole numbers: exact."""
    _arguments.integer("N", N, 1)
    _arguments.integer("step", step, 0, _arguments.integer("steps", steps, 1))
    return torch.tensor([n == N or 2 * N * step < n * steps for n in range(1, N + 1)])


def loss_weights(
    step: int, steps: int, N: int, targets: Sequence[float] = WEIGHTS
) -> Float[Tensor, "N M"]:
    """What ℓ⁽ⁿ⁾_{i,m} is multiplied by in this step, but for the mean over positions."""
    return scored(step, steps, N)[:, None] * torch.tensor(targets)


def steps_scored(steps: int, N: int) -> Int[Tensor, "N"]:
    """For how many of T steps each layer is scored: ⌈nT/2N⌉ below the last one."""
    steps, N = _arguments.integer("steps", steps, 1), _arguments.integer("N", N, 1)
    return torch.tensor([-(-n * steps // (2 * N)) for n in range(1, N)] + [steps])


# --- the model ------------------------------------------------------------------------------------


class Classifiers(nn.Module):
    """What one layer predicts with: for each target a matrix of its own, behind one norm."""

    def __init__(self, d: int, vocab: int, targets: int, norm: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d) if norm else nn.Identity()
        self.targets = nn.ModuleList(nn.Linear(d, vocab) for _ in range(targets))

    def forward(self, X: Seq, m: int) -> Logits:
        return self.targets[m](self.norm(X))


class DeepCharacterModel(nn.Module):
    """N causal blocks, positions P⁽ⁿ⁾ added before each, classifiers behind each."""

    @named
    def __init__(
        self, vocab: int, d: int, h: int, N: int, max_length: int, *, targets: int = 2,
        positions_per_layer: bool = True, order: Any = pre_norm,
    ) -> None:  # fmt: skip
        super().__init__()
        for name, size in (("vocab", vocab), ("N", N), ("targets", targets)):
            _arguments.integer(name, size, 1)
        tables = N if positions_per_layer else 1
        self.embed = Embedding(vocab, d)
        self.P = nn.ModuleList(Learned(max_length, d) for _ in range(tables))
        self.blocks = nn.ModuleList(Block(d, h, order, pattern=causal()) for _ in range(N))
        own = order is not post_norm  # which has normalised already
        self.exits = nn.ModuleList(Classifiers(d, vocab, targets, own) for _ in range(N))

    def states(self, t: Tokens) -> Iterator[Seq]:
        """What leaves each layer, the first one first."""
        X, i = self.embed(t), places(0, len(t), t.shape[1], t.device)
        for n, block in enumerate(self.blocks):
            X = block(X + self.P[n](i) if n < len(self.P) else X)
            yield X

    @each_text_alone
    @named
    def forward(self, t: Tokens) -> Logits:
        """Of the next character, from the last layer: the only prediction that is used."""
        *_, X = self.states(t)
        return self.exits[-1](X, 0)

    def drop_extra_classifiers(self) -> None:
        """Keep what `forward` needs. The model can no longer be trained with auxiliary losses."""
        last = cast(Classifiers, self.exits[-1])
        last.targets, self.exits = last.targets[:1], self.exits[-1:]


def ahead(
    tokens: Int[Tensor, "b L+M"], targets: int
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L M"]]:
    """(x, y): y[:, i, m] is the token m + 1 places after x[:, i]."""
    _arguments.integer("targets", targets, 1, tokens.shape[1] - 1)
    return tokens[:, :-targets], tokens[:, 1:].unfold(1, targets, 1)


@named
def auxiliary_loss(
    model: DeepCharacterModel,
    tokens: Int[Tensor, "b L+M"],
    weights: Float[Tensor, "N M"],
    every_position: bool = True,
) -> Float[Tensor, ""]:
    """𝓛 in nats, for windows of L tokens and the M behind them. What weighs 0 is not computed."""
    N, M = len(model.exits), len(cast(Classifiers, model.exits[-1]).targets)
    if weights.ndim != 2 or weights.shape[0] != N or not 1 <= weights.shape[1] <= M:
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}, the model has classifiers behind {N} "
            f"layers for {M} targets; make it by loss_weights(step, steps, {N})"
        )
    x, y = ahead(tokens, weights.shape[1])
    first = 0 if every_position else x.shape[1] - 1
    total = torch.zeros(())
    for n, X in enumerate(model.states(x)):
        for m in weights[n].nonzero()[:, 0].tolist():
            logits = model.exits[n](X[:, first:], m)  # (b, L, vocab)
            loss = F.cross_entropy(logits.flatten(0, 1), y[:, first:, m].flatten())
            total = total + weights[n, m] * loss
    return total


# --- what it costs, and how it is judged ----------------------------------------------------------


def forward_flops(L: int, d: int, vocab: int, N: int, classifiers: int, positions: int = 0) -> int:
    """Of one window: N blocks with d_ff = 4d, and classifiers at so many of its L positions."""
    return N * (24 * L * d**2 + 4 * L**2 * d) + classifiers * 2 * (positions or L) * d * vocab


@torch.no_grad()
def bits_by_position(model: nn.Module, x: Tokens, y: Tokens) -> Float[Tensor, "L"]:
    """Bits per character of y_i, predicted from i + 1 characters; the paper counts the last one."""
    nats = F.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
    return nats.mean(0) / math.log(2)


@torch.no_grad()
def bits_by_layer(model: DeepCharacterModel, x: Tokens, y: Tokens) -> Float[Tensor, "N"]:
    """Bits of the next character when the classifier behind each layer is asked."""
    found = [model.exits[n](X, 0).transpose(1, 2) for n, X in enumerate(model.states(x))]
    return torch.stack([F.cross_entropy(logits, y) for logits in found]) / math.log(2)
