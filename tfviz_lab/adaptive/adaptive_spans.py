"""How far heads of a small GPT for English letters look back, when each may learn it.

learned     three layers of four heads, spans that begin at START of 64, for each price λ; and at 0
held        the same three layers with all spans held at 0, and at 64: plain attention
scales      four layers, the windows of SCALES: shortest lowest, shortest highest, or all in every
            layer. 16 heads, four of each scale, so the pairs are as many

python -m tfviz_lab adaptive_spans    → results/adaptive_spans.json
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.adaptive.adaptive_span import AdaptiveSpan, price
from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz.cores import Dense
from tfviz.models.blocks import Block
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import mean_loss, next_token, seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS, EVERY = (0, 1, 2), 300, 30
PACKAGES = ["torch", "numpy"]
L, WIDTH, HEADS, BATCH, RATE, R = 64, 64, 4, 16, 3e-3, 4
START, PRICES = 32, (0.0, 0.0005, 0.002, 0.008)
LEARNED = [{"price": x, "start": START, "steps": STEPS} for x in PRICES]
LEARNED += [{"price": 0.0, "start": 0, "steps": STEPS}]
HELD = [{"held": z, "steps": STEPS} for z in (0, L)]
SCALES = (1, 3, 8, L - 1)
ORDERS: dict[str, Sequence[Sequence[int]]] = {
    "short below": [HEADS * (w,) for w in SCALES],
    "short above": [HEADS * (w,) for w in reversed(SCALES)],
    "all in each": len(SCALES) * [SCALES],
}


def gpt(layers: int, core: Any, **more: Any) -> GPT:
    vocab = len(data.characters()[1])
    return GPT(vocab, WIDTH, HEADS, layers, positions=Learned(L, WIDTH), core=core, **more)


def spans(model: GPT) -> list[list[float]]:
    """z of every head, lowest layer first."""
    cores = [cast(Block, block).attend.core for block in model.stack.blocks]
    found = [cast(AdaptiveSpan, core).spans(torch.empty(0)).flatten().tolist() for core in cores]
    return [[round(z, 2) for z in layer] for layer in found]


def learn(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Spans every EVERY steps, and nats per held-out letter at the end."""
    core = partial(AdaptiveSpan, HEADS, S=L, R=R, start=config["start"])
    model, history = seeded(seed, lambda: gpt(3, core)), list[list[list[float]]]()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not (config.get("held") and name.endswith(".share")))
    training, held_out = data.split(data.characters()[0])
    nats = next_token(training, BATCH, L)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if step % EVERY == 0:
            history.append(spans(cast(GPT, model)))
        return nats(model, rng, step) + config["price"] * price(model)

    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    score = mean_loss(model, next_token(held_out, 32, L))
    return {"spans": [*history, spans(model)], "nats": round(score, 4)}


def scaled(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Nats per held-out letter with fixed windows."""
    order = ORDERS[config["order"]]
    told = lambda n: {"pattern": multi_scale(order[n])}  # noqa: E731
    model = seeded(seed, lambda: gpt(len(order), Dense, layer=told))
    training, held_out = data.split(data.characters()[0])
    nats = next_token(training, BATCH, L)
    train(model, nats, config["steps"], lr=RATE, seed=seed, progress=False)
    return {"nats": round(mean_loss(model, next_token(held_out, 32, L)), 4)}


def runs() -> list[Run]:
    """Every price and every order, on every seed."""
    prices = [(f"price {c['price']}, from {c['start']}", c) for c in LEARNED]
    orders = [(f"order {name}", {"order": name, "steps": STEPS}) for name in ORDERS]
    held = [(f"held at {c['held']}", c) for c in HELD]
    return [Run(name, config, seed) for seed in SEEDS for name, config in prices + held + orders]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "held" in config:
        steps, z = config["steps"], config["held"]
        config = {"price": 0.0, "start": z, "steps": steps, "held": True}
    return scaled(config, seed) if "order" in config else learn(config, seed)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"learned": [{price, start, spans: [seed][time][layer][head], nats}], "held": {z: nats},
    "orders": {…}}."""
    learned: list[dict[str, Any]] = [{**c, "spans": [], "nats": []} for c in LEARNED]
    orders: dict[str, list[float]] = {name: [] for name in ORDERS}
    held: dict[str, list[float]] = {str(c["held"]): [] for c in HELD}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        if "order" in config:
            orders[config["order"]].append(result["nats"])
        elif "held" in config:
            held[str(config["held"])].append(result["nats"])
        else:
            row = next(r for r in learned if config.items() <= r.items())
            row["spans"].append(result["spans"])
            row["nats"].append(result["nats"])
    return {
        "title": "Learned spans, and fixed ones",
        "longest": L,
        "ramp": R,
        "every": EVERY,
        "learned": learned,
        "scales": list(SCALES),
        "held": held,
        "orders": orders,
    }
