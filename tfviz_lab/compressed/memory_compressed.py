"""Memory-compressed attention in a small GPT of characters, alone and beside local attention.

    python -m tfviz_lab memory_compressed    → results/memory_compressed.json

Two layers read 128 characters. `layers` names what each of them is, from below: F full causal
attention, L local attention within blocks of BLOCK characters, M memory-compressed attention with
groups of C. The paper alternates L and M.

score     nats per character of held-out text, mean over all places of 128 characters
places    the same by place, in stretches of STRETCH
pairs     queries times the keys that they may use, of both layers, in a head
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, nn

from tfviz import GPT, data
from tfviz import patterns as P
from tfviz.compressed.memory_compressed_attention import MemoryCompressed, staircase
from tfviz.position.learned_pe import Learned
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, BATCH, LENGTH = (0, 1, 2), 300, 8, 128
BLOCK, C, WIDTH, HEADS, STRETCH, TEXTS = 16, 3, 48, 4, 16, 32

LAYERS: dict[str, dict[str, Any]] = {
    "F": {"pattern": P.causal()},
    "L": {"pattern": P.own_block(block=BLOCK)},
    "M": {"pattern": P.causal(), "core": partial(MemoryCompressed, c=C)},
}
VARIANTS = {
    "full attention": "FF",
    "compressed": "MM",
    "local": "LL",
    "local, then compressed": "LM",
}


def gpt(layers: str) -> GPT:
    vocab = len(data.characters()[1])
    return GPT(
        vocab,
        WIDTH,
        HEADS,
        len(layers),
        positions=Learned(LENGTH, WIDTH),
        layer=lambda n: LAYERS[layers[n]],
    )


def pairs(layers: str) -> int:
    """How many weights a head has in these layers, for LENGTH characters."""
    masks = {name: options["pattern"].mask(LENGTH) for name, options in LAYERS.items()}
    masks["M"] = staircase(LENGTH, C)
    return sum(int(masks[layer].sum()) for layer in layers)


@torch.no_grad()
def by_place(model: nn.Module) -> list[float]:
    """Nats per character of held-out text, at each place."""
    ids = data.split(data.characters()[0])[1]
    x, y = data.windows(ids, TEXTS, LENGTH, Generator().manual_seed(1))
    nats = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none")
    places: list[float] = nats.view(TEXTS, LENGTH).mean(0).tolist()
    return places


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = seeded(seed, partial(gpt, VARIANTS[config["variant"]]))
    loss = next_token(data.split(data.characters()[0])[0], BATCH, LENGTH)
    train(model, loss, config["steps"], lr=3e-3, seed=seed, progress=False)
    nats = torch.tensor(by_place(model))
    return {
        "score": round(nats.mean().item(), 4),
        "places": [round(x, 4) for x in nats.view(-1, STRETCH).mean(1).tolist()],
        "parameters": sum(x.numel() for x in model.parameters()),
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, one entry for each seed."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    return {
        "unit": "nats per character",
        "length": LENGTH,
        "pairs": {name: pairs(VARIANTS[name]) for name in rows},
        "score": {name: [x["score"] for x in of] for name, of in rows.items()},
        "places": {name: [x["places"] for x in of] for name, of in rows.items()},
        "parameters": {name: of[0]["parameters"] for name, of in rows.items()},
    }
