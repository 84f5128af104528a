"""Can a message get through? Recall one far token, with layers that do or do not connect to it.

A row of random symbols; the last position must name the one at position `asked`. If no path leads
from `asked` to the last position, no training can beat guessing; if one does, gradient descent has
to find it. The task says nothing about how *well* a pattern serves language: it tests the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz.experiments.digits import WIDTH, Block
from tfviz.patterns import Pattern

SYMBOLS, BATCH, RATE = 8, 64, 3e-3


class Recaller(nn.Module):
    """Logits of a symbol at the last position; one block per pattern, skips included."""

    def __init__(self, layers: Sequence[Pattern], length: int) -> None:
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, WIDTH)
        self.position = nn.Parameter(torch.randn(length, WIDTH))
        self.blocks = nn.Sequential(*(Block(pattern) for pattern in layers))
        self.norm, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, symbols: Int[Tensor, "b L"]) -> Float[Tensor, "b symbols"]:
        return self.logits(self.norm(self.blocks(self.symbol(symbols) + self.position)[:, -1]))


def train(
    layers: Sequence[Pattern], length: int, asked: int, steps: int, seed: int = 0
) -> list[float]:
    """Fraction of right answers in each training batch; every batch is new, so none was seen."""
    _arguments.integer("asked", asked, 0, length - 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Recaller(layers, length)
        batches = torch.randint(SYMBOLS, (steps, BATCH, length))
    optimiser = torch.optim.AdamW(model.parameters(), RATE)
    right = []
    for batch in batches:
        logits = model(batch)
        loss = F.cross_entropy(logits, batch[:, asked])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        right.append((logits.argmax(-1) == batch[:, asked]).float().mean().item())
    return right
