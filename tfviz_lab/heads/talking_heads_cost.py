"""What it takes that heads talk: time beside the same scores made by hand, and the fused kernel.

    python -m tfviz_lab talking_heads_cost    → results/talking_heads_cost.json

Causal attention of one text in float32 on one thread, 64 numbers a token in all heads together.

time        of attention with both mixtures ÷ that of the other way, the median of rounds in turns;
            forward, and forward with gradients. `by hand` makes all L² scores of each head, as
            talking heads must; `fused` is torch's kernel, which keeps none of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from torch import Tensor

from tfviz.cores import CAUSAL, Dense, Where
from tfviz.dense_attention import attention
from tfviz.heads.talking_heads import Talking
from tfviz.measure import in_turns
from tfviz.training import seeded
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch"]
CLOCKS = ("time",)
WIDTH, LENGTH, ROUNDS, SEEDS = 64, 512, 11, (0, 1, 2)
HEADS = (4, 16)
Way = Callable[[Tensor, Tensor, Tensor], Tensor]


def ways(heads: int) -> dict[str, Way]:
    talking, where = Talking(heads), Where(CAUSAL)
    return {
        "talking": lambda Q, K, V: talking(Q, K, V, where)[0],
        "by hand": lambda Q, K, V: attention(Q, K, V, CAUSAL)[0],
        "fused": lambda Q, K, V: Dense()(Q, K, V, where)[0],
    }


def forward(way: Way, X: Tensor) -> Callable[[], None]:
    def work() -> None:
        with torch.no_grad():
            way(*X.unbind(0))

    return work


def training(way: Way, X: Tensor) -> Callable[[], None]:
    def work() -> None:
        way(*X.clone().requires_grad_().unbind(0)).sum().backward()

    return work


def runs() -> list[Run]:
    return [Run("layer", {"length": LENGTH, "rounds": ROUNDS}, seed) for seed in SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    ratios: dict[str, dict[str, float]] = {}
    for heads in HEADS:
        shape = 3, 1, heads, config["length"], WIDTH // heads
        X = seeded(seed, lambda shape=shape: torch.randn(*shape))  # type: ignore[misc]
        for kind, make in (("forward", forward), ("training", training)):
            works = {name: make(way, X) for name, way in ways(heads).items()}
            times = in_turns(works, config["rounds"])
            ratios[f"{heads} heads, {kind}"] = {
                name: round(
                    median(a / b for a, b in zip(times["talking"], times[name], strict=True)), 2
                )
                for name in ("by hand", "fused")
            }
    return {"time": ratios}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """The median over seeds of each ratio."""
    rows = [x["result"]["time"] for x in done]
    return {
        "length": LENGTH,
        "width": WIDTH,
        "time": {
            kind: {name: median(row[kind][name] for row in rows) for name in of}
            for kind, of in rows[0].items()
        },
    }
