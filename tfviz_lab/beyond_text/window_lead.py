"""Do windows of several sizes predict text better than full attention? The first race said so.

    python -m tfviz_lab window_lead    → results/window_lead.json

It gave both a table of positions that nobody heard and 500 steps, and scored them on 1,024
characters. Here are the same two by the protocol, and both scores.

exams     letters, on the whole held-out text
few       the same models on the 1,024 characters of the first race, and a counted line there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, nn

from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz.cores import Sparse
from tfviz.measure import flops
from tfviz.training import seeded
from tfviz_lab import compare, trivial
from tfviz_lab.compare import SCORED, TRAIN_LENGTH
from tfviz_lab.protocol import LETTERS, SEEDS, experiment, one_run, trained, training_text
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
EXAMS = (LETTERS,)
LAYERS = ((1, 1, 3, 8), (1, 3, 8, 32))
"""How far each head looks back, by layer, as in the first race."""
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "multi-scale windows": lambda: {
        "core": Sparse,
        "pattern": [multi_scale(spans) for spans in LAYERS],
    },
}
_runs, follow, _collect = experiment(VARIANTS, *EXAMS, reference="full attention")


def first_sample(model: nn.Module) -> float:
    """Nats per character where the first race asked."""
    x, y = compare.examined("text")
    return round(compare.nats(model, "text", x, y, TRAIN_LENGTH).item(), 4)


def counted_there(most: int = 5) -> dict[str, float]:
    """n-grams on the same characters."""
    ids = training_text()
    x, y = compare.examined("text")
    rows = torch.cat([x, y[:, -1:]], 1)
    right = rows[:, -SCORED:].flatten()
    asked = [rows[:, -SCORED - 1 - n : rows.shape[1] - 1 - n].flatten() for n in range(most - 1)]
    ends = ids[most - 1 :]
    known = [ids[most - 2 - n : len(ids) - 1 - n] for n in range(most - 1)]
    found = trivial.counted(
        [[torch.zeros_like(ends), *known[:n]] for n in range(most)],
        ends,
        [[torch.zeros_like(right), *asked[:n]] for n in range(most)],
        right,
        int(ids.max()) + 1,
    )
    return {f"{n}-gram": round(x.mean().item(), 4) for n, x in enumerate(found, start=1)}


def runs() -> list[Run]:
    return [*_runs(), Run("n-grams of the first race", {"part": "counted"})]


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    if config["part"] == "counted":
        return dict(counted_there())
    if config["part"] != "score":
        return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])
    variant = VARIANTS[config["variant"]]
    model, curve = trained(variant, LETTERS, seed, config["steps"], config["rate"])
    loss = LETTERS.task(seed).loss(seed, 1)

    def step() -> None:
        loss(model, Generator().manual_seed(seed), 0).backward()

    return {
        "score": curve[-1],
        "curve": curve,
        "parameters": sum(x.numel() for x in model.parameters()),
        "flops": seeded(seed, partial(flops, step)),
        "few": first_sample(model),
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    rows = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    few = {name: [rows[f"letters {name}", seed]["few"] for seed in SEEDS] for name in VARIANTS}
    counted = rows["n-grams of the first race", 0]
    return {**_collect(done), "few": few, "counted": counted}
