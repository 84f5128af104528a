"""Two tasks, one attention: the answer is the symbol to the left, or the one to the right.

    python -m tfviz_lab task_priors    → results/task_priors.json

An encoder of one layer reads a task and LENGTH random symbols, with positions as loud as these.
Nothing in the symbols says which task it is. Variants are told it in three ways:

    input                 the task's vector is added to every row that enters the model
    prior, one block      the task prior of CA-MTL
    prior, two blocks     the same, in two blocks of half the length

errors    of both tasks, on new texts; the trivial line always names the same neighbour
right     by variant and seed the share of right answers, for each task and position
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.cores import Dense, given
from tfviz.measure import flops
from tfviz.models.blocks import Stack
from tfviz.position.learned_pe import Learned
from tfviz.priors.camtl_prior import TaskPrior
from tfviz.training import seeded
from tfviz_lab.compare import Task
from tfviz_lab.protocol import SEEDS, Exam, experiment, trained
from tfviz_lab.runner import Done

PACKAGES = ["torch", "numpy", "scipy"]
LENGTH, WIDTH, HEADS, SYMBOLS, BATCH, ROWS, STEPS = 16, 32, 2, 8, 32, 1024, 1000
TASKS = ("left", "right")
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "input": lambda: {},
    "prior, one block": lambda: {"blocks": 1},
    "prior, two blocks": lambda: {"blocks": 2},
}


class Encoder(nn.Module):
    """Logits of the symbol that each position is asked for; every row begins with its task.

    The task is added to what enters, or in so many `blocks` to the scores. `pattern` is that of
    `compare`: this encoder sees all.
    """

    def __init__(self, blocks: int | None = None, pattern: Any = None) -> None:
        super().__init__()
        self.symbols, self.tasks = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(len(TASKS), WIDTH)
        self.positions = Learned(LENGTH, WIDTH, std=1.0)
        core: Any = Dense if blocks is None else lambda: TaskPrior(LENGTH, blocks, WIDTH)
        self.stack = Stack(1, WIDTH, HEADS, core=core)
        self.last, self.told_at_input = nn.Linear(WIDTH, SYMBOLS), blocks is None

    def forward(self, rows: Int[Tensor, "b 1+L"]) -> Float[Tensor, "b L symbols"]:
        z = self.tasks(rows[:, 0])
        X = self.symbols(rows[:, 1:]) + self.positions(torch.arange(LENGTH))
        if self.told_at_input:
            return self.last(self.stack(X + z[:, None]))
        with given(task=z):
            return self.last(self.stack(X))


def texts(rows: int, rng: Generator) -> tuple[Int[Tensor, "b 1+L"], Int[Tensor, "b L"]]:
    """(a task and a text in each row, answers); −100, which is not scored, beyond the ends."""
    t = torch.randint(SYMBOLS, (rows, LENGTH), generator=rng)
    task = torch.arange(rows)[:, None] % len(TASKS)
    padded = F.pad(t, (1, 1), value=-100)
    return torch.cat([task, t], 1), torch.where(task == 0, padded[:, :-2], padded[:, 2:])


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    rows, answers = texts(BATCH, rng)
    return F.cross_entropy(model(rows).flatten(0, 1), answers.flatten())


# --- what is scored -------------------------------------------------------------------------------


@cache
def new_texts() -> tuple[Int[Tensor, "b 1+L"], Int[Tensor, "b L"]]:
    return texts(ROWS, Generator().manual_seed(1))


def error(said: Int[Tensor, "b L"]) -> float:
    """The share of wrong answers, of all that are asked for in the new texts."""
    answers = new_texts()[1]
    return round((said != answers)[answers >= 0].double().mean().item(), 4)


@torch.no_grad()
def errors(model: nn.Module) -> float:
    return error(model(new_texts()[0]).argmax(-1))


@cache
def same_neighbour() -> dict[str, float]:
    """Errors of who always names the left neighbour, and the right one where there is no left."""
    t = new_texts()[0][:, 1:]
    return {"the same neighbour": error(torch.cat([t[:, 1:2], t[:, :-1]], 1))}


@torch.no_grad()
def right(model: nn.Module) -> list[list[float | None]]:
    """For each task and position, the share of right answers; None where nothing is asked."""
    rows, answers = new_texts()
    hits = (model(rows).argmax(-1) == answers).double()
    return [
        [
            round(x, 3) if asked else None
            for x, asked in zip(
                hits[rows[:, 0] == n].mean(0).tolist(),
                (answers[rows[:, 0] == n][0] >= 0).tolist(),
                strict=True,
            )
        ]
        for n in range(len(TASKS))
    ]


@torch.no_grad()
def of_the_prior(model: Any) -> dict[str, Any]:
    """The prior of each task, and its γ."""
    core: Any = model.stack.blocks[0].attend.core
    M = core.prior(model.tasks.weight, LENGTH, LENGTH)
    gamma = core.film(model.tasks.weight).chunk(2, -1)[0]
    return {"prior": _rounded(M), "gamma": _rounded(gamma)}


def _rounded(x: Tensor) -> Any:
    return [_rounded(row) for row in x] if x.dim() else round(x.item(), 3)


# --- the experiment -------------------------------------------------------------------------------


def _task(seed: int) -> Task:
    return Task(
        name="two_tasks",
        unit="errors per answer",
        steps=STEPS,
        model=Encoder,
        loss=lambda seed, steps: loss,
        score=errors,
        inputs=lambda rng: texts(2, rng)[0],
        causal=False,
    )


EXAM = Exam(_task, lambda seed: same_neighbour(), "the same neighbour", 0.02)
runs, follow, _collect = experiment(VARIANTS, EXAM, reference="input")


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """As the protocol's, and what was right where, and the learned priors."""
    if config["part"] == "trivial":
        return dict(same_neighbour())
    name = config["variant"]
    model, curve = trained(VARIANTS[name], EXAM, seed, config["steps"], config["rate"])
    step = partial(loss, model, Generator().manual_seed(seed), 0)
    return {
        "score": curve[-1],
        "curve": curve,
        "parameters": sum(x.numel() for x in model.parameters()),
        "flops": seeded(seed, partial(flops, lambda: step().backward())),
        "right": right(model),
        **({} if name == "input" else of_the_prior(model)),
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """As the protocol's; besides by variant and seed what was right, the priors, and γ."""
    of = {
        (x["run"]["config"]["variant"], x["run"]["seed"]): x["result"]
        for x in done
        if x["run"]["config"]["part"] == "score"
    }

    def table(what: str) -> dict[str, list[Any]]:
        rows = {name: [of[name, seed].get(what) for seed in SEEDS] for name in VARIANTS}
        return {name: row for name, row in rows.items() if row[0] is not None}

    return {**_collect(done), **{what: table(what) for what in ("right", "prior", "gamma")}}
