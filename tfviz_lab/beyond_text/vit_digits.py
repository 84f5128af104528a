"""Does a Vision Transformer need positions, and does the size of its patches matter? Digits, 8 × 8.

    python -m tfviz_lab vit_digits    → results/vit_digits.json

patches   by `protocol`, five folds: patches of 2 × 2 and of 4 × 4 pixels; those of 2 × 2 also
          without positions, and with the patches of all images in one other order, the same in
          training and in the test. Each is then tested on images whose patches are in an order
          that it has not met: "moved"
reader    the tiny model that explorers run, its weights stored. To read what people draw, it is
          trained on images that are moved by up to a pixel, and half of them in black and white

The exam is `WHICH_DIGIT` with a model of its own: the same folds, lines and recipe, and a table of
positions that begins as loud as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.beyond_text.vit_patches import ViT, rearranged
from tfviz.measure import flops
from tfviz.stored.digit_vit import DIGITS, LEVELS, SIDE, pack, unpack, vit
from tfviz.training import seeded, train
from tfviz_lab import protocol
from tfviz_lab.compare import Task, classes, images
from tfviz_lab.protocol import SEEDS, WHICH_DIGIT, fold
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
WIDTH, HEADS, LAYERS, BATCH, LOUD = 48, 4, 2, 32, 0.5
RATE, READER_STEPS, READER_BATCH, READER_SEED = 3e-3, 3000, 64, 0


def pictures(pixels: Int[Tensor, "b 64"]) -> Float[Tensor, "b 1 8 8"]:
    """From 0 to 1."""
    return pixels.view(-1, 1, SIDE, SIDE) / LEVELS


def order_of(P: int, seed: int) -> Int[Tensor, "n"]:
    """A random order of the patches of an image."""
    return torch.randperm((SIDE // P) ** 2, generator=Generator().manual_seed(seed))


@torch.no_grad()
def right(model: nn.Module, shown: Float[Tensor, "b 1 8 8"]) -> float:
    """The share of the test images that the model reads correctly."""
    return round((model(shown).argmax(-1) == classes()[1]).float().mean().item(), 4)


# --- patches --------------------------------------------------------------------------------------


class PatchReader(nn.Module):
    """Images → scores of the ten digits, from patches of P × P pixels.

    Without positions, or with the patches of every image in one other order, if that is said.
    """

    def __init__(
        self, pattern: Any = None, P: int = 2, positions: bool = True, shuffled: bool = False
    ) -> None:
        super().__init__()
        self.vit = ViT(SIDE, SIDE, P, DIGITS, WIDTH, HEADS, LAYERS, positions=positions)
        if self.vit.positions is not None:
            nn.init.normal_(self.vit.positions.P, std=LOUD)
        self.order = order_of(P, 100) if shuffled else None

    def forward(self, shown: Float[Tensor, "b 1 8 8"]) -> Float[Tensor, "b classes"]:
        return self.vit(self.seen(shown))

    def seen(self, shown: Float[Tensor, "b 1 8 8"]) -> Float[Tensor, "b 1 8 8"]:
        """The images as the model gets them."""
        return shown if self.order is None else rearranged(shown, self.vit.P, self.order)


def image_loss(of_fold: int, model: nn.Module, rng: Generator, step: int) -> Tensor:
    known, digits, *_ = fold(of_fold)
    drawn = torch.randint(len(known), (BATCH,), generator=rng)
    return F.cross_entropy(model(pictures(known[drawn])), digits[drawn])


@torch.no_grad()
def image_errors(of_fold: int, model: nn.Module) -> float:
    """The share of the fold's test images that the model takes for another digit."""
    *_, new, digits = fold(of_fold)
    return round((model(pictures(new)).argmax(-1) != digits).double().mean().item(), 4)


@torch.no_grad()
def errors_when_moved(of_fold: int, model: PatchReader) -> float:
    """The same in an order of patches that the model has not met."""
    *_, new, digits = fold(of_fold)
    P = model.vit.P
    shown = rearranged(model.seen(pictures(new)), P, order_of(P, 200 + of_fold))
    return round((model.vit(shown).argmax(-1) != digits).double().mean().item(), 4)


def _which_image(seed: int) -> Task:
    return replace(
        WHICH_DIGIT.task(seed),
        name="which_image",
        model=PatchReader,
        loss=lambda seed, steps: partial(image_loss, seed),
        score=partial(image_errors, seed),
        inputs=lambda rng: pictures(fold(0)[0][torch.randint(1000, (2,), generator=rng)]),
    )


EXAM = replace(WHICH_DIGIT, task=_which_image)
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "patches of 2 × 2": lambda: {},
    "patches of 4 × 4": lambda: {"P": 4},
    "no positions": lambda: {"positions": False},
    "shuffled": lambda: {"shuffled": True},
}
_runs, follow, _collect = protocol.experiment(VARIANTS, EXAM, reference="patches of 2 × 2")


def of_patches(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """What `protocol.measured` says, the errors in an order not met, and the table of positions."""
    told = VARIANTS[config["variant"]]
    model, curve = protocol.trained(told, EXAM, seed, config["steps"], config["rate"])
    table = None if model.vit.positions is None else model.vit.positions.P.detach()[1:]
    return {
        "score": curve[-1],
        "curve": curve,
        "parameters": sum(x.numel() for x in model.parameters()),
        "flops": seeded(seed, partial(flops, partial(training_step, model, seed))),
        "moved": errors_when_moved(seed, model),
        "positions": None
        if table is None
        else [[round(x, 4) for x in row] for row in table.tolist()],
    }


def training_step(model: nn.Module, seed: int) -> None:
    image_loss(seed, model, Generator().manual_seed(seed), 0).backward()


# --- the reader -----------------------------------------------------------------------------------


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
    return [Run("reader", {"task": "reader", "steps": READER_STEPS}, READER_SEED), *_runs()]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config.get("task") == "reader":
        return of_reader(seed, config["steps"])
    if config["part"] == "trivial":
        return dict(EXAM.trivial(seed))
    return of_patches(config, seed)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """The exam; by variant the errors in an order not met; the reader; one test image a digit."""
    scored = {
        (x["run"]["config"]["variant"], x["run"]["seed"]): x["result"]
        for x in done
        if x["run"]["config"].get("part") == "score"
    }
    reader = next(x["result"] for x in done if x["run"]["name"] == "reader")
    pixels, digits = images()[1], classes()[1]
    firsts = [int((digits == digit).nonzero()[0]) for digit in range(DIGITS)]
    return {
        "title": "Digits 8×8: which digit is it?",
        **_collect([x for x in done if x["run"]["name"] != "reader"]),
        "moved": {name: [scored[name, seed]["moved"] for seed in SEEDS] for name in VARIANTS},
        "tokens": {name: (SIDE // told().get("P", 2)) ** 2 + 1 for name, told in VARIANTS.items()},
        "positions": {
            name: [scored[name, seed]["positions"] for seed in SEEDS]
            for name in ("patches of 2 × 2", "shuffled")
        },
        "order": order_of(2, 100).tolist(),
        "reader": reader,
        "shown": [pixels[n].tolist() for n in firsts],
        "settings": {"width": WIDTH, "heads": HEADS, "layers": LAYERS, "batch": BATCH},
    }
