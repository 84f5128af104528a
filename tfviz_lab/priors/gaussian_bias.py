"""Neighbours or itself? What b of the Gaussian Transformer becomes where the task decides.

One attention head without positions, without a skip connection, and a linear map after it. In rows
of random numbers 0 to 3 it says for each place a sum: of the two neighbours, or of both and twice
the number itself.

    neighbours    x_{i−1} + x_{i+1}
    mostly itself x_{i−1} + 2 x_i + x_{i+1}

Each with the prior −|w (i − j)² + b|, which begins at w = 0.1 and b = −0.1; the first also without
a prior.

python -m tfviz_lab gaussian_bias    → results/gaussian_bias.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.cores import Dense
from tfviz.models.blocks import MultiHeadAttention
from tfviz.priors.gaussian_transformer import Gaussian, best_distance
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch"]
SEEDS, STEPS, RATE, BATCH, ASKED = (0, 1, 2), 500, 2e-2, 64, 256
LENGTH, NUMBERS, WIDTH = 24, 4, 32
TASKS = {"neighbours": (1, 0, 1), "mostly itself": (1, 2, 1)}
CORES: dict[str, Any] = {"prior": Gaussian, "no prior": Dense}


class Adder(nn.Module):
    def __init__(self, core: str, sums: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(NUMBERS, WIDTH)
        self.attend = MultiHeadAttention(WIDTH, 1, core=CORES[core])
        self.read = nn.Linear(WIDTH, sums)

    def forward(self, rows: Int[Tensor, "b L"]) -> Float[Tensor, "b L sums"]:
        return self.read(self.attend(self.embed(rows)))


def sums(task: str, rows: Int[Tensor, "b L"]) -> Int[Tensor, "b inner"]:
    """The answers at all places but the first and the last."""
    before, itself, after = TASKS[task]
    return before * rows[:, :-2] + itself * rows[:, 1:-1] + after * rows[:, 2:]


def runs() -> list[Run]:
    return [
        Run(f"{task}, {core}", {"task": task, "core": core, "steps": STEPS}, seed)
        for seed in SEEDS
        for task in TASKS
        for core in CORES
        if core == "prior" or task == "neighbours"
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """The share of right sums, and what w and b became."""
    task = config["task"]
    highest = (NUMBERS - 1) * sum(TASKS[task])

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        rows = torch.randint(NUMBERS, (BATCH, LENGTH), generator=rng)
        return F.cross_entropy(model(rows)[:, 1:-1].flatten(0, 1), sums(task, rows).flatten())

    model = seeded(seed, lambda: Adder(config["core"], highest + 1))
    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    rows = torch.randint(NUMBERS, (ASKED, LENGTH), generator=Generator().manual_seed(1000 + seed))
    with torch.no_grad():
        answers = model(rows)[:, 1:-1].argmax(-1)
    found: dict[str, Any] = {"right": (answers == sums(task, rows)).float().mean().item()}
    core: Any = model.attend.core
    if isinstance(core, Gaussian):
        w, b = core.w.item(), core.b.item()
        found |= {"w": round(w, 4), "b": round(b, 4), "best": round(best_distance(w, b), 3)}
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{what: {"task, core": [of each seed]}}."""
    found: dict[str, dict[str, list[Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        for what, value in x["result"].items():
            found.setdefault(what, {}).setdefault(x["run"]["name"], []).append(value)
    return {
        "title": "Neighbours or itself?",
        "settings": {"length": LENGTH, "numbers": NUMBERS, "width": WIDTH},
        **found,
    }
