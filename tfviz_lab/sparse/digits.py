"""Does sparse attention cost anything? Handwritten digits, pixel by pixel.

An autoregressive Transformer predicts each pixel (17 grey levels) of an 8×8 image from the pixels
before it, so that a row of the image is a stride of 8. Models differ only in the pattern of their
two layers; with the same seed they start from the same weights and see the same batches. Measured
on images never trained on: nats per pixel, beside the mean number of keys per row and layer.

    python -m tfviz_lab digits        all patterns, all seeds, → results/digits.json

Under "longer" the result has four of the patterns trained three times as long, to see whether the
verdict depends on when one stops.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tfviz import patterns
from tfviz.patterns import Pattern
from tfviz.sparse import sparse_transformer_fixed, sparse_transformer_strided
from tfviz.sparse.sparse_transformer_usage import by_head, interleaved, merged
from tfviz_lab import compare
from tfviz_lab.compare import HEADS, LAYERS, PIXELS, RATE, SIDE, TEST
from tfviz_lab.runner import Done, Run, main, summary

STEPS, SEEDS = compare.TASKS["digits"].steps, (0, 1, 2, 3, 4)
LONGER = ("full", "local", "strided, interleaved", "strided, per head")
LONGER_STEPS, LONGER_SEEDS = 1200, (0, 1, 2)

STRIDED = sparse_transformer_strided.factors(stride=SIDE)
FIXED = sparse_transformer_fixed.factors(block=SIDE, summary=1)

PACKAGES = ["torch", "numpy", "scikit-learn"]

VARIANTS: dict[str, list[Pattern]] = {
    "previous pixel": [patterns.sliding_window(lookback=0)] * LAYERS,
    "full": [patterns.causal()] * LAYERS,
    "local": [STRIDED[0]] * LAYERS,
    "strided, interleaved": interleaved(STRIDED, LAYERS),
    "strided, merged": merged(STRIDED, LAYERS),
    "strided, per head": by_head(STRIDED, LAYERS, HEADS),
    "fixed, interleaved": interleaved(FIXED, LAYERS),
    "fixed, merged": merged(FIXED, LAYERS),
    "fixed, per head": by_head(FIXED, LAYERS, HEADS),
}
"""One pattern for each layer. `previous pixel` has nothing to attend to but its own input."""


def train(layers: Sequence[Pattern], seed: int, steps: int) -> tuple[float, list[float]]:
    """(test nats per pixel, training loss at every step) of one model on one seed."""
    model, losses = compare.trained(lambda: {"pattern": layers}, "digits", seed, steps)
    return compare.pixel_score(model), losses


def keys_per_row(layers: Sequence[Pattern]) -> float:
    """Mean |S_i| over rows, layers and heads: what one head of one layer reads."""
    masks = [pattern.mask(PIXELS).float() for pattern in layers]
    return sum(mask.sum(-1).mean().item() for mask in masks) / len(masks)


def runs() -> list[Run]:
    """Every pattern on every seed, and some for longer."""
    short = [(name, name, STEPS, seed) for name in VARIANTS for seed in SEEDS]
    long = [
        (f"{name}, longer", name, LONGER_STEPS, seed) for name in LONGER for seed in LONGER_SEEDS
    ]
    return [
        Run(title, {"variant": name, "steps": steps}, seed)
        for title, name, steps, seed in short + long
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Test nats per pixel of one model."""
    layers = VARIANTS[config["variant"]]
    return compare.measured(lambda: {"pattern": layers}, "digits", seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """The result as it is stored: by variant, one score for each seed; "longer" apart."""
    short, long = (
        [x for x in done if x["run"]["config"]["steps"] == steps] for steps in (STEPS, LONGER_STEPS)
    )
    return {**_table(short), "longer": {**_table(long), "provenance": summary(long)}}


def _table(done: Sequence[Done]) -> dict[str, Any]:
    variants: dict[str, dict[str, Any]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        name = x["run"]["config"]["variant"]
        layers = VARIANTS[name]
        row = {
            "layers": [pattern.spec() for pattern in layers],
            "keys_per_row": keys_per_row(layers),
            "test_nats": [],
        }
        variants.setdefault(name, row)["test_nats"].append(x["result"]["score"])
    sizes = {"width": compare.PIXEL_WIDTH, "batch": compare.PIXEL_BATCH, "rate": RATE}
    return {
        "title": "Digits 8×8, autoregressive: test nats per pixel",
        "settings": {
            **{"layers": LAYERS, "heads": HEADS, **sizes, "test_images": TEST},
            "threads": done[0]["result"]["threads"],
        },
        "variants": {name: variants[name] for name in VARIANTS if name in variants},
    }


if __name__ == "__main__":
    sys.exit(main(["digits"]))
