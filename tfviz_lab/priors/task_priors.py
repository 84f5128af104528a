"""Two tasks, one attention: the answer is the symbol to the left, or the one to the right.

    python -m tfviz_lab task_priors    → results/task_priors.json

An encoder of one layer reads 16 random symbols. Nothing in the text says which task it is. The
score is the share of right answers on new texts, by position.

none          the model is not told the task
input         the task's vector is added to every row that enters the model
prior m       the task prior of CA-MTL, in m blocks
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.cores import Dense, given
from tfviz.models.blocks import Stack
from tfviz.position.learned_pe import Learned
from tfviz.priors.camtl_prior import TaskPrior
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS = (0, 1, 2), 500
LENGTH, WIDTH, HEADS, SYMBOLS, BATCH, ROWS, RATE = 16, 32, 2, 8, 32, 256, 5e-3
TASKS = ("left", "right")
BLOCKS = {"prior 1": 1, "prior 2": 2}
VARIANTS = ("none", "input", *BLOCKS)


class Encoder(nn.Module):
    """Logits of the symbol that each position is asked for, from a text and a task for each."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant, m = variant, BLOCKS.get(variant)
        self.symbols, self.tasks = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(len(TASKS), WIDTH)
        self.positions = Learned(LENGTH, WIDTH)
        core: Any = Dense if m is None else lambda: TaskPrior(LENGTH, m, WIDTH)
        self.stack = Stack(1, WIDTH, HEADS, core=core)
        self.last = nn.Linear(WIDTH, SYMBOLS)

    def forward(
        self, t: Int[Tensor, "b L"], task: Int[Tensor, "b"]
    ) -> Float[Tensor, "b L symbols"]:
        z = self.tasks(task)
        X = self.symbols(t) + self.positions(torch.arange(t.shape[1]))
        if self.variant == "input":
            X = X + z[:, None]
        with given(task=z):
            return self.last(self.stack(X))


def batch(rows: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(texts, tasks, answers); −100, which is not scored, beyond the ends."""
    t = torch.randint(SYMBOLS, (rows, LENGTH), generator=rng)
    task = torch.arange(rows) % len(TASKS)
    padded = F.pad(t, (1, 1), value=-100)
    return t, task, torch.where(task[:, None] == 0, padded[:, :-2], padded[:, 2:])


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    t, task, answers = batch(BATCH, rng)
    return F.cross_entropy(model(t, task).flatten(0, 1), answers.flatten())


@torch.no_grad()
def right(model: nn.Module) -> list[list[float]]:
    """For each task and position, the share of right answers; 0 where nothing is asked."""
    t, task, answers = batch(ROWS, Generator().manual_seed(1))
    hits = (model(t, task).argmax(-1) == answers).float()
    return [[round(x, 3) for x in hits[task == n].mean(0).tolist()] for n in range(len(TASKS))]


@torch.no_grad()
def priors(model: Any) -> list[list[list[float]]]:
    """M of each task."""
    M = model.stack.blocks[0].attend.core.prior(model.tasks.weight, LENGTH, LENGTH)
    return [[[round(x, 3) for x in row] for row in one] for one in M.tolist()]


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    name = config["variant"]
    model = seeded(seed, lambda: Encoder(name))
    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    found: dict[str, Any] = {"right": right(model.eval())}
    if name in BLOCKS:
        core: Any = model.stack.blocks[0].attend
        found["priors"] = priors(model)
        film = core.core.film(model.tasks.weight).detach()
        found["gamma"], found["beta"] = (
            [[round(x, 3) for x in row] for row in part.tolist()] for part in film.chunk(2, -1)
        )
        found["A"] = [[round(x, 3) for x in row] for row in core.core.A.tolist()]
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Shares of right answers by variant, seed, task and position, and the learned priors."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    return {
        "unit": "share of right answers",
        "steps": STEPS,
        "right": {name: [x["right"] for x in rows[name]] for name in VARIANTS if name in rows},
        **{
            part: {name: [x[part] for x in rows[name]] for name in BLOCKS if name in rows}
            for part in ("priors", "gamma", "beta", "A")
        },
    }
