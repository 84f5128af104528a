"""Landmarks for trained maps: what Nyström attention and CSALR miss of them.

    python -m tfviz_lab nystrom_landmarks    → results/nystrom_landmarks.json

The maps are those of `trained_maps`: full attention, rotary positions, 64 characters, trained by
the protocol. Queries and keys are turned before landmarks are made of them.

missed    of the maps, in the Frobenius norm, by layer: for each m the median over heads and texts,
          and the largest; for Nyström with the exact pseudo-inverse and with six steps, and for
          CSALR with and without E, all with the scale 1/√d that the model was trained with
steps     the same for Nyström with m = 16, by steps of the iteration
negative  the share of negative entries in what Nyström with six steps applies, by layer and m
by_head   by layer and head, the median over texts of what Nyström with m = 16 and six steps misses
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.compressed.csalr import csalr_definition
from tfviz.compressed.nystromformer import nystrom_definition
from tfviz_lab.compare import TRAIN_LENGTH
from tfviz_lab.compressed import trained_maps
from tfviz_lab.compressed.trained_maps import (
    encoder,
    encoders,
    heads_of,
    held_out,
    in_order,
    weights,
)
from tfviz_lab.runner import Done

PACKAGES = ["torch", "numpy"]
COUNTS, M = (1, 2, 4, 8, 16, 32, 64), 16
ITERATIONS = tuple(range(0, 21))

WAYS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "exact": lambda Q, K, m: nystrom_definition(Q, K, K, m, None)[1],
    "six steps": lambda Q, K, m: nystrom_definition(Q, K, K, m)[1],
    "CSALR": lambda Q, K, m: csalr_definition(Q, K, K, m, scale=Q.shape[-1] ** -0.5)[1],
    "without E": lambda Q, K, m: csalr_definition(Q, K, K, m, False, Q.shape[-1] ** -0.5)[1],
}


def missed(A: Tensor, other: Tensor) -> dict[str, float]:
    """|A − other| / |A| over heads and texts."""
    error = trained_maps.missed(A, other)
    return {"median": round(error.median().item(), 4), "largest": round(error.max().item(), 4)}


def of_layer(Q: Tensor, K: Tensor) -> dict[str, Any]:
    A = weights(Q, K)
    six = {m: WAYS["six steps"](Q, K, m) for m in COUNTS}
    return {
        "missed": {name: [missed(A, way(Q, K, m)) for m in COUNTS] for name, way in WAYS.items()},
        "steps": [missed(A, nystrom_definition(Q, K, K, M, n)[1]) for n in ITERATIONS],
        "negative": [round((applied < 0).double().mean().item(), 4) for applied in six.values()],
        "by_head": [round(x, 4) for x in trained_maps.missed(A, six[M]).median(0).values.tolist()],
    }


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    model, _ = encoder(seed, config["steps"])
    with torch.no_grad():
        layers = [of_layer(*heads) for heads in heads_of(model, held_out())]
    return {name: [layer[name] for layer in layers] for name in layers[0]}


runs = encoders


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    found = in_order(done)
    return {
        "length": TRAIN_LENGTH,
        "m": M,
        "counts": list(COUNTS),
        "iterations": list(ITERATIONS),
        **{name: [x[name] for x in found] for name in found[0]},
    }
