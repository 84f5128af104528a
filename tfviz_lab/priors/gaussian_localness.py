"""Copy the symbol three places to the left: does a predicted bell find the place?

An encoder of one block and one head, with learned positions, reads rows of random symbols and says
for each place which symbol stands AWAY places before it. Variants:

    no prior         attention as usual
    query            centre and window predicted by each query: the paper's
    layer            the centre predicted, one learned window
    fixed            the centre predicted, a window of 10

python -m tfviz_lab gaussian_localness    → results/gaussian_localness.json
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.cores import Dense
from tfviz.models.blocks import Stack
from tfviz.position.learned_pe import Learned
from tfviz.priors.localness_gaussian import Localness
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch"]
SEEDS, STEPS, RATE, BATCH, ASKED = (0, 1, 2), 400, 1e-2, 64, 256
LENGTH, SYMBOLS, WIDTH, AWAY, EVERY = 24, 8, 32, 3, 50

CORES: dict[str, Callable[..., nn.Module]] = {
    "no prior": Dense,
    "query": Localness,
    "layer": partial(Localness, window="layer"),
    "fixed": partial(Localness, window="fixed"),
}


class Copier(nn.Module):
    def __init__(self, core: str) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(SYMBOLS, WIDTH), Learned(LENGTH, WIDTH, std=0.3)
        made: Any = CORES[core]
        self.stack, self.read = Stack(1, WIDTH, 1, core=made), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, rows: Int[Tensor, "b L"]) -> Float[Tensor, "b L symbols"]:
        places = self.place(torch.arange(rows.shape[1]))
        return self.read(self.stack(self.embed(rows) + places))


def runs() -> list[Run]:
    return [Run(name, {"core": name, "steps": STEPS}, seed) for seed in SEEDS for name in CORES]


def right(model: nn.Module, rows: Tensor) -> float:
    with torch.no_grad():
        answers = model(rows)[:, AWAY:].argmax(-1)
    return (answers == rows[:, :-AWAY]).float().mean().item()


def bells(model: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
    """p and D of every query of these rows, (b, L) each."""
    core, seen = model.stack.blocks[0].attend.core, list[Tensor]()
    hook = core.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        model(rows)
        p, D = core.predicted(seen[0], torch.full((LENGTH,), LENGTH - 1.0))
    hook.remove()
    return p.expand(len(rows), 1, -1)[:, 0], D.expand(len(rows), 1, -1)[:, 0]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """The share of right answers every EVERY steps; in the end, p and D by place."""
    model = seeded(seed, lambda: Copier(config["core"]))
    rows = torch.randint(SYMBOLS, (ASKED, LENGTH), generator=Generator().manual_seed(1000 + seed))
    accuracy = []

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if step % EVERY == 0:
            accuracy.append(round(right(model, rows), 4))
        x = torch.randint(SYMBOLS, (BATCH, LENGTH), generator=rng)
        return F.cross_entropy(model(x)[:, AWAY:].flatten(0, 1), x[:, :-AWAY].flatten())

    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    found: dict[str, Any] = {"accuracy": [*accuracy, round(right(model, rows), 4)]}
    if config["core"] != "no prior":
        p, D = bells(model, rows)
        away = (p - torch.arange(LENGTH))[:, AWAY:]
        found |= {
            "away": round(away.mean().item(), 3),
            "away_spread": round(away.std().item(), 3),
            "window": round(D[:, AWAY:].mean().item(), 3),
            "places": [round(x, 3) for x in p.mean(0).tolist()],
            "windows": [round(x, 3) for x in D.mean(0).tolist()],
        }
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{what: {core: [of each seed]}}; `accuracy` at each of `steps`."""
    found: dict[str, dict[str, list[Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        for what, value in x["result"].items():
            found.setdefault(what, {}).setdefault(x["run"]["name"], []).append(value)
    return {
        "title": "Copy the symbol three places to the left",
        "steps": list(range(0, STEPS + 1, EVERY)),
        "settings": {"length": LENGTH, "symbols": SYMBOLS, "width": WIDTH, "away": AWAY},
        **found,
    }
