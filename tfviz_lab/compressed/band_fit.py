"""What a matrix of rank r and a band of width w miss of trained maps, head by head.

    python -m tfviz_lab band_fit    → results/band_fit.json

The encoder is that of `trained_maps`: full attention, rotary positions, trained by the protocol.
Its maps are of the first LENGTH characters of held-out texts.

near     by seed, layer and head: the share of the weights within one token of the query
missed   by seed, layer and head, for each r of RANKS a list over WIDTHS: |A − R − B| / |A|, the
         median over texts; -1 is no band, r = 0 no matrix of low rank
shown    what the explorer shows, of seed 0 and its first text: the head that looks nearest and the
         one of which rank 4 alone misses least, its map A and, for each r and w, R as two factors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz import data
from tfviz.compressed.lowrank_plus_band import low_rank_and_band
from tfviz_lab.compressed.trained_maps import (
    encoder,
    encoders,
    heads_of,
    held_out,
    in_order,
    near,
    weights,
)
from tfviz_lab.runner import Done

PACKAGES = ["torch", "numpy"]
TEXTS, LENGTH, ROUNDS = 4, 24, 50
RANKS, WIDTHS, SHOWN = (0, 1, 2, 4, 8), (-1, 0, 1, 2, 4), (1, 2, 4)


def missed(A: Tensor, r: int, w: int) -> Tensor:
    R, B = low_rank_and_band(A, r, w, ROUNDS)
    return torch.linalg.matrix_norm(A - R - B) / torch.linalg.matrix_norm(A)


def rounded(X: Tensor) -> list[list[float]]:
    return [[round(x, 3) for x in row] for row in X.tolist()]


def factors(A: Tensor, r: int, w: int) -> dict[str, list[list[float]]]:
    """R as left (L, r) times right (r, L)."""
    U, S, V = torch.linalg.svd(low_rank_and_band(A, r, w, ROUNDS)[0])
    root = S[:r].sqrt()
    return {"left": rounded(U[:, :r] * root), "right": rounded(root[:, None] * V[:r])}


def example(A: Tensor) -> dict[str, Any]:
    fits = {str(r): [factors(A, r, w) for w in WIDTHS] for r in SHOWN}
    return {"near": round(near(A).item(), 3), "A": rounded(A), "fits": fits}


runs = encoders


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    model, _ = encoder(seed, config["steps"])
    text = held_out()[:TEXTS, :LENGTH]
    with torch.no_grad():
        maps = [weights(Q, K) for Q, K in heads_of(model, text)]
    result: dict[str, Any] = {
        "near": [[round(x, 4) for x in near(A).mean(0).tolist()] for A in maps],
        "missed": [
            [
                [
                    [round(missed(A[:, head], r, w).median().item(), 4) for w in WIDTHS]
                    for r in RANKS
                ]
                for head in range(A.shape[1])
            ]
            for A in maps
        ],
        "shown": None,
    }
    if seed == 0:
        heads = [A for layer in maps for A in layer[0]]
        nearest = max(heads, key=lambda A: near(A).item())
        smoothest = min(heads, key=lambda A: missed(A, 4, -1).item())
        characters = data.characters()[1].decode(text[0])
        result["shown"] = {"text": characters, "heads": [example(A) for A in (nearest, smoothest)]}
    return result


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    found = in_order(done)
    return {
        "length": LENGTH,
        "ranks": list(RANKS),
        "widths": list(WIDTHS),
        "near": [x["near"] for x in found],
        "missed": [x["missed"] for x in found],
        "shown": found[0]["shown"],
    }
