"""The lines that learn nothing but counts, on the data of all comparisons (`trivial`).

    python -m tfviz_lab trivial_lines

It takes seconds, and nothing is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from tfviz_lab import compare, trivial
from tfviz_lab.protocol import HIDDEN, LETTERS, SEEDS, WHICH_DIGIT, Exam
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
EXAMS: Mapping[str, Exam] = {exam.name: exam for exam in (LETTERS, HIDDEN, WHICH_DIGIT)}
PIXELS = "pixels"


def measure(config: Mapping[str, Any], seed: int) -> dict[str, float]:
    if config["exam"] == PIXELS:
        return trivial.pixels(*compare.images())
    return dict(EXAMS[config["exam"]].trivial(seed))


def runs() -> list[Run]:
    """Which digits are held out depends on the seed; which characters and pixels does not."""
    by_fold = [(WHICH_DIGIT.name, seed) for seed in SEEDS]
    once = [(name, 0) for name in (LETTERS.name, HIDDEN.name, PIXELS)]
    return [Run(name, {"exam": name}, seed) for name, seed in once + by_fold]


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By exam: its unit, the line that is its bar, the least difference, and the lines."""
    found: dict[str, list[dict[str, float]]] = {}
    for x in done:
        found.setdefault(x["run"]["config"]["exam"], []).append(x["result"])
    lines = {
        name: {line: round(mean(row[line] for row in rows), 4) for line in rows[0]}
        for name, rows in found.items()
    }
    return {
        "exams": {
            name: {
                "unit": exam.task(0).unit,
                "bar": exam.bar,
                "delta": exam.delta,
                "steps": exam.task(0).steps,
                "rates": list(exam.rates),
                "lines": lines[name],
            }
            for name, exam in EXAMS.items()
        },
        PIXELS: {"unit": "nats per pixel", "lines": lines[PIXELS]},
    }
