"""How few query and key features can heads share? Handwritten digits, read as 16 patches.

    python -m tfviz_lab shared_features    → results/shared_features.json

An encoder of two layers with 4 heads of 12 numbers, by the protocol of all comparisons: the score
is the share of test images that are taken for another digit.

exams       trained from the start with all features, or with d_k of them: shared by all heads, or
            in heads of d_k/4 numbers that share nothing
whole       errors of the trained model; "later" after MORE steps
converted   the same model with d_k shared features instead of 48, by PARAFAC and by the plain SVD:
            [relative error of W_q W_kᵀ, errors at once, errors after MORE steps]; for PARAFAC also
            the errors at once if scores are divided as in the authors' code
blind       errors of the trained model if every score is 0
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
from tfviz_lab.compare import HEADS, LAYERS, PIXEL_WIDTH
from tfviz_lab.protocol import WHICH_DIGIT, digit_errors, digit_loss, experiment, one_run, trained
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
MORE, LATER_RATE = 50, 1e-3
WHOLE = PIXEL_WIDTH
FEWER = (36, 24, 16, 12, 8, 4)
FROM_SCRATCH = (8,)
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


FULL = "full attention"
EXAMS = (WHICH_DIGIT,)
VARIANTS = {
    FULL: lambda: {},
    "narrow heads, 8": lambda: narrow(8),
    "shared, 8": lambda: shared(8),
}
"""A variant's number is that of its features."""

_runs, _follow, _collect = experiment(
    VARIANTS,
    *EXAMS,
    reference=FULL,
    beside={f"shared, {d_k}": f"narrow heads, {d_k}" for d_k in FROM_SCRATCH},
)
runs = _runs


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
def blind(model: Any) -> Any:
    """The model whose scores are all 0, so that all patches count alike."""
    model = convert(model, WHOLE)
    for attend in attentions(model):
        attend.project.m.zero_()
        attend.project.content.weight.zero_()
    return model


def converted(seed: int, steps: int, rate: float) -> dict[str, Any]:
    model = trained(VARIANTS[FULL], WHICH_DIGIT, seed, steps, rate)[0]
    errors = partial(digit_errors, seed)

    def later(model: Any) -> float:
        train(model, partial(digit_loss, seed), MORE, lr=LATER_RATE, seed=seed + 10, progress=False)
        return errors(model)

    result: dict[str, Any] = {"whole": errors(model), "blind": errors(blind(model)), "shown": {}}
    T = [products(attend).detach() for attend in attentions(model)]
    for name, decompose in WAYS.items():
        for d_k in FEWER:
            small = convert(model, d_k, decompose, seed)
            lost = sum(missed(decompose(x, d_k, seed), x) for x in T) / LAYERS
            row = [round(lost, 4), errors(small)]
            if name == "parafac":
                row.append(errors(divided_as_theirs(small)))
                result["shown"][str(d_k)] = mixing(parafac(T[0], d_k, seed))
            result[f"{name} {d_k}"] = [*row[:2], later(small), *row[2:]]
    attend = attentions(model)[0]
    W_q, W_k, _ = attend.W_qkv.weight.detach().T.split(attend.widths, -1)
    result["shown"][str(WHOLE)] = mixing(Factors(W_q, blocks(HEADS, WHOLE), W_k))
    return result | {"later": later(model)}


def follow(done: Sequence[Done]) -> list[Run]:
    """The trained model is converted that has the rate of full attention."""
    found = _follow(done)
    return found + [
        Run("converted", {**run.config, "part": "converted"}, run.seed)
        for run in found
        if (run.config["part"], run.config["variant"]) == ("score", FULL)
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["part"] == "converted":
        return converted(seed, config["steps"], config["rate"])
    return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Errors by way and number of features, one for each seed."""
    ordered = sorted(done, key=lambda x: x["run"]["seed"])
    made = [x["result"] for x in ordered if x["run"]["config"]["part"] == "converted"]
    return _collect(done) | {
        "more": MORE,
        "features": WHOLE,
        "heads": HEADS,
        "whole": [x["whole"] for x in made],
        "blind": [x["blind"] for x in made],
        "whole, later": [x["later"] for x in made],
        "converted": {
            name: {str(d_k): [x[f"{name} {d_k}"] for x in made] for d_k in FEWER} for name in WAYS
        },
        "shown": made[0]["shown"],
    }
