"""How a baseline lost: what became of a finding when its baseline was trained as it should be.

    python -m tfviz_lab baseline_lost

Which digit is it? Full attention against Linformer with a single slot (`patches` of `compare`: one
split of the images for all seeds, 397 of them held out), where three things are turned that the
finding did not name: how loud the table of positions begins, for how many steps all are trained,
and at which rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import mean
from typing import Any

import torch
from torch import nn

from tfviz.compressed.linformer import Linformer
from tfviz_lab import compare, trivial
from tfviz_lab.compare import PATCHES, PatchEncoder, Task, Variant, patches_of
from tfviz_lab.outcomes import beats, outcome
from tfviz_lab.protocol import SEEDS, WHICH_DIGIT
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]

# --- which digit is it? ---------------------------------------------------------------------------

QUIET = 0.02
"""How `Learned` begins a table, if nobody says anything: the standard deviation of its numbers."""
LOUDNESS = (QUIET, 0.1, 0.5)
"""How the tables of the grid begin."""
STEPS = (100, 400, 1600)
RATE, RATES = compare.RATE, (1e-3, 3e-3, 1e-2)
TRIED = (400, (QUIET, 0.5))
"""The steps and the tables with which all rates are tried; with these steps, no table, too."""

CHOICES = (SEEDS, *combinations(SEEDS, 3))
"""The seeds that somebody may have had: all, or any three of them."""

VARIANTS: dict[str, Variant] = {
    "full attention": lambda: {},
    "Linformer, k = 1": lambda: {"core": partial(Linformer, length=PATCHES, k=1, sharing="none")},
}


def encoder(std: float | None, **told: Any) -> PatchEncoder:
    """The encoder of `compare`, its table `std` / QUIET times as loud, or without one."""
    made = PatchEncoder(**told)
    if std is None:
        made.positions = None
    else:
        made.positions.P.data *= std / QUIET
    return made


def task(std: float | None, rate: float) -> Task:
    return replace(compare.TASKS["patches"], model=partial(encoder, std), recipe={"lr": rate})


@torch.no_grad()
def wrong(model: nn.Module) -> list[int]:
    """The held-out images that the model takes for another digit."""
    missed = model(patches_of(compare.images()[1])).argmax(-1) != compare.classes()[1]
    return [int(n) for n in missed.nonzero().flatten()]


def digits(config: Mapping[str, Any], seed: int, variant: Variant) -> dict[str, Any]:
    exam = task(config["std"], config["rate"])
    model, losses = compare.trained(variant, exam, seed, config["steps"])
    late = losses[-20:]
    return {"wrong": wrong(model), "loss": round(sum(late) / len(late), 4)}


# --- the experiment -------------------------------------------------------------------------------


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    if config["part"] == "trivial":
        (known, new), (classes, right) = compare.images(), compare.classes()
        return dict(trivial.readers(known, classes, new, right))
    return digits(config, seed, VARIANTS[config["variant"]])


def runs() -> list[Run]:
    steps, tables = TRIED
    cells = [
        *((std, steps, RATE) for std in LOUDNESS if std in tables),
        (None, steps, RATE),
        *((std, other, RATE) for other in STEPS if other != steps for std in tables),
        *((std, steps, rate) for rate in RATES if rate != RATE for std in tables),
        *((std, other, RATE) for other in STEPS for std in LOUDNESS if std not in tables),
    ]
    return [
        Run("trivial lines", {"part": "trivial"}),
        *(_run(name, *cell, seed) for cell in cells for name in VARIANTS for seed in SEEDS),
    ]


def _run(variant: str, std: float | None, steps: int, rate: float, seed: int) -> Run:
    table = "no table" if std is None else f"table {std:g}"
    config = {"part": "digits", "variant": variant, "std": std, "steps": steps, "rate": rate}
    return Run(f"{variant}, {table}, {steps} steps, rate {rate:g}", config, seed)


def name_of(some: Sequence[int]) -> str:
    """Of a choice of seeds: "024"."""
    return "".join(map(str, some))


def compared(
    reference: Sequence[float], scores: Sequence[float], some: Sequence[int], bar: float
) -> dict[str, Any]:
    """What may be said with these seeds alone; `refused` if the reference loses to its bar."""
    ours, theirs = ([row[seed] for seed in some] for row in (reference, scores))
    found = outcome(theirs, ours, delta=WHICH_DIGIT.delta, trivial=bar)
    apart = found.difference
    return {
        "difference": round(apart.mean, 9),
        "interval": [round(apart.low, 9), round(apart.high, 9)],
        "word": found.word,
        "refused": not beats(mean(ours), bar),
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Which images each run got wrong, in the order of `seeds`; how many, where that is enough."""
    (lines,) = [x["result"] for x in done if x["run"]["config"]["part"] == "trivial"]
    made = {_cell(x): x["result"] for x in done if x["run"]["config"]["part"] == "digits"}
    (some, tables), many = TRIED, len(compare.images()[1])
    bar = lines[WHICH_DIGIT.bar]

    def missed(*cell: Any) -> list[list[int]]:
        return [made[*cell, seed]["wrong"] for seed in SEEDS]

    def count(*cell: Any) -> list[int]:
        return [len(images) for images in missed(*cell)]

    def said(std: float, steps: int) -> dict[str, Any]:
        ours, theirs = (
            [len(images) / many for images in missed(name, std, steps, RATE)] for name in VARIANTS
        )
        return {name_of(some): compared(ours, theirs, some, bar) for some in CHOICES}

    def table(of: Callable[[str], Any]) -> dict[str, Any]:
        return {name: of(name) for name in VARIANTS}

    return {
        "images": many,
        "seeds": list(SEEDS),
        "delta": WHICH_DIGIT.delta,
        "bar": WHICH_DIGIT.bar,
        "trivial": lines,
        "grid": {
            "loudness": list(LOUDNESS),
            "steps": list(STEPS),
            "rate": RATE,
            "wrong": table(
                lambda name: [
                    [missed(name, std, steps, RATE) for steps in STEPS] for std in LOUDNESS
                ]
            ),
            "outcomes": [[said(std, steps) for steps in STEPS] for std in LOUDNESS],
        },
        "rates": {
            "steps": some,
            "loudness": list(tables),
            "rates": list(RATES),
            "wrong": table(
                lambda name: [[count(name, std, some, rate) for rate in RATES] for std in tables]
            ),
        },
        "no table": {
            "steps": some,
            "wrong": table(lambda name: count(name, None, some, RATE)),
        },
    }


def _cell(x: Done) -> tuple[Any, ...]:
    config = x["run"]["config"]
    return (*(config[key] for key in ("variant", "std", "steps", "rate")), x["run"]["seed"])
