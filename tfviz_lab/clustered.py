"""Clusters of queries in a trained encoder of text: how far their rows are from the true ones.

    python -m tfviz_lab clustered    → results/clustered.json

The encoder is that of `linformer`: full attention, 64 characters, some of them hidden. After
training, its queries are put into C clusters, for each of CLUSTERS.

error     of its maps on texts that it has not read: the sum of absolute differences of a row, mean
          over rows, heads and texts, by layer. 0 is exact, 2 the most there is. Clustered
          attention (k = 0), improved with the k best keys, and clustered attention whose clusters
          are drawn at random
score     nats per hidden character when its attention is replaced, without training it again
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz.compressed.clustered_attention import Clustered, clustered_definition, clusters
from tfviz.models.blocks import MultiHeadAttention
from tfviz_lab import compare
from tfviz_lab.compare import TASKS, TRAIN_LENGTH
from tfviz_lab.linformer import VARIANTS, heads_of, held_out
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS = (0, 1, 2), TASKS["masked_text"].steps
CLUSTERS, KEYS = (1, 4, 8, 16, 32, 64), (0, 16)


def replaced(model: nn.Module, core: Any) -> nn.Module:
    """The same model with another core in each attention, in place."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.core = core()
    return model


def at_random(Q: Tensor, C: int) -> Tensor:
    """Each query in one of C clusters of equal size, whatever it is."""
    dice = Generator().manual_seed(C)
    return torch.rand(Q.shape[:3], generator=dice).argsort(-1) % C


def apart(Q: Tensor, K: Tensor, cluster: Tensor, k: int) -> float:
    A = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
    return round((clustered_definition(Q, K, K, cluster, k)[1] - A).abs().sum(-1).mean().item(), 4)


@torch.no_grad()
def errors(model: nn.Module, text: Tensor) -> list[dict[str, list[float]]]:
    """By layer and way, an error for each of CLUSTERS."""
    layers = []
    for Q, K in heads_of(model, text):
        Q, K = Q.double(), K.double()
        ways = {f"k = {k}": [apart(Q, K, clusters(Q, C), k) for C in CLUSTERS] for k in KEYS}
        ways["random clusters"] = [apart(Q, K, at_random(Q, C), 0) for C in CLUSTERS]
        layers.append(ways)
    return layers


def runs() -> list[Run]:
    return [Run("full attention", {"steps": STEPS}, seed) for seed in SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model, _ = compare.trained(VARIANTS["full attention"], "masked_text", seed, config["steps"])
    found = {"full": compare.masked_score(model), "error": errors(model, held_out())}
    found["score"] = {
        f"k = {k}": [
            compare.masked_score(replaced(model, partial(Clustered, C, k))) for C in CLUSTERS
        ]
        for k in KEYS
    }
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    seeds = [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]
    return {
        "unit": TASKS["masked_text"].unit,
        "length": TRAIN_LENGTH,
        "clusters": list(CLUSTERS),
        "keys": list(KEYS),
        **{name: [x[name] for x in seeds] for name in ("full", "error", "score")},
    }
