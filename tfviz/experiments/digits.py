"""Does sparse attention cost anything? Handwritten digits, pixel by pixel.

An autoregressive Transformer predicts each pixel (17 grey levels) of an 8×8 image from the pixels
before it, so that a row of the image is a stride of 8. Models differ only in the pattern of their
two layers; with the same seed they start from the same weights and see the same batches. Measured
on images never trained on: nats per pixel, beside the mean number of keys per row and layer.

    python -m tfviz.experiments digits        all patterns, all seeds, → results/digits.json

Under "longer" the result has four of the patterns trained three times as long, to see whether the
verdict depends on when one stops.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import patterns
from tfviz.experiments.runner import Done, Run, main, summary
from tfviz.patterns import Pattern
from tfviz.sparse import sparse_transformer_fixed, sparse_transformer_strided
from tfviz.sparse.sparse_transformer_usage import (
    SparseSelfAttention,
    by_head,
    interleaved,
    merged,
)

SIDE, LEVELS = 8, 17
LENGTH = SIDE * SIDE
LAYERS, HEADS, WIDTH = 2, 4, 48
STEPS, BATCH, RATE, TEST = 400, 32, 3e-3, 397
SEEDS = (0, 1, 2, 3, 4)
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


class Block(nn.Module):
    """Pre-norm Transformer block whose attention follows a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.attend = SparseSelfAttention(WIDTH, HEADS, pattern)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, X: Float[Tensor, "b L d"]) -> Float[Tensor, "b L d"]:
        X = X + self.attend(self.norm1(X))
        return X + self.mlp(self.norm2(X))


class PixelTransformer(nn.Module):
    """Logits of each pixel from the pixels before it; input 0 is a start symbol."""

    def __init__(self, layers: Sequence[Pattern]) -> None:
        super().__init__()
        self.level = nn.Embedding(LEVELS + 1, WIDTH)  # the last one is the start symbol
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(*(Block(pattern) for pattern in layers))
        self.norm, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LEVELS)

    def forward(self, pixels: Int[Tensor, "b L"]) -> Float[Tensor, "b L levels"]:
        start = torch.full_like(pixels[:, :1], LEVELS)
        before = torch.cat([start, pixels[:, :-1]], 1)
        return self.logits(self.norm(self.blocks(self.level(before) + self.position)))


def nats(model: PixelTransformer, pixels: Int[Tensor, "b L"]) -> Tensor:
    """Mean −ln p(pixel | pixels before it)."""
    return F.cross_entropy(model(pixels).flatten(0, 1), pixels.flatten())


@cache
def images() -> tuple[Int[Tensor, "n 64"], Int[Tensor, "m 64"]]:
    """(train, test) of scikit-learn's digits, split once and for all seeds alike."""
    from sklearn.datasets import load_digits

    pixels = torch.tensor(load_digits().images).long().flatten(1)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
    return pixels[order[TEST:]], pixels[order[:TEST]]


def train(layers: Sequence[Pattern], seed: int, steps: int) -> tuple[float, list[float]]:
    """(test nats per pixel, training loss at every step) of one model on one seed."""
    training, test = images()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PixelTransformer(layers)
        batches = torch.randint(len(training), (steps, BATCH))
    optimiser = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    losses = []
    for batch in batches:
        loss = nats(model, training[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    with torch.no_grad():
        return nats(model, test).item(), losses


def keys_per_row(layers: Sequence[Pattern]) -> float:
    """Mean |S_i| over rows, layers and heads: what one head of one layer reads."""
    masks = [pattern.mask(LENGTH).float() for pattern in layers]
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
    score, _ = train(VARIANTS[config["variant"]], seed, config["steps"])
    return {"test_nats": round(score, 4), "threads": torch.get_num_threads()}


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
        variants.setdefault(name, row)["test_nats"].append(x["result"]["test_nats"])
    settings = {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "batch": BATCH, "rate": RATE}
    return {
        "title": "Digits 8×8, autoregressive: test nats per pixel",
        "settings": settings | {"test_images": TEST, "threads": done[0]["result"]["threads"]},
        "variants": {name: variants[name] for name in VARIANTS if name in variants},
    }


if __name__ == "__main__":
    sys.exit(main(["digits"]))
