"""Fewer heads of keys and values, made of those of a trained model.

    python -m tfviz_lab head_sharing    → results/head_sharing.json

A small GPT with eight heads reads 64 characters of English text at a time. The score is nats per
character on held-out text.

scratch     trained for STEPS with 8 heads of keys and values
converted   the model with 8, made into one with 4, 2 and 1: each new head is the mean of its
            group's, the first, or random; the score as it is, and after MORE steps
shown       what the chapter's explorer shows, of seed 0: keys and values of one character in the
            eight heads of the first layer
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.heads.grouped_query_attention import convert, first_of_group, fresh, mean_of_group
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, MORE = (0, 1, 2), 300, 50
LENGTH, WIDTH, HEADS, LAYERS, BATCH, ROWS = 64, 64, 8, 2, 16, 128
D_FF = 4 * WIDTH
RATE, LATER_RATE = 3e-3, 1e-3

WHOLE = "8"
VARIANTS: dict[str, dict[str, Any]] = {WHOLE: {}}
POOLS = {"mean": mean_of_group, "first": first_of_group, "random": fresh}
FEWER = (4, 2, 1)


def made(name: str) -> GPT:
    vocab = len(data.characters()[1])
    options: dict[str, Any] = {"positions": Learned(LENGTH, WIDTH), "d_ff": D_FF} | VARIANTS[name]
    return GPT(vocab, WIDTH, HEADS, LAYERS, **options)


def trained(name: str, seed: int, steps: int) -> GPT:
    model = seeded(seed, lambda: made(name))
    return after(model, seed, steps, RATE)


def after(model: GPT, seed: int, steps: int, lr: float) -> GPT:
    """The model after so many steps of training."""
    loss = next_token(data.split(data.characters()[0])[0], BATCH, LENGTH)
    train(model, loss, steps, lr=lr, seed=seed, progress=False)
    return model


@torch.no_grad()
def nats(model: nn.Module) -> float:
    """Nats per character on held-out text."""
    ids = data.split(data.characters()[0])[1]
    x, y = data.windows(ids, ROWS, LENGTH, Generator().manual_seed(1))
    return round(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), 4)


def count(model: nn.Module) -> int:
    return sum(x.numel() for x in model.parameters())


@torch.no_grad()
def example(model: Any) -> dict[str, Any]:
    """Keys and values of the last of some characters, (heads, d_head), in the first layer."""
    ids, alphabet = data.characters()
    text = ids[:8]
    seen: list[Tensor] = []
    attend = model.stack.blocks[0].attend
    hook = attend.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(text[None])
    hook.remove()
    _, K, V = attend.project(seen[0], None)
    rounded = {
        name: [[round(x, 3) for x in row] for row in X[0, :, -1].tolist()]
        for name, X in (("K", K), ("V", V))
    }
    return {"text": alphabet.decode(text), **rounded}


def converted(seed: int, steps: int) -> dict[str, Any]:
    model = trained(WHOLE, seed, steps)
    found: dict[str, Any] = {"score": nats(model), "parameters": count(model)}
    for name, pool in POOLS.items():
        for h_kv in FEWER:
            fewer = seeded(seed, lambda pool=pool, h_kv=h_kv: convert(model, h_kv, pool))  # type: ignore[misc]
            before = nats(fewer)
            found[f"{name} {h_kv}"] = [before, nats(after(fewer, seed + 10, MORE, LATER_RATE))]
    shown = example(model) if seed == 0 else None
    found["whole, later"] = nats(after(model, seed + 10, MORE, LATER_RATE))
    return found | {"shown": shown}


def runs() -> list[Run]:
    made_of = [Run("converted", {"task": "converted", "steps": STEPS}, seed) for seed in SEEDS]
    return made_of + [
        Run(f"{name} heads of keys", {"task": "scratch", "variant": name, "steps": STEPS}, seed)
        for name in VARIANTS
        if name != WHOLE
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "converted":
        return converted(seed, config["steps"])
    model = trained(config["variant"], seed, config["steps"])
    return {"score": nats(model), "parameters": count(model)}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Scores by variant and by conversion, one for each seed."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config = x["run"]["config"]
        rows.setdefault(config.get("variant", WHOLE), []).append(x["result"])
    made_of = rows[WHOLE]
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "more": MORE,
        "scratch": {name: [x["score"] for x in rows[name]] for name in VARIANTS if name in rows},
        "parameters": {name: rows[name][0]["parameters"] for name in VARIANTS if name in rows},
        "whole, later": [x["whole, later"] for x in made_of],
        "converted": {
            name: {str(h_kv): [x[f"{name} {h_kv}"] for x in made_of] for h_kv in FEWER}
            for name in POOLS
        },
        "shown": made_of[0]["shown"],
    }
