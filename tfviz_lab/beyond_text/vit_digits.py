"""Does a Vision Transformer need positions, and how large should its patches be? Digits, 8 × 8.

    python -m tfviz_lab vit_digits    → results/vit_digits.json

patches   one model for each size of a patch; patches of 2 × 2 also without positions, and with the
          patches of all images in one other order, the same in training and in the test. Each is
          then tested on images whose patches are in an order that it has not met: "moved"
reader    the tiny model that explorers run, its weights stored. To read what people draw, it is
          trained on images that are moved by up to a pixel, and half of them in black and white
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.beyond_text.vit_patches import ViT, rearranged
from tfviz.stored.digit_vit import DIGITS, LEVELS, SIDE, pack, unpack, vit
from tfviz.training import seeded, train
from tfviz_lab.compare import classes, images
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
WIDTH, HEADS, LAYERS = 48, 4, 2
STEPS, BATCH, RATE, SEEDS = 600, 32, 3e-3, (0, 1, 2)
READER_STEPS, READER_BATCH, READER_SEED = 3000, 64, 0


class Variant(NamedTuple):
    """Patches of P × P pixels, with positions or without, in the order of the image or another."""

    P: int
    positions: bool = True
    shuffled: bool = False


VARIANTS = {
    "patches of 4 × 4": Variant(4),
    "patches of 2 × 2": Variant(2),
    "patches of 1 × 1": Variant(1),
    "no positions": Variant(2, positions=False),
    "shuffled": Variant(2, shuffled=True),
}


def pictures(pixels: Int[Tensor, "b 64"]) -> Float[Tensor, "b 1 8 8"]:
    """From 0 to 1."""
    return pixels.view(-1, 1, SIDE, SIDE) / LEVELS


def order_of(P: int, seed: int) -> Int[Tensor, "n"]:
    """A random order of the patches of an image."""
    return torch.randperm((SIDE // P) ** 2, generator=Generator().manual_seed(seed))


def arranged(variant: Variant, shown: Float[Tensor, "b 1 8 8"]) -> Float[Tensor, "b 1 8 8"]:
    """As the variant sees the images."""
    return rearranged(shown, variant.P, order_of(variant.P, 100)) if variant.shuffled else shown


@torch.no_grad()
def right(model: nn.Module, shown: Float[Tensor, "b 1 8 8"]) -> float:
    """The share of the test images that the model reads correctly."""
    return round((model(shown).argmax(-1) == classes()[1]).float().mean().item(), 4)


def of_patches(name: str, seed: int, steps: int) -> dict[str, Any]:
    """A model trained on digits: accuracy, and cosines between its positions."""
    variant, (known, new) = VARIANTS[name], images()
    P, positions, _ = variant
    model = seeded(
        seed, lambda: ViT(SIDE, SIDE, P, DIGITS, WIDTH, HEADS, LAYERS, positions=positions)
    )
    seen = arranged(variant, pictures(known))

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        drawn = torch.randint(len(seen), (BATCH,), generator=rng)
        return F.cross_entropy(model(seen[drawn]), classes()[0][drawn])

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    test = arranged(variant, pictures(new))
    table = None if model.positions is None else model.positions.P.detach()[1:]
    return {
        "right": right(model, test),
        "moved": right(model, rearranged(test, P, order_of(P, 200 + seed))),
        "tokens": (SIDE // P) ** 2 + 1,
        "parameters": sum(x.numel() for x in model.parameters()),
        "positions": None
        if table is None
        else [[round(x, 4) for x in row] for row in table.tolist()],
    }


def black_and_white(
    shown: Float[Tensor, "b 1 8 8"], above: Float[Tensor, "b"]
) -> Float[Tensor, "b 1 8 8"]:
    """Pixels that are brighter than a threshold, one for each image, are 1, and the others 0."""
    return (shown > above.view(-1, 1, 1, 1)).to(shown.dtype)


def by_hand(shown: Float[Tensor, "b 1 8 8"], rng: Generator) -> Float[Tensor, "b 1 8 8"]:
    """More like what people draw in cells: moved by a pixel or not, and half of them unshaded."""
    b = len(shown)
    moves = torch.randint(-1, 2, (b, 2), generator=rng)
    wide = F.pad(shown, (1, 1, 1, 1))[:, 0]
    rows = (moves[:, :1] + 1 + torch.arange(SIDE))[:, :, None]
    columns = (moves[:, 1:] + 1 + torch.arange(SIDE))[:, None]
    moved = wide[torch.arange(b)[:, None, None], rows, columns][:, None]
    plain = black_and_white(moved, 0.2 + 0.6 * torch.rand(b, generator=rng))
    return torch.where((torch.rand(b, generator=rng) < 0.5).view(-1, 1, 1, 1), plain, moved)


def of_reader(seed: int, steps: int) -> dict[str, Any]:
    """The tiny model: its weights, and how it reads the test images, as they are and unshaded."""
    model, seen = seeded(seed, vit), pictures(images()[0])

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        drawn = torch.randint(len(seen), (READER_BATCH,), generator=rng)
        return F.cross_entropy(model(by_hand(seen[drawn], rng)), classes()[0][drawn])

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    weights, test = pack(model), pictures(images()[1])
    model = unpack(weights)  # from here on the model that is stored, not the one before rounding
    half = torch.full((len(test),), 0.5)
    return {
        "right": right(model, test),
        "unshaded": right(model, black_and_white(test, half)),
        "weights": weights,
    }


def runs() -> list[Run]:
    patches = [
        Run(name, {"task": "patches", "variant": name, "steps": STEPS}, seed)
        for name in VARIANTS
        for seed in SEEDS
    ]
    return [Run("reader", {"task": "reader", "steps": READER_STEPS}, READER_SEED), *patches]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "reader":
        return of_reader(seed, config["steps"])
    return of_patches(config["variant"], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, for each seed the accuracies; the reader; ten test images, one of each digit."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    pixels, digits = images()[1], classes()[1]
    firsts = [int((digits == digit).nonzero()[0]) for digit in range(DIGITS)]

    def row(name: str) -> dict[str, Any]:
        of_seeds = [found[name, seed] for seed in SEEDS]
        lists = {key: [x[key] for x in of_seeds] for key in ("right", "moved")}
        return lists | {key: of_seeds[0][key] for key in ("tokens", "parameters")}

    return {
        "title": "Digits 8×8: which digit is it?",
        "variants": {name: row(name) for name in VARIANTS},
        "positions": {
            name: [found[name, seed]["positions"] for seed in SEEDS]
            for name in ("patches of 2 × 2", "shuffled")
        },
        "order": order_of(2, 100).tolist(),
        "reader": found["reader", READER_SEED],
        "shown": [pixels[n].tolist() for n in firsts],
        "settings": {
            **{"width": WIDTH, "heads": HEADS, "layers": LAYERS, "batch": BATCH, "rate": RATE},
            "test_images": len(digits),
        },
    }
