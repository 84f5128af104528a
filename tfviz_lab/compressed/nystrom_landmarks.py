"""Landmarks for trained maps: what Nyström attention and CSALR miss, and how the first trains.

    python -m tfviz_lab nystrom_landmarks    → results/nystrom_landmarks.json

score     nats per hidden character of English text, 64 characters at a time (`masked_text` of
          `compare`), of a model with full attention, and with Nyström attention, m = 16
missed    of the maps of the model with full attention, in the Frobenius norm, by layer: for each m
          the median over heads and texts, and the largest; for Nyström with the exact
          pseudo-inverse and with six steps, and for CSALR with and without E, all with the scale
          1/√d that the model was trained with
steps     the same for Nyström with m = 16, by steps of the iteration
negative  the share of negative entries in what Nyström with six steps applies, by layer and m
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.compressed.csalr import csalr_definition
from tfviz.compressed.nystromformer import Nystrom, nystrom_definition
from tfviz_lab import compare
from tfviz_lab.compare import TASKS, TRAIN_LENGTH
from tfviz_lab.compressed.linformer import heads_of, held_out
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, M = (0, 1, 2), TASKS["masked_text"].steps, 16
COUNTS = (1, 2, 4, 8, 16, 32, 64)
ITERATIONS = tuple(range(0, 21))

VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "Nyström": lambda: {"core": partial(Nystrom, m=M)},
}

WAYS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "exact": lambda Q, K, m: nystrom_definition(Q, K, K, m, None)[1],
    "six steps": lambda Q, K, m: nystrom_definition(Q, K, K, m)[1],
    "CSALR": lambda Q, K, m: csalr_definition(Q, K, K, m, scale=Q.shape[-1] ** -0.5)[1],
    "without E": lambda Q, K, m: csalr_definition(Q, K, K, m, False, Q.shape[-1] ** -0.5)[1],
}


def missed(A: Tensor, other: Tensor) -> dict[str, float]:
    """|A − other| / |A| over heads and texts."""
    error = torch.linalg.matrix_norm(A - other) / torch.linalg.matrix_norm(A)
    return {"median": round(error.median().item(), 4), "largest": round(error.max().item(), 4)}


@torch.no_grad()
def of_maps(model: nn.Module) -> dict[str, Any]:
    layers = []
    for Q, K in heads_of(model, held_out()):
        Q, K = Q.double(), K.double()
        A = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
        layers.append(
            {
                "missed": {
                    name: [missed(A, way(Q, K, m)) for m in COUNTS] for name, way in WAYS.items()
                },
                "steps": [missed(A, nystrom_definition(Q, K, K, M, n)[1]) for n in ITERATIONS],
                "negative": [
                    round((WAYS["six steps"](Q, K, m) < 0).double().mean().item(), 4)
                    for m in COUNTS
                ],
            }
        )
    return {name: [layer[name] for layer in layers] for name in layers[0]}


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    name = config["variant"]
    model, _ = compare.trained(VARIANTS[name], "masked_text", seed, config["steps"])
    maps = of_maps(model) if name == "full attention" else {}
    return {"score": compare.masked_score(model), **maps}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, one entry for each seed."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    full = rows["full attention"]
    return {
        "unit": TASKS["masked_text"].unit,
        "length": TRAIN_LENGTH,
        "m": M,
        "counts": list(COUNTS),
        "iterations": list(ITERATIONS),
        "score": {name: [x["score"] for x in rows[name]] for name in VARIANTS if name in rows},
        **{name: [x[name] for x in full] for name in ("missed", "steps", "negative")},
    }
