"""Copy from far away: which symbol stood forty places before? One window, or two levels.

    python -m tfviz_lab two_level_copy

A text is a row of random symbols; at each place from BACK on, the encoder names the symbol BACK
places before. Two layers with windows of w₁ tokens on each side reach 2 w₁. Level 2 adds a window
of some 40 tokens, pooled with κ = ξ. Scored: the share of right answers on new texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.compressed.poolingformer import two_levels
from tfviz.cores import Sparse
from tfviz.models.blocks import Stack
from tfviz.patterns import band
from tfviz.position.learned_pe import Learned
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, BATCH, RATE = (0, 1, 2), 300, 16, 3e-3
SYMBOLS, LENGTH, BACK, NEAR = 8, 64, 40, 8
WIDTH, HEADS, LAYERS, TEXTS = 48, 4, 2, 200

VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "window": lambda: {"core": Sparse, "pattern": band(radius=NEAR)},
    "κ = ξ = 9": lambda: {"mix": two_levels(NEAR, 40, 9, 9)},
    "κ = ξ = 1": lambda: {"mix": two_levels(NEAR, 40, 1, 1)},
}


class Encoder(nn.Module):
    def __init__(self, **more: Any) -> None:
        super().__init__()
        self.symbol, self.positions = nn.Embedding(SYMBOLS, WIDTH), Learned(LENGTH, WIDTH)
        self.stack, self.logits = Stack(LAYERS, WIDTH, HEADS, **more), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, t: Int[Tensor, "b L"]) -> Float[Tensor, "b L symbols"]:
        return self.logits(self.stack(self.symbol(t) + self.positions(torch.arange(LENGTH))))


def answers(model: nn.Module, b: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """The logits where there is an answer, and the answers."""
    t = torch.randint(SYMBOLS, (b, LENGTH), generator=rng)
    return model(t)[:, BACK:].flatten(0, 1), t[:, :-BACK].flatten()


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    return F.cross_entropy(*answers(model, BATCH, rng))


@torch.no_grad()
def right(model: nn.Module) -> float:
    logits, wanted = answers(model, TEXTS, Generator().manual_seed(1))
    return round((logits.argmax(-1) == wanted).float().mean().item(), 4)


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = seeded(seed, lambda: Encoder(**VARIANTS[config["variant"]]()))
    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    return {"right": right(model), "parameters": sum(p.numel() for p in model.parameters())}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, a share of right answers for each seed; and how many numbers each learns."""
    by_seed = sorted(done, key=lambda x: x["run"]["seed"])
    of = {name: [x["result"] for x in by_seed if x["run"]["name"] == name] for name in VARIANTS}
    return {
        "chance": 1 / SYMBOLS,
        "right": {name: [x["right"] for x in results] for name, results in of.items()},
        "parameters": {name: results[0]["parameters"] for name, results in of.items()},
    }
