"""Trained on 64 characters, asked with up to 512: which ways to tell positions stand it?

Nine small GPTs differ only in how they are told the positions; with the same seed they begin with
the same other weights and see the same batches. Two tasks:

    text      the next character of English text
    recall    a row of random symbols; at every place, name the symbol BACK places before it

Measured on the last SCORED places of rows of each length. On text these are the same characters for
all lengths: a longer row only gives more context before them, so that a model which can use or
ignore it gets no worse. On recall, places without a symbol BACK places before them are not scored.
A learned table has no rows beyond its L_max = 64: null.

Under "extra" are some of them with a part taken away, or made smaller.

    python -m tfviz_lab extrapolation        all of it, → results/extrapolation.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.da_transformer import DA
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.position.shaw_relative import shaw
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.position.t5_relative_bias import t5_bias
from tfviz.position.xl_relative import XL, xl
from tfviz_lab import compare
from tfviz_lab.compare import (
    BACK,
    BATCH,
    HEADS,
    LAYERS,
    LENGTHS,
    RATE,
    ROWS,
    SCORED,
    SEEDS,
    SYMBOLS,
    TASKS,
    TRAIN_LENGTH,
    WIDTH,
)
from tfviz_lab.runner import Done, Run

SHAW_K, T5_BUCKETS, T5_FAR, T5_SCALE = 16, 32, 64, 10.0
STEPS = {task: TASKS[task].steps for task in ("text", "recall")}

PACKAGES = ["torch", "numpy"]


class _WithoutQR(XL):
    """Terms one, three and four: which distance is liked does not depend on the query."""

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return super().bias(torch.zeros_like(Q), K)


class _WithoutUV(XL):
    """Terms one and two: u and v stay 0."""

    def __init__(self, h: int, d_head: int) -> None:
        super().__init__(h, d_head)
        self.u.requires_grad_(False)
        self.v.requires_grad_(False)


class _OneSlope(Alibi):
    """All heads with the same slope."""

    def __init__(self, m: float) -> None:
        super().__init__(HEADS)
        self.m.fill_(m)


def t5(**options: Any) -> dict[str, Any]:
    return {"core": t5_bias(HEADS, **{"buckets": T5_BUCKETS, "far": T5_FAR} | options)}


VARIANTS: dict[str, Any] = {
    "none": lambda: {},
    "sinusoidal": lambda: {"positions": Sinusoidal(WIDTH, scale=WIDTH**-0.5)},
    "learned": lambda: {"positions": Learned(TRAIN_LENGTH, WIDTH)},
    "shaw": lambda: {"core": shaw(WIDTH // HEADS, SHAW_K)},
    "xl": lambda: {"core": xl(HEADS, WIDTH // HEADS)},
    "t5": lambda: t5(scale=T5_SCALE),
    "rotary": lambda: {"core": lambda: Rope(WIDTH // HEADS)},
    "alibi": lambda: {"core": Alibi},
    "da": lambda: {"core": DA},
    # what is taken away or made smaller, to see what it was good for
    "shaw, keys only": lambda: {"core": shaw(WIDTH // HEADS, SHAW_K, values=False)},
    "shaw, k = 4": lambda: {"core": shaw(WIDTH // HEADS, 4)},
    "xl, without u and v": lambda: {"core": lambda: _WithoutUV(HEADS, WIDTH // HEADS)},
    "xl, without q·r": lambda: {"core": lambda: _WithoutQR(HEADS, WIDTH // HEADS)},
    "t5, slow table": lambda: t5(),
    "t5, 16 buckets": lambda: t5(scale=T5_SCALE, buckets=16),
    "alibi, all slopes 1/4": lambda: {"core": lambda: _OneSlope(1 / 4)},
    "alibi, all slopes 1/256": lambda: {"core": lambda: _OneSlope(1 / 256)},
}
"""What a GPT is told of positions; called with torch's random numbers seeded."""

ENCODINGS = ("none", "sinusoidal", "learned", "shaw", "xl", "t5", "rotary", "alibi", "da")
"""Raced on both tasks."""

EXTRA = {
    "text": [
        "shaw, keys only",
        "xl, without u and v",
        "xl, without q·r",
        "t5, slow table",
        "alibi, all slopes 1/4",
        "alibi, all slopes 1/256",
    ],
    "recall": ["shaw, k = 4", "t5, 16 buckets", "t5, slow table"],
}
"""Raced on one task."""


def runs() -> list[Run]:
    """Both tasks, every encoding, every seed; and what is taken away."""
    wanted = [(t, e, seed) for seed in SEEDS for t in STEPS for e in ENCODINGS]
    wanted += [(t, e, seed) for seed in SEEDS for t in STEPS for e in EXTRA[t]]
    return [
        Run(f"{task} {name}", {"task": task, "encoding": name, "steps": STEPS[task]}, seed)
        for task, name, seed in wanted
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Loss at each length; null where a learned table has no row left."""
    variant = VARIANTS[config["encoding"]]
    return compare.measured(variant, config["task"], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"tasks": {task: {encoding: [[loss at each length] of each seed]}}, "extra": the same, …}."""
    tasks: dict[str, dict[str, list[Any]]] = {task: {} for task in STEPS}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config = x["run"]["config"]
        tasks[config["task"]].setdefault(config["encoding"], []).append(x["result"]["score"])
    return {
        "title": "Trained on 64 tokens, asked with up to 512",
        "lengths": list(LENGTHS),
        "train_length": TRAIN_LENGTH,
        "encodings": list(ENCODINGS),
        "unit": {task: TASKS[task].unit for task in STEPS},
        "tasks": {task: {e: tasks[task][e] for e in ENCODINGS} for task in tasks},
        "extra": {task: {e: tasks[task][e] for e in EXTRA[task]} for task in tasks},
        "settings": {
            **{"layers": LAYERS, "heads": HEADS, "width": WIDTH, "batch": BATCH, "rate": RATE},
            **{"steps": STEPS, "scored": SCORED, "rows": ROWS, "symbols": SYMBOLS, "back": BACK},
            **{"shaw_k": SHAW_K, "t5_buckets": T5_BUCKETS, "t5_far": T5_FAR},
            "t5_scale": T5_SCALE,
            "threads": done[0]["result"]["threads"],
        },
    }
