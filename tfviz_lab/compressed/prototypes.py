"""Fewer rows of weights in a trained encoder of text: clusters of queries, and the few that attend.

    python -m tfviz_lab prototypes    → results/prototypes.json

The encoder is that of `trained_maps`: full attention, rotary positions, 64 characters of which some
are hidden, trained by the protocol. What follows is measured on texts that it has not read, and a
row's error is the sum of absolute differences from the true row, mean over rows, heads and texts: 0
is exact, 2 the most there is.

full        nats per hidden character of the whole held-out text
even        by layer, the error of the even row in place of every row

clustered   its queries are put into C clusters, for each of CLUSTERS
  error     by layer: clustered attention (k = 0), improved on the k best keys, and clustered
            attention whose clusters are drawn at random
  score     nats per hidden character when its attention is replaced, without training it again
informer    most of its queries get the mean of the values
  kept      of the KEPT queries with the largest exact M, the share that the estimate finds too, by
            layer, for each of SAMPLED keys, drawn with replacement for each query: divided by the
            number of samples, and by the length as in the authors' code; and M̄ over all keys
  error     by layer, for each of FACTORS, where c ⌈ln L⌉ queries are kept: by the sampled estimate,
            by the exact M, and at random
  score     as above, with the sampled estimate
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Generator, Tensor, nn

from tfviz.compressed import informer
from tfviz.compressed.clustered_attention import Clustered, clustered_definition, clusters
from tfviz.compressed.informer import Informer, informer_definition, many, max_mean, samples
from tfviz.models.blocks import MultiHeadAttention
from tfviz_lab.compare import TRAIN_LENGTH
from tfviz_lab.compressed.trained_maps import (
    STEPS,
    encoder,
    encoders,
    heads_of,
    held_out,
    in_order,
    weights,
)
from tfviz_lab.protocol import HIDDEN, Turned, hidden_text
from tfviz_lab.runner import Done

PACKAGES = ["torch", "numpy"]
CLUSTERS, KEYS = (1, 4, 8, 16, 32), (0, 16)
KEPT, SAMPLED, FACTORS = 10, (5, 10, 25, 64), (1, 2, 5, 8)


def replaced(model: nn.Module, core: Any) -> nn.Module:
    """A copy of a model with another core in each attention, turned as the old one was."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            cast(Turned, module.core).inner = core()
    return model


def apart(Q: Tensor, K: Tensor, other: Tensor) -> float:
    """How far these weights are from those of full attention."""
    return round((other - weights(Q, K)).abs().sum(-1).mean().item(), 4)


# --- clusters of queries --------------------------------------------------------------------------


def at_random(Q: Tensor, C: int) -> Tensor:
    """Each query in one of C clusters of equal size, whatever it is."""
    dice = Generator().manual_seed(C)
    return torch.rand(Q.shape[:3], generator=dice).argsort(-1) % C


def cluster_errors(Q: Tensor, K: Tensor) -> dict[str, list[float]]:
    """By way, an error for each of CLUSTERS."""

    def error(cluster: Tensor, k: int) -> float:
        return apart(Q, K, clustered_definition(Q, K, K, cluster, k)[1])

    ways = {f"k = {k}": [error(clusters(Q, C), k) for C in CLUSTERS] for k in KEYS}
    return ways | {"random clusters": [error(at_random(Q, C), 0) for C in CLUSTERS]}


# --- queries that are kept ------------------------------------------------------------------------


def share(found: Tensor, wanted: Tensor) -> float:
    """Of the numbers in each row of `wanted`, how many are in that of `found`."""
    hits = (wanted.unsqueeze(-1) == found.unsqueeze(-2)).any(-1)
    return round(hits.double().mean().item(), 4)


def drawn(L: int, U: int) -> Tensor:
    return torch.randint(L, (L, U), generator=Generator().manual_seed(U))


def kept(Q: Tensor, K: Tensor) -> dict[str, list[float]]:
    best = informer.measure(Q, K).topk(KEPT, -1).indices
    ways = {
        name: [
            share(max_mean(Q, K, drawn(Q.shape[2], U), by_length).topk(KEPT, -1).indices, best)
            for U in SAMPLED
        ]
        for name, by_length in (("by samples", False), ("by length", True))
    }
    every = share(max_mean(Q, K).topk(KEPT, -1).indices, best)
    return ways | {"all keys": [every] * len(SAMPLED)}


def lazy_errors(Q: Tensor, K: Tensor) -> dict[str, list[float]]:
    L = Q.shape[2]
    ways: dict[str, list[float]] = {"sampled": [], "exact": [], "at random": []}
    for c in FACTORS:
        rated = {
            "sampled": max_mean(Q, K, samples(L, L, c)),
            "exact": informer.measure(Q, K),
            "at random": torch.rand(Q.shape[:3], generator=Generator().manual_seed(c)),
        }
        for name, ratings in rated.items():
            chosen = ratings.topk(many(c, L), -1).indices
            ways[name].append(apart(Q, K, informer_definition(Q, K, K, chosen)[1]))
    return ways


# --- the runs -------------------------------------------------------------------------------------


runs = encoders


def replaced_scores(model: nn.Module, cores: Sequence[Any]) -> list[float]:
    return [hidden_text(replaced(model, core)) for core in cores]


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    model, full = encoder(seed, config["steps"])
    with torch.no_grad():
        return {"full": full, **of_encoder(model, seed)}


def of_encoder(model: nn.Module, seed: int) -> dict[str, Any]:
    heads = heads_of(model, held_out())
    return {
        "even": [apart(Q, K, torch.full_like(weights(Q, K), 1 / Q.shape[2])) for Q, K in heads],
        "clustered": {
            "error": [cluster_errors(*x) for x in heads],
            "score": {
                f"k = {k}": replaced_scores(model, [partial(Clustered, C, k) for C in CLUSTERS])
                for k in KEYS
            },
        },
        "informer": {
            "kept": [kept(*x) for x in heads],
            "error": [lazy_errors(*x) for x in heads],
            "score": replaced_scores(model, [partial(Informer, c, seed) for c in FACTORS]),
        },
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    seeds = in_order(done)
    return {
        "unit": HIDDEN.task(0).unit,
        "length": TRAIN_LENGTH,
        "steps": STEPS,
        "clusters": list(CLUSTERS),
        "keys": list(KEYS),
        "u": KEPT,
        "sampled": list(SAMPLED),
        "factors": list(FACTORS),
        "queries": [many(c, TRAIN_LENGTH) for c in FACTORS],
        **{name: [x[name] for x in seeds] for name in ("full", "even", "clustered", "informer")},
    }
