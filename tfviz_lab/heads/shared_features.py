"""How few query and key features can heads share? Handwritten digits, read as 16 patches.

    python -m tfviz_lab shared_features    → results/shared_features.json

An encoder of two layers with 4 heads of 12 numbers. The score is the share of 397 test images that
are read correctly.

converted   the trained model with d_k shared features instead of 48, by PARAFAC and by the plain
            SVD: [relative error of W_q W_kᵀ, accuracy at once, accuracy after MORE steps]; for
            PARAFAC also the accuracy at once if scores are divided as in the authors' code
blind       accuracy of the trained model if every score is 0
scratch     trained from the start with d_k features: shared by all heads, or in heads of d_k/4
shown       mixing vectors of the first layer, of seed 0: as trained, and after PARAFAC
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.heads.collaborative_heads import (
    Decompose,
    Factors,
    Shared,
    SharedKeys,
    blocks,
    convert,
    parafac,
    products,
    svd,
)
from tfviz.models.blocks import MultiHeadAttention
from tfviz.training import train
from tfviz_lab.compare import HEADS, LAYERS, PIXEL_WIDTH, errors, patch_loss, trained
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
SEEDS, STEPS, MORE, LATER_RATE = (0, 1, 2), 400, 50, 1e-3
WHOLE = PIXEL_WIDTH
FEWER = (36, 24, 16, 12, 8, 4)
FROM_SCRATCH = (24, 12, 8, 4)
WAYS: dict[str, Decompose] = {"parafac": parafac, "svd": svd}


class Narrow(Shared):
    """Heads of d_k/h numbers that share nothing: mixing vectors that are blocks and stay so."""

    def __init__(self, d: int, h: int, d_k: int) -> None:
        super().__init__(d, h, d_k, content=False, mixing=blocks(h, d_k))
        self.m.requires_grad_(False)


def shared(d_k: int) -> dict[str, Any]:
    project = partial(Shared, PIXEL_WIDTH, HEADS, d_k, content=False)
    return {"project": project, "core": SharedKeys}


def narrow(d_k: int) -> dict[str, Any]:
    return {"project": partial(Narrow, PIXEL_WIDTH, HEADS, d_k), "core": SharedKeys}


def whole() -> dict[str, Any]:
    """Multi-head attention: nothing that a model is told."""
    return {}


VARIANTS = {"shared": shared, "narrow": narrow}


def accuracy(model: nn.Module) -> float:
    return round(1 - errors(model), 4)


def attentions(model: nn.Module) -> list[Any]:
    return [x for x in model.modules() if isinstance(x, MultiHeadAttention)]


def missed(factors: Factors, T: Tensor) -> float:
    return float((factors.product() - T).norm() / T.norm())


def mixing(factors: Factors) -> list[list[float]]:
    return [[round(x, 3) for x in row] for row in factors.balanced().m.tolist()]


def divided_as_theirs(model: Any) -> Any:
    """The same with scores divided by √(d_k/h) instead of √d_h."""
    model = copy.deepcopy(model)
    for attend in attentions(model):
        attend.project.scale = math.sqrt(attend.project.m.shape[1] / HEADS)
    return model


@torch.no_grad()
def blind(model: Any) -> float:
    """Accuracy if every score is 0, so that all patches count alike."""
    model = convert(model, WHOLE)
    for attend in attentions(model):
        attend.project.m.zero_()
        attend.project.content.weight.zero_()
    return accuracy(model)


def converted(seed: int, steps: int) -> dict[str, Any]:
    model = trained(whole, "patches", seed, steps)[0]
    result: dict[str, Any] = {"score": accuracy(model), "blind": blind(model), "shown": {}}
    T = [products(attend).detach() for attend in attentions(model)]
    for name, decompose in WAYS.items():
        for d_k in FEWER:
            small = convert(model, d_k, decompose, seed)
            lost = sum(missed(decompose(x, d_k, seed), x) for x in T) / LAYERS
            row = [round(lost, 4), accuracy(small)]
            if name == "parafac":
                row.append(accuracy(divided_as_theirs(small)))
                if seed == 0:
                    result["shown"][str(d_k)] = mixing(parafac(T[0], d_k, seed))
            train(small, patch_loss, MORE, lr=LATER_RATE, seed=seed + 10, progress=False)
            result[f"{name} {d_k}"] = [*row[:2], accuracy(small), *row[2:]]
    if seed == 0:
        attend = attentions(model)[0]
        W_q, W_k, _ = attend.W_qkv.weight.detach().T.split(attend.widths, -1)
        result["shown"][str(WHOLE)] = mixing(Factors(W_q, blocks(HEADS, WHOLE), W_k))
    train(model, patch_loss, MORE, lr=LATER_RATE, seed=seed + 10, progress=False)
    return result | {"later": accuracy(model)}


def runs() -> list[Run]:
    made_of = [Run("converted", {"task": "converted", "steps": STEPS}, seed) for seed in SEEDS]
    return made_of + [
        Run(
            f"{name}, {d_k}", {"task": "scratch", "variant": name, "d_k": d_k, "steps": STEPS}, seed
        )
        for name in VARIANTS
        for d_k in FROM_SCRATCH
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "converted":
        return converted(seed, config["steps"])
    variant = partial(VARIANTS[config["variant"]], config["d_k"])
    return {"score": accuracy(trained(variant, "patches", seed, config["steps"])[0])}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Accuracies by way and number of features, one for each seed."""
    ordered = sorted(done, key=lambda x: x["run"]["seed"])
    trained_whole = [x["result"] for x in ordered if x["run"]["config"]["task"] == "converted"]
    scratch: dict[str, dict[str, list[float]]] = {name: {} for name in VARIANTS}
    for x in ordered:
        config = x["run"]["config"]
        if config["task"] == "scratch":
            of_size = scratch[config["variant"]].setdefault(str(config["d_k"]), [])
            of_size.append(x["result"]["score"])
    return {
        "unit": "share of test images",
        "steps": STEPS,
        "more": MORE,
        "features": WHOLE,
        "heads": HEADS,
        "whole": [x["score"] for x in trained_whole],
        "blind": [x["blind"] for x in trained_whole],
        "whole, later": [x["later"] for x in trained_whole],
        "converted": {
            name: {str(d_k): [x[f"{name} {d_k}"] for x in trained_whole] for d_k in FEWER}
            for name in WAYS
        },
        "scratch": scratch,
        "shown": trained_whole[0]["shown"],
    }
