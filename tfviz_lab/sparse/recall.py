"""Can a message get through? Recall one far token, with layers that do or do not connect to it.

A row of random symbols; the last position must name the one at position `asked`. If no path leads
from `asked` to the last position, no training can beat guessing; if one does, gradient descent has
to find it. The task says nothing about how *well* a pattern serves language: it tests the graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz.patterns import Pattern
from tfviz.training import seeded
from tfviz.training import train as train_model
from tfviz_lab.compare import HEADS, blocks_without_bias

SYMBOLS, BATCH, RATE, WIDTH = 8, 64, 3e-3, 48


class Recaller(nn.Module):
    """Logits of a symbol at the last position; one block per pattern, skips included."""

    def __init__(self, layers: Sequence[Pattern], length: int) -> None:
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, WIDTH)
        self.position = nn.Parameter(torch.randn(length, WIDTH))
        self.stack = blocks_without_bias(layers, WIDTH, HEADS)
        self.logits = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, symbols: Int[Tensor, "b L"]) -> Float[Tensor, "b symbols"]:
        return self.logits(self.stack(self.symbol(symbols) + self.position)[:, -1])


def train(
    layers: Sequence[Pattern], length: int, asked: int, steps: int, seed: int = 0
) -> list[float]:
    """Fraction of right answers in each training batch; every batch is new, so none was seen."""
    _arguments.integer("asked", asked, 0, length - 1)
    model, batches = seeded(
        seed,
        lambda: (Recaller(layers, length), torch.randint(SYMBOLS, (steps, BATCH, length))),
    )
    right = []

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        logits, answers = model(batches[step]), batches[step, :, asked]
        right.append((logits.argmax(-1) == answers).float().mean().item())
        return F.cross_entropy(logits, answers)

    train_model(
        *(model, loss, steps),
        lr=RATE,
        clip=math.inf,
        schedule=lambda step, steps: 1.0,
        progress=False,
    )
    return right
