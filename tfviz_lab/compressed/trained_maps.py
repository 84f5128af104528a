"""Attention maps of small trained encoders of text, and how low their rank is.

    python -m tfviz_lab trained_maps    → results/trained_maps.json

The encoder is the plain one of the protocol: hidden characters of English text, 64 at a time, full
attention with rotary positions. Other experiments of this part take the same encoders apart.

reached   nats per hidden character of the whole held-out text; `trivial` has the protocol's lines
spectra   before and after training: by layer, the cumulative singular values of its maps, as shares
          of their sum, mean over heads and texts
by_head   by layer and head: the share of the weights within one token of the query, the first
          singular value's share, and what the best matrix of rank 8 misses; mean over texts
error     of its maps, in the Frobenius norm and by layer: the best matrix of rank k, and what
          Linformer applies with the same queries and keys and a mean pooling
shown     what explorers show, of seed 0: queries and keys of a head of each layer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.compressed.linformer import linformer_definition, mean_pooling
from tfviz.models.use import attention_weights
from tfviz_lab import compare, protocol
from tfviz_lab.compare import TRAIN_LENGTH
from tfviz_lab.protocol import HIDDEN, SEEDS, queries_and_keys
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
RANKS = (1, 2, 4, 8, 16, 32, 64)
STEPS, RATE = 1600, 1e-2
"""The steps of the exam, the middle one of its rates."""
TEXTS, SHOWN = 16, 32


def plain() -> dict[str, Any]:
    return {}


@cache
def encoder(seed: int, steps: int = STEPS) -> tuple[Any, float]:
    """(the encoder with full attention, trained by the protocol; its nats). Not to be changed."""
    model, scores = protocol.trained(plain, HIDDEN, seed, steps, RATE)
    return model, scores[-1]


def encoders(steps: int = STEPS) -> list[Run]:
    """A run for each seed, which measures something of the encoder."""
    return [Run("maps", {"steps": steps}, seed) for seed in SEEDS]


def in_order(done: Sequence[Done]) -> list[dict[str, Any]]:
    """What these runs found, seed by seed."""
    return [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]


def held_out() -> Tensor:
    ids = data.split(data.characters()[0])[1]
    return data.windows(ids, TEXTS, TRAIN_LENGTH, Generator().manual_seed(1))[0]


def heads_of(model: nn.Module, text: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(Q, K) of each layer, (b, h, L, d_head), as they are compared: turned by their positions."""
    return [(Q.double(), K.double()) for Q, K in queries_and_keys(model, text)]


def weights(Q: Tensor, K: Tensor) -> Tensor:
    """The map that full attention makes of them."""
    return (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)


def near(A: Tensor) -> Tensor:
    """The share of the weights within one token of the query, mean over queries."""
    i = torch.arange(A.shape[-1])
    return A.masked_fill((i[:, None] - i).abs() > 1, 0).sum((-2, -1)) / A.shape[-1]


def shares(A: Tensor) -> Tensor:
    """The sum of the first 1, 2, … singular values, as a share of all."""
    s = torch.linalg.svdvals(A.double()).cumsum(-1)
    return s / s[..., -1:]


def spectra(maps: Sequence[Tensor]) -> list[list[float]]:
    """By layer, the mean over heads and texts of `shares`."""
    return [[round(x, 4) for x in shares(A).mean((0, 1)).tolist()] for A in maps]


def best(A: Tensor, k: int) -> Tensor:
    """The matrix of rank k that differs least."""
    U, S, V = torch.linalg.svd(A)
    return (U[..., :k] * S[..., None, :k]) @ V[..., :k, :]


def missed(A: Tensor, other: Tensor) -> Tensor:
    """|A − other| / |A| of each map."""
    return torch.linalg.matrix_norm(A - other) / torch.linalg.matrix_norm(A)


def by_rank(Q: Tensor, K: Tensor) -> dict[str, list[float]]:
    """For each of RANKS: what the best matrix of rank k misses, and a mean pooling."""
    A = weights(Q, K)

    def error(other: Tensor) -> float:
        return round(missed(A, other).mean().item(), 4)

    pools = [mean_pooling(k, A.shape[-1]).double() for k in RANKS]
    return {
        "best": [error(best(A, k)) for k in RANKS],
        "mean": [error(linformer_definition(Q, K, K, E, E)[1]) for E in pools],
    }


def by_head(A: Tensor) -> list[dict[str, float]]:
    """Of each head, the mean over texts."""
    columns = {"near": near(A), "first": shares(A)[..., 0], "rank 8 misses": missed(A, best(A, 8))}
    return [
        {name: round(x[:, head].mean().item(), 4) for name, x in columns.items()}
        for head in range(A.shape[1])
    ]


def example(model: nn.Module, text: Tensor) -> dict[str, Any]:
    """The first SHOWN characters of a text; queries and keys of each layer's first head."""
    alphabet, short = data.characters()[1], text[:1, :SHOWN]
    return {
        "text": alphabet.decode(short[0]),
        "heads": [
            {
                name: [[round(x, 3) for x in row] for row in X[0, 0].tolist()]
                for name, X in zip("QK", layer, strict=True)
            }
            for layer in heads_of(model, short)
        ],
    }


@torch.no_grad()
def of_maps(seed: int, steps: int) -> dict[str, Any]:
    text, fresh = held_out(), compare.model(plain, HIDDEN.task(seed), seed)
    with torch.enable_grad():
        model, reached = encoder(seed, steps)
    heads = heads_of(model, text)
    maps = [weights(*layer) for layer in heads]
    return {
        "reached": reached,
        "untrained": spectra([*attention_weights(fresh, text).values()]),
        "trained": spectra(maps),
        "by_head": [by_head(A) for A in maps],
        "error": [by_rank(*layer) for layer in heads],
        "shown": example(model, text) if seed == 0 else None,
    }


# --- the experiment -------------------------------------------------------------------------------

runs = encoders


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return of_maps(seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    found = in_order(done)
    return {
        "length": TRAIN_LENGTH,
        "ranks": list(RANKS),
        "trivial": dict(HIDDEN.trivial(0)),
        "spectra": {name: [x[name] for x in found] for name in ("untrained", "trained")},
        **{name: [x[name] for x in found] for name in ("by_head", "error", "reached")},
        "shown": found[0]["shown"],
    }
