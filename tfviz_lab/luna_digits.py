"""Which digit is it? Luna by its number of vectors, and with a P that does not travel on.

    python -m tfviz_lab luna_digits

An encoder of two layers and four heads reads an image as 64 pixels, one token each. "stays" has
the vectors of "l = 4", but each layer packs with vectors of its own, which nothing hands up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.compressed.luna import Luna, nested
from tfviz.cores import Where
from tfviz.models.blocks import Stack
from tfviz.position.learned_pe import Learned
from tfviz.training import seeded, train
from tfviz_lab.compare import CLASSES, HEADS, LAYERS, LEVELS, PIXEL_WIDTH, PIXELS, classes, images
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
SEEDS, STEPS, BATCH = (0, 1, 2), 400, 32
SIZES = (1, 4, 8, 16)


class Stays(Luna):
    """Whose P is the layer's own."""

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        where.hand_up(None)  # what the layer below has handed up is not there
        answer = super().forward(Q, K, V, where)
        where.hand_up(None)
        return answer


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "stays": lambda: {"core": lambda d_head, h: Stays(d_head, h, 4)},
    **{f"l = {l}": lambda l=l: {"core": nested(l, PIXEL_WIDTH)} for l in SIZES},
}


class PixelEncoder(nn.Module):
    """Logits of the ten digits from the mean of all pixels, read all at once."""

    def __init__(self, **more: Any) -> None:
        super().__init__()
        self.pixel, self.positions = nn.Linear(1, PIXEL_WIDTH), Learned(PIXELS, PIXEL_WIDTH)
        self.stack = Stack(LAYERS, PIXEL_WIDTH, HEADS, **more)
        self.logits = nn.Linear(PIXEL_WIDTH, CLASSES)

    def forward(self, pixels: Int[Tensor, "b 64"]) -> Float[Tensor, "b classes"]:
        X = self.pixel(pixels[..., None] / (LEVELS - 1))
        return self.logits(self.stack(X + self.positions(torch.arange(PIXELS))).mean(1))


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    training, digits = images()[0], classes()[0]
    drawn = torch.randint(len(training), (BATCH,), generator=rng)
    return F.cross_entropy(model(training[drawn]), digits[drawn])


@torch.no_grad()
def errors(model: nn.Module) -> float:
    """The share of test images that the model takes for another digit."""
    return round(1 - (model(images()[1]).argmax(-1) == classes()[1]).float().mean().item(), 4)


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = seeded(seed, lambda: PixelEncoder(**VARIANTS[config["variant"]]()))
    train(model, loss, config["steps"], lr=3e-3, seed=seed, progress=False)
    learned = sum(p.numel() for p in model.parameters())
    return {"errors": errors(model), "parameters": learned}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, a share of errors for each seed, and how many numbers the model learns."""
    by_seed = sorted(done, key=lambda x: x["run"]["seed"])
    of = {name: [x["result"] for x in by_seed if x["run"]["name"] == name] for name in VARIANTS}
    return {
        "sizes": list(SIZES),
        "errors": {name: [x["errors"] for x in results] for name, results in of.items()},
        "parameters": {name: results[0]["parameters"] for name, results in of.items()},
    }
