"""Heads that are rewarded for being different: how alike are they?

    python -m tfviz_lab head_disagreement    → results/head_disagreement.json

A small causal GPT with four heads in each of two layers reads LENGTH characters of English text at
a time, for STEPS. λ times the agreement of its heads is added to the loss. VARIANTS names the kind
of agreement, and λ. On the same held-out text, before training and after every EVERY steps:

alike     how alike two different heads are, mean over pairs and layers, by kind
pairs     of seed 0, and the kind "output": the matrix of all pairs, for each layer
nats      per character, after training; no model predicts text well after so few steps
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.heads.disagreement_regularization import KINDS, agreement, between, pairs_of, values
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, EVERY, ROWS = (0, 1, 2), 200, 20, 64
LENGTH, WIDTH, HEADS, LAYERS, BATCH, RATE = 32, 32, 4, 2, 16, 5e-3

VARIANTS: dict[str, tuple[str, float]] = {
    "none": ("output", 0.0),
    "subspace 1": ("subspace", 1.0),
    "position 1": ("position", 1.0),
    "output 0.1": ("output", 0.1),
    "output 1": ("output", 1.0),
    "output 10": ("output", 10.0),
}
SHOWN = ("output 0.1", "output 10")
"""With one seed, for the explorer of the chapter."""


def made() -> GPT:
    vocab = len(data.characters()[1])
    return GPT(vocab, WIDTH, HEADS, LAYERS, positions=Learned(LENGTH, WIDTH))


def held_out() -> tuple[Tensor, Tensor]:
    ids = data.split(data.characters()[0])[1]
    return data.windows(ids, ROWS, LENGTH, Generator().manual_seed(1))


@torch.no_grad()
def likeness(model: nn.Module) -> tuple[dict[str, float], list[list[list[float]]]]:
    """(by kind the mean over pairs and layers, the matrices of "output" for each layer)."""
    with values(model) as V:
        model(held_out()[0])
        found = {kind: [x.mean(0) for x in pairs_of(model, kind, V).values()] for kind in KINDS}
    alike = {
        kind: round(torch.stack([between(x) for x in layers]).mean().item(), 4)
        for kind, layers in found.items()
    }
    return alike, [[[round(x, 3) for x in row] for row in m.tolist()] for m in found["output"]]


@torch.no_grad()
def nats(model: nn.Module) -> float:
    x, y = held_out()
    return round(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), 4)


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed)
        for name in VARIANTS
        for seed in (SEEDS[:1] if name in SHOWN else SEEDS)
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    kind, strength = VARIANTS[config["variant"]]
    model = seeded(seed, made)
    plain = next_token(data.split(data.characters()[0])[0], BATCH, LENGTH)
    alike: list[dict[str, float]] = []
    pairs: list[list[list[list[float]]]] = []

    def look() -> None:
        kinds, layers = likeness(model)
        alike.append(kinds)
        pairs.append(layers)

    def loss(model: Any, rng: Generator, step: int) -> Tensor:
        if step % EVERY == 0:
            look()
        if not strength:
            return plain(model, rng, step)
        with values(model) as V:
            return plain(model, rng, step) + strength * agreement(model, kind, V)

    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    look()
    found = {"nats": nats(model), "alike": {k: [x[k] for x in alike] for k in KINDS}}
    return found | {"pairs": pairs if seed == 0 and kind == "output" else None}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant: nats, and likeness by kind, one for each seed; the pairs of seed 0."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "at": [*range(0, STEPS + 1, EVERY)],
        "nats": {name: [x["nats"] for x in rows[name]] for name in VARIANTS},
        "alike": {
            kind: {name: [x["alike"][kind] for x in rows[name]] for name in VARIANTS}
            for kind in KINDS
        },
        "pairs": {name: pairs for name in VARIANTS if (pairs := rows[name][0]["pairs"])},
    }
