"""Which of the auxiliary losses pay in a small model? Bits per character on held-out text.

    python -m tfviz_lab auxiliary_losses     trains again and rewrites the stored result

Al-Rfou et al. 2018 take one thing at a time away from a model of 64 layers, trained for millions of
steps. Here one thing at a time is added to a small model that is trained for a few hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tfviz import data
from tfviz.basics.alrfou_auxiliary_losses import (
    DeepCharacterModel,
    auxiliary_loss,
    bits_by_layer,
    bits_by_position,
    loss_weights,
)
from tfviz.models.blocks import post_norm, pre_norm
from tfviz.training import Loss, seeded, train
from tfviz_lab.runner import Done, Run

WIDTH, HEADS, LENGTH, BATCH, RATE = 32, 4, 32, 16, 5e-3
SEEDS, EVERY = (0, 1, 2), 20  # steps between two looks at the layers


def objective(
    ids: Int[Tensor, "n"], steps: int, layers: int, length: int = LENGTH, batch: int = BATCH,
    every_position: bool = True, every_layer: bool = False, two_targets: bool = False,
) -> Loss:  # fmt: skip
    """The loss for `train`. The batches are the same whichever parts are on."""
    targets = (1.0, 0.5 if two_targets else 0.0)

    def loss(model: DeepCharacterModel, rng: Generator, step: int) -> Tensor:
        start = torch.randint(len(ids) - length - 2, (batch, 1), generator=rng)
        weights = loss_weights(step, steps, layers, targets)
        if not every_layer:
            weights[:-1] = 0
        return auxiliary_loss(model, ids[start + torch.arange(length + 2)], weights, every_position)

    return loss


def held_out_bits(
    model: DeepCharacterModel, ids: Int[Tensor, "n"], length: int = LENGTH, windows: int = 2048
) -> Float[Tensor, "L"]:
    """Bits by position on windows that are the same for every model."""
    rng = Generator().manual_seed(7)
    rounds = [data.windows(ids, 256, length, rng) for _ in range(windows // 256)]
    return torch.stack([bits_by_position(model, x, y) for x, y in rounds]).mean(0)


Options = dict[str, Any]
VARIANTS: dict[str, Options] = {
    "last position only": {"every_position": False},
    "(a) every position": {},
    "(a) + (b) every layer": {"every_layer": True},
    "(a) + (c) two targets": {"two_targets": True},
    "(a) + (b) + (c)": {"every_layer": True, "two_targets": True},
    "(a), positions at the input only": {"positions_per_layer": False},
}


ALL = "(a) + (b) + (c)"
CASES: dict[str, tuple[Options, list[str]]] = {
    "short": ({"layers": 8, "steps": 300, "order": "pre"}, list(VARIANTS)),
    "longer": ({"layers": 8, "steps": 900, "order": "pre"}, ["(a) every position", ALL]),
    "deep": (
        {"layers": 16, "steps": 200, "order": "post"},
        ["(a) every position", "(a) + (b) every layer"],
    ),
}


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bits by position on held-out text and, where layers are scored, by layer in training."""
    options = VARIANTS[config["variant"]].copy()
    built: Options = {"order": post_norm if config["order"] == "post" else pre_norm}
    if "positions_per_layer" in options:
        built["positions_per_layer"] = options.pop("positions_per_layer")
    ids, alphabet = data.characters()
    training, held_out = data.split(ids)
    N, steps = config["layers"], config["steps"]
    model = seeded(
        seed, lambda: DeepCharacterModel(len(alphabet), WIDTH, HEADS, N, LENGTH, **built)
    )
    loss = objective(training, steps, N, **options)
    x, y = data.windows(held_out, 128, LENGTH, Generator().manual_seed(7))
    looks: list[list[float]] = []

    def watched(model: DeepCharacterModel, rng: Generator, step: int) -> Tensor:
        if options.get("every_layer") and step % EVERY == 0:
            looks.append([round(b, 3) for b in bits_by_layer(model, x, y).tolist()])
        return loss(model, rng, step)

    train(model, watched, steps, lr=RATE, seed=seed, progress=False)
    by_position = held_out_bits(model, held_out)
    return {"by_position": [round(b, 4) for b in by_position.tolist()], "by_layer": looks}


def runs() -> list[Run]:
    """Every part on its own in a short training, all parts in a longer one, (b) in a deep stack."""
    return [
        Run(f"{case}: {variant}", {"variant": variant, **settings}, seed)
        for case, (settings, variants) in CASES.items()
        for variant in variants
        for seed in SEEDS
    ]


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By case and variant: bits at the last position for each seed, and by position; the layers."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

    def table(case: str, key: str) -> dict[str, Any]:
        names = CASES[case][1]
        return {v: [found[f"{case}: {v}", seed][key] for seed in SEEDS] for v in names}

    cases = {case: table(case, "by_position") for case in CASES}
    return {
        "unit": "bits per character",
        "cases": {case: settings for case, (settings, _) in CASES.items()},
        "by_position": cases,
        "last": {
            case: {v: [bits[-1] for bits in seeds] for v, seeds in rows.items()}
            for case, rows in cases.items()
        },
        "by_layer": {
            "every": EVERY,
            "bits": found["short: (a) + (b) every layer", SEEDS[0]]["by_layer"],
        },
        "settings": {
            "width": WIDTH, "heads": HEADS, "length": LENGTH, "batch": BATCH, "rate": RATE
        },
    }  # fmt: skip
