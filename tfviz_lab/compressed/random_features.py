"""How many random features does a trained attention need?

    python -m tfviz_lab random_features    → results/random_features.json

A small GPT with full attention is trained on English text. Its queries, keys and values on held-out
texts are answered again with random features of each kind, in place of the exponential:

    sines             sines and cosines, directions drawn one by one
    sines, orth.      the same with directions in orthogonal blocks
    positive          exponentials, directions drawn one by one
    positive, orth.   the same with directions in orthogonal blocks, which is the Performer's

error      |answer − true answer| / |true answer|, the median over the tokens of all texts and heads
           and over DRAWS drawings: by kind, for each of FEATURES, by layer
negative   the share of weights below 0, with sines
squares    the mean of |q|² and |k|² by layer, both divided by √d_head as the softmax does

Queries and keys are not brought to length 1: a kernel of sines is multiplied by e^(|q|²/2 + |k|²/2)
to estimate the same softmax. Sums of its weights are taken as they come, unless they are
not positive: that answer is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.compressed.performer import softmax_features
from tfviz.compressed.rfa import directions, fourier_features
from tfviz.models.blocks import MultiHeadAttention
from tfviz_lab import compare
from tfviz_lab.compare import TASKS, TRAIN_LENGTH
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS = (0, 1, 2), TASKS["text"].steps
FEATURES, DRAWS, TEXTS = (16, 32, 64, 128, 256, 512, 1024), 8, 4
KINDS = {
    "sines": (True, False),
    "sines, orth.": (True, True),
    "positive": (False, False),
    "positive, orth.": (False, True),
}


@torch.no_grad()
def heads_of(model: nn.Module, text: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """(Q, K, V) of each layer, (b, h, L, d_head)."""
    seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def look(attend: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
        seen.append(attend.project(inputs[0], None))

    attends = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    hooks = [m.register_forward_pre_hook(look) for m in attends]
    model(text)
    for hook in hooks:
        hook.remove()
    return seen


def kernel(Q: Tensor, K: Tensor, W: Tensor, sines: bool) -> Tensor:
    """Estimates of e^(q kᵀ), (…, L, L)."""
    if not sines:
        return softmax_features(Q, W) @ softmax_features(K, W).mT
    lengths = [(X.pow(2).sum(-1) / 2).exp() for X in (Q, K)]
    products = fourier_features(Q, W) @ fourier_features(K, W).mT
    return lengths[0][..., :, None] * products * lengths[1][..., None, :]


def estimated(
    Q: Tensor, K: Tensor, V: Tensor, kind: str, f: int, rng: Generator
) -> tuple[Tensor, float]:
    """The answers with f features, causally, and the share of weights below 0."""
    sines, orthogonal = KINDS[kind]
    W = directions(f // 2 if sines else f, Q.shape[-1], orthogonal, rng).double()
    products = kernel(Q, K, W, sines).tril()
    total = products.sum(-1, keepdim=True)
    answers = (products @ V / total.clamp(min=1e-12)).masked_fill(total <= 0, 0.0)
    L = Q.shape[2]
    return answers, (products < 0).double().mean().item() * L / (L + 1) * 2


def runs() -> list[Run]:
    return [Run("text", {"steps": STEPS}, seed) for seed in SEEDS]


@torch.no_grad()
def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    with torch.enable_grad():
        model, _ = compare.trained(lambda: {}, "text", seed, config["steps"])
    ids = data.split(data.characters()[0])[1]
    text = data.windows(ids, TEXTS, TRAIN_LENGTH, Generator().manual_seed(1))[0]
    error: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    negative, squares = [], []
    for layer in heads_of(model, text):
        Q, K, V = (X.double() for X in layer)
        Q, K = (X * Q.shape[-1] ** -0.25 for X in (Q, K))
        squares.append([round(X.pow(2).sum(-1).mean().item(), 3) for X in (Q, K)])
        true = (Q @ K.mT).exp().tril()
        true = true / true.sum(-1, keepdim=True) @ V
        below = []
        for kind in KINDS:
            found = []
            for f in FEATURES:
                rng = Generator().manual_seed(1000 * seed + f)
                drawn = [estimated(Q, K, V, kind, f, rng) for _ in range(DRAWS)]
                misses = [(x - true).norm(dim=-1) / true.norm(dim=-1) for x, _ in drawn]
                found.append(round(torch.stack(misses).median().item(), 4))
                if kind == "sines":
                    below.append(round(sum(share for _, share in drawn) / DRAWS, 4))
            error[kind].append(found)
        negative.append(below)
    return {"error": error, "negative": negative, "squares": squares}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed, and in it one for each layer."""
    results = [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]
    return {
        "features": list(FEATURES),
        "error": {kind: [x["error"][kind] for x in results] for kind in KINDS},
        "negative": [x["negative"] for x in results],
        "squares": [x["squares"] for x in results],
    }
