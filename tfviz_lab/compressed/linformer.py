"""Linformer in a small encoder of text, and how low the rank of its attention maps is.

    python -m tfviz_lab linformer    → results/linformer.json

score     nats per hidden character of English text, 64 characters at a time (`masked_text` of
          `compare`): full attention, and Linformer with k = 16
spectra   of the model with full attention, before and after training: by layer, the cumulative
          singular values of its maps, as shares of their sum, mean over heads and texts
error     of its trained maps, in the Frobenius norm and by layer: the best matrix of rank k, and
          what Linformer applies with the same queries and keys and a mean pooling
shown     what the chapter's explorer shows, of seed 0: queries and keys of a head of each layer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.compressed.linformer import Linformer, linformer_definition, mean_pooling
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import attention_weights
from tfviz_lab import compare
from tfviz_lab.compare import TASKS, TRAIN_LENGTH
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, K = (0, 1, 2), TASKS["masked_text"].steps, 16
RANKS = (1, 2, 4, 8, 16, 32, 64)
TEXTS, SHOWN = 16, 32


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "Linformer": lambda: {"core": partial(Linformer, length=TRAIN_LENGTH, k=K)},
}


def held_out() -> Tensor:
    ids = data.split(data.characters()[0])[1]
    return data.windows(ids, TEXTS, TRAIN_LENGTH, Generator().manual_seed(1))[0]


@torch.no_grad()
def heads_of(model: nn.Module, text: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(Q, K) of each layer, (b, h, L, d_head)."""
    seen: list[tuple[Tensor, Tensor]] = []

    def look(attend: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
        Q, K, _ = attend.project(inputs[0], None)
        seen.append((Q, K))

    hooks = [
        m.register_forward_pre_hook(look)
        for m in model.modules()
        if isinstance(m, MultiHeadAttention)
    ]
    model(text)
    for hook in hooks:
        hook.remove()
    return seen


def spectra(model: nn.Module, text: Tensor) -> list[list[float]]:
    """By layer: the sum of the first 1, 2, … singular values, as a share of all."""
    found = []
    for A in attention_weights(model, text).values():
        s = torch.linalg.svdvals(A.double()).cumsum(-1)
        found.append([round(x, 4) for x in (s / s[..., -1:]).mean((0, 1)).tolist()])
    return found


def missed(A: Tensor, other: Tensor) -> float:
    """|A − other| / |A|, the mean over heads and texts."""
    error = torch.linalg.matrix_norm(A - other) / torch.linalg.matrix_norm(A)
    return round(error.mean().item(), 4)


def by_rank(model: nn.Module, text: Tensor) -> list[dict[str, list[float]]]:
    """By layer, for each of RANKS: what the best matrix of rank k misses, and a mean pooling."""
    found = []
    for Q, K in heads_of(model, text):
        Q, K = Q.double(), K.double()
        A = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
        U, S, V = torch.linalg.svd(A)
        best = [missed(A, (U[..., :k] * S[..., None, :k]) @ V[..., :k, :]) for k in RANKS]
        pools = [mean_pooling(k, A.shape[-1]).double() for k in RANKS]
        mean = [missed(A, linformer_definition(Q, K, K, E, E)[1]) for E in pools]
        found.append({"best": best, "mean": mean})
    return found


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


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    name, text = config["variant"], held_out()
    model, _ = compare.trained(VARIANTS[name], "masked_text", seed, config["steps"])
    found: dict[str, Any] = {
        "score": compare.masked_score(model),
        "parameters": sum(x.numel() for x in model.parameters()),
    }
    if name == "full attention":
        fresh = compare.model(VARIANTS[name], "masked_text", seed)
        found |= {
            "untrained": spectra(fresh, text),
            "trained": spectra(model, text),
            "error": by_rank(model, text),
            "shown": example(model, text) if seed == 0 else None,
        }
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, one entry for each seed."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    full = rows["full attention"]
    return {
        "unit": TASKS["masked_text"].unit,
        "length": TRAIN_LENGTH,
        "k": K,
        "ranks": list(RANKS),
        "score": {name: [x["score"] for x in rows[name]] for name in VARIANTS if name in rows},
        "parameters": {name: rows[name][0]["parameters"] for name in VARIANTS if name in rows},
        "spectra": {name: [x[name] for x in full] for name in ("untrained", "trained")},
        "error": [x["error"] for x in full],
        "shown": full[0]["shown"],
    }
