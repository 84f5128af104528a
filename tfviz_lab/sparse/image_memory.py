"""Does it help to remember in two dimensions? Digits, pixel by pixel, with equal keys per pixel.

The model, the images and the budget are those of `digits`; what differs is the memory, and in which
order the pixels are made. With h_q = 1 that order is line by line for a memory in two dimensions
too, so that the two can be told apart. The input at a place is the pixel made just before.

    python -m tfviz_lab image_memory    → results/image_memory.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tfviz.patterns import Pattern, causal, image_1d, image_2d, image_2d_blocks
from tfviz.sparse.image_transformer_2d import generation_order
from tfviz.training import seeded
from tfviz.training import train as fit
from tfviz_lab import compare
from tfviz_lab.compare import LAYERS, PIXELS, SIDE
from tfviz_lab.runner import Done, Run

STEPS, SEEDS = compare.TASKS["digits"].steps, (0, 1, 2)
PACKAGES = ["torch", "numpy", "scikit-learn"]
LINES = (1, SIDE)
BLOCKS = (4, 4)


class Variant(NamedTuple):
    """Blocks of this size are made one after the other; the pattern is for places in that order."""

    block: tuple[int, int]
    pattern: Pattern


VARIANTS = {
    "few keys: 1-D": Variant(LINES, image_1d(block=4, memory=3)),
    "few keys: 2-D": Variant(LINES, image_2d(width=SIDE, h_q=1, w_q=2, h_m=1, w_m=1)),
    "more keys: 1-D": Variant(LINES, image_1d(block=8, memory=10)),
    "more keys: 2-D": Variant(LINES, image_2d(width=SIDE, h_q=1, w_q=4, h_m=2, w_m=2)),
    "blocks: 1-D": Variant(BLOCKS, image_1d(block=16, memory=6)),
    "blocks: 2-D": Variant(BLOCKS, image_2d_blocks(columns=2, h_q=4, w_q=4, h_m=1, w_m=1)),
    "all before": Variant(LINES, causal()),
    "blocks: all before": Variant(BLOCKS, causal()),
}


class InOrder(compare.PixelTransformer):
    """The pixels are made in this order; images and logits stay as they are, line by line."""

    def __init__(self, order: Int[Tensor, " L"], **told: Any) -> None:
        super().__init__(**told)
        self.order = order

    def forward(self, pixels: Int[Tensor, "b L"]) -> Float[Tensor, "b L levels"]:
        return super().forward(pixels[:, self.order])[:, self.order.argsort()]


def model(variant: Variant, seed: int) -> InOrder:
    """Not yet trained; the weights are the same for every variant."""
    order = generation_order(SIDE, SIDE, *variant.block)
    return seeded(seed, lambda: InOrder(order, pattern=LAYERS * (variant.pattern,)))


def train(variant: Variant, seed: int, steps: int) -> tuple[float, list[float]]:
    """(test nats per pixel, training loss at every step)."""
    made, task = model(variant, seed), compare.TASKS["digits"]
    recipe = {"lr": compare.RATE, "seed": seed, "progress": False} | dict(task.recipe)
    losses = fit(made, task.loss(seed, steps), steps, **recipe)
    return task.score(made), losses


def keys_per_row(variant: Variant) -> float:
    """Mean number of keys of a pixel."""
    return variant.pattern.mask(PIXELS).float().sum(-1).mean().item()


def runs() -> list[Run]:
    """Every variant on every seed."""
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for seed in SEEDS for name in VARIANTS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Test nats per pixel, and the training loss at the end."""
    score, losses = train(VARIANTS[config["variant"]], seed, config["steps"])
    last = torch.tensor(losses[-50:]).mean().item()
    return {"score": score, "training": round(last, 4)}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant: keys per pixel, and one score for each seed."""
    rows: dict[str, dict[str, Any]] = {
        name: {"keys_per_row": keys_per_row(variant), "test_nats": [], "training_nats": []}
        for name, variant in VARIANTS.items()
    }
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        row = rows[x["run"]["config"]["variant"]]
        row["test_nats"].append(x["result"]["score"])
        row["training_nats"].append(x["result"]["training"])
    return {"title": "Digits 8×8: 1-D and 2-D memory, test nats per pixel", "variants": rows}
