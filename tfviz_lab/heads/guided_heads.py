"""Heads that are shown a pattern: does a model for hidden characters learn faster, or better?

    python -m tfviz_lab guided_heads    → results/guided_heads.json

A small encoder with four heads in each of two layers learns to restore hidden characters of English
text, LENGTH at a time, for STEPS. Two heads of each layer are guided: for the first third of the
steps α is ALPHA, then it falls linearly to 0. VARIANTS names who is shown what. Positions are
sinusoids, as loud as the characters: a learned table begins so small that no head can find a
neighbour by it.

nats      per hidden character of held-out text, every EVERY steps
weight    of the guided patterns in the heads of their own, mean over layers: how much of each row's
          weight lies on the key that the pattern names
maps      of seed 0, layer 0, on one held-out text: all heads, before, in between, after training
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.basics.lm_objectives import hide, scored_loss
from tfviz.heads.guided_attention import guidance, strength, targets
from tfviz.models.bert import BERT
from tfviz.models.use import attention_weights, watched
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, EVERY, ALPHA, SHOWN = (0, 1, 2), 400, 40, 100.0, 16
LENGTH, WIDTH, HEADS, LAYERS, BATCH, ROWS, RATE = 32, 32, 4, 2, 32, 256, 5e-3

NEIGHBOURS = {"next": [0], "previous": [1]}
VARIANTS: dict[str, dict[str, list[int]]] = {
    "none": {},
    "neighbours": NEIGHBOURS,
    "first": {"first": [0, 1]},
}
"""Nobody; neighbours, which tell much of a hidden character; the first token, which tells less."""


def made() -> BERT:
    vocab = len(data.characters()[1])  # the number after the last character hides
    return BERT(vocab + 1, WIDTH, HEADS, LAYERS, positions=Sinusoidal(WIDTH))


def masked(model: nn.Module, ids: Tensor, rows: int, rng: Generator) -> Tensor:
    """Mean −ln p of the characters that are hidden in `rows` windows of this text."""
    vocab = len(data.characters()[1])
    text, _ = data.windows(ids, rows, LENGTH, rng)
    hidden, scored = hide(text, vocab, vocab, rng)
    return scored_loss(model(hidden), text, scored)


@torch.no_grad()
def score(model: nn.Module) -> float:
    held_out = data.split(data.characters()[0])[1]
    return round(masked(model, held_out, ROWS, Generator().manual_seed(1)).item(), 4)


@torch.no_grad()
def weight(model: nn.Module) -> dict[str, float]:
    """The weight on the key that each pattern names, in its head of NEIGHBOURS, over rows that have
    one, layers and held-out texts."""
    ids = data.split(data.characters()[0])[1]
    text = data.windows(ids, 16, LENGTH, Generator().manual_seed(1))[0]
    layers = torch.stack(list(attention_weights(model, text).values()))  # (N, b, h, L, L)
    found = {}
    for pattern, heads in NEIGHBOURS.items():
        T = targets(pattern, LENGTH)
        on = (layers[:, :, heads] * T).sum((-2, -1)).mean() / T.sum()
        found[pattern] = round(on.item(), 4)
    return found


@torch.no_grad()
def shown(model: nn.Module) -> list[list[list[float]]]:
    """The maps of layer 0 on the first characters of a held-out text."""
    text = data.split(data.characters()[0])[1][:SHOWN]
    A = next(iter(attention_weights(model, text[None]).values()))[0]
    return [[[round(x, 3) for x in row] for row in m] for m in A.tolist()]


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for seed in SEEDS for name in VARIANTS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    heads, steps = VARIANTS[config["variant"]], config["steps"]
    model = seeded(seed, made)
    text = data.split(data.characters()[0])[0]
    nats: list[float] = []
    weights: list[dict[str, float]] = []
    maps: list[list[list[list[float]]]] = []

    def look() -> None:
        nats.append(score(model))
        weights.append(weight(model))
        maps.append(shown(model))

    def loss(model: Any, rng: Generator, step: int) -> Tensor:
        if step % EVERY == 0:
            look()
        alpha = strength(step, steps, steps // 3, ALPHA) if heads else 0.0
        if not alpha:
            return masked(model, text, BATCH, rng)
        with watched(model):
            return masked(model, text, BATCH, rng) + alpha * guidance(model, heads)

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    look()
    found: dict[str, Any] = {"nats": nats}
    found["weight"] = {pattern: [x[pattern] for x in weights] for pattern in NEIGHBOURS}
    kept = [maps[0], maps[steps // 4 // EVERY], maps[-1]]
    return found | {"maps": kept if seed == 0 and config["variant"] != "first" else None}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant: nats and weights over training, one for each seed; the maps of seed 0."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    text = data.split(data.characters()[0])[1][:SHOWN]
    return {
        "unit": "nats per hidden character",
        "steps": STEPS,
        "at": [*range(0, STEPS + 1, EVERY)],
        "text": data.characters()[1].decode(text),
        "nats": {name: [x["nats"] for x in rows[name]] for name in VARIANTS},
        "weight": {name: [x["weight"] for x in rows[name]] for name in VARIANTS},
        "maps": {name: maps for name in VARIANTS if (maps := rows[name][0]["maps"])},
        "maps_at": [0, STEPS // 4 // EVERY * EVERY, STEPS],
    }
