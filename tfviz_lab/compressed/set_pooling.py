"""The largest number of a set: which pooling finds it, for sets larger than those of the training?

    python -m tfviz_lab set_pooling    → results/set_pooling.json

A set is 1 to LARGEST whole numbers from 1 to 100, drawn at random and read as x/100; the answer is
the largest (the paper's section 5.1). Each row goes through a network, then

mean, max     the mean or the largest of each number, as Deep Sets do: max is made for the task
PMA           one seed pools the set by attention
SAB + PMA     two SABs in front of it, in which the rows read each other
ISAB + PMA    two ISABs of M inducing points in front of it

and a network makes the answer. The score is the mean absolute error on new sets of each of SIZES;
the third size is larger than any in training. Beside it stands what a rule reaches that looks at no
number: the best constant for a set of so many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz.compressed.set_transformer import ISAB, PMA, SAB, row_network
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, BATCH = (0, 1, 2), 600, 64
WIDTH, HEADS, M = 32, 4, 8
HIGHEST, LARGEST, SIZES, SETS = 100, 10, (5, 10, 50), 500


class Pooled(nn.Module):
    """The mean of the rows, or the largest of each number, as one row."""

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest

    def forward(self, X: Tensor) -> Tensor:
        return X.amax(1, keepdim=True) if self.largest else X.mean(1, keepdim=True)


def pma() -> nn.Module:
    return PMA(WIDTH, HEADS)


VARIANTS: dict[str, Callable[[], list[nn.Module]]] = {
    "mean": lambda: [Pooled(False)],
    "max": lambda: [Pooled(True)],
    "PMA": lambda: [pma()],
    "SAB + PMA": lambda: [SAB(WIDTH, HEADS), SAB(WIDTH, HEADS), pma()],
    "ISAB + PMA": lambda: [ISAB(WIDTH, HEADS, M), ISAB(WIDTH, HEADS, M), pma()],
}


def model(name: str) -> nn.Sequential:
    rows = [nn.Linear(1, WIDTH), nn.ReLU(), row_network(WIDTH)]
    return nn.Sequential(*rows, *VARIANTS[name](), row_network(WIDTH), nn.Linear(WIDTH, 1))


def drawn(sets: int, size: int, rng: Generator) -> Tensor:
    return torch.randint(1, HIGHEST + 1, (sets, size, 1), generator=rng).float()


def error(model: nn.Module, X: Tensor) -> Tensor:
    """Mean absolute error, in the numbers of the set."""
    return HIGHEST * (model(X / HIGHEST)[:, 0] - X.amax(1) / HIGHEST).abs().mean()


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    size = int(torch.randint(1, LARGEST + 1, (), generator=rng))
    return error(model, drawn(BATCH, size, rng)) / HIGHEST


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


@torch.no_grad()
def errors(model: nn.Module) -> list[float]:
    sets = [drawn(SETS, size, Generator().manual_seed(size)) for size in SIZES]
    return [round(error(model, X).item(), 3) for X in sets]


def best_constant(size: int) -> int:
    """The median of the largest of so many numbers, which is off by least on average."""
    return next(c for c in range(1, HIGHEST + 1) if (c / HIGHEST) ** size >= 1 / 2)


def constant_errors() -> list[float]:
    """Of the best constant for each of SIZES, on the sets that models are asked."""
    sets = {size: drawn(SETS, size, Generator().manual_seed(size)) for size in SIZES}
    return [
        round((X.amax(1) - best_constant(size)).abs().mean().item(), 3) for size, X in sets.items()
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    made = seeded(seed, lambda: model(config["variant"]))
    train(made, loss, config["steps"], lr=3e-3, seed=seed, progress=False)
    return {"errors": errors(made), "parameters": sum(x.numel() for x in made.parameters())}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, for each seed an error for each of SIZES."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    return {
        "sizes": list(SIZES),
        "largest": LARGEST,
        "errors": {name: [x["errors"] for x in of] for name, of in rows.items()},
        "constants": [best_constant(size) for size in SIZES],
        "trivial": {"best constant": constant_errors()},
        "parameters": {name: of[0]["parameters"] for name, of in rows.items()},
    }
