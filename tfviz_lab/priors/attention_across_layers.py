"""Maps of neighbouring layers, with and without the scores of the layer below.

    python -m tfviz_lab attention_across_layers    → results/attention_across_layers.json

A GPT of LAYERS layers with rotary positions reads 64 characters of English text at a time. Each
layer computes its scores alone, or adds those of the layer below (RealFormer). What is measured are
the maps; the loss only says whether they are those of a model that has learned to read.

nats      per character, on the whole held-out text
alike     how far the maps of two layers agree, (layers, layers): for each query from FIRST on, the
          correlation of its weights in the two over the keys so far; the mean of all queries and
          heads, "same" with the head of the same number, "best" with the most similar one
untrained the same of the model before it has learned anything, which is what is built in
entropy   of the rows of each layer's maps, in nats, the mean of the same queries and all heads
even      the entropy of the same rows if each key had the same weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.cores import Dense
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.priors.realformer import RealFormer
from tfviz.training import next_token, seeded, train
from tfviz_lab import trivial
from tfviz_lab.compare import BATCH, HEADS, TRAIN_LENGTH, WIDTH
from tfviz_lab.protocol import SEEDS, Turned, training_text, whole_text
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
LAYERS, STEPS, RATE, LOOKED_AT, FIRST = 4, 500, 1e-2, 16, 16
VARIANTS: dict[str, Callable[..., nn.Module]] = {
    "plain": lambda: Dense(),
    "residual": lambda: RealFormer(),
}


def untrained(name: str, seed: int) -> GPT:
    vocab, core = len(data.characters()[1]), partial(Turned, core=VARIANTS[name])
    return seeded(seed, lambda: GPT(vocab, WIDTH, HEADS, LAYERS, core=core)).eval()


def trained(name: str, seed: int, steps: int) -> GPT:
    model = untrained(name, seed)
    loss = next_token(training_text(), BATCH, TRAIN_LENGTH)
    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    return model.eval()


def alike(maps: Float[Tensor, "layers b h L L"]) -> dict[str, list[list[float]]]:
    """The mean correlation of rows, for each two layers."""
    centred = torch.zeros_like(maps)
    for i in range(FIRST, maps.shape[-1]):
        row = maps[..., i, : i + 1]
        row = row - row.mean(-1, keepdim=True)
        centred[..., i, : i + 1] = F.normalize(row, dim=-1)
    some = centred[..., FIRST:, :]
    found = torch.einsum("nbhij,mbkij->nmhkbi", some, some).mean((-1, -2))  # (n, m, h, k)
    tables = {"same": found.diagonal(0, 2, 3).mean(-1), "best": found.amax(-1).mean(-1)}
    return {name: [[round(x, 4) for x in row] for row in X.tolist()] for name, X in tables.items()}


@torch.no_grad()
def maps_of(model: nn.Module) -> Float[Tensor, "layers b h L L"]:
    """What the heads do on a few windows of the held-out text."""
    ids = data.split(data.characters()[0])[1]
    x, _ = data.windows(ids, LOOKED_AT, TRAIN_LENGTH, Generator().manual_seed(1))
    return torch.stack(list(attention_weights(model, x).values()))


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    name = config["variant"]
    model = trained(name, seed, config["steps"])
    maps = maps_of(model)
    entropy = -torch.xlogy(maps, maps).sum(-1)[..., FIRST:].flatten(1).mean(1)
    return {
        "nats": whole_text(model),
        "alike": alike(maps),
        "untrained": alike(maps_of(untrained(name, seed))),
        "entropy": [round(h, 4) for h in entropy.tolist()],
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """What was measured by variant, one entry for each seed; nats that counting reaches."""
    of = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    keys = torch.arange(FIRST + 1, TRAIN_LENGTH + 1)
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "seeds": list(SEEDS),
        **{
            what: {name: [of[name, seed][what] for seed in SEEDS] for name in VARIANTS}
            for what in ("nats", "alike", "untrained", "entropy")
        },
        "even": round(keys.double().log().mean().item(), 4),
        "trivial": trivial.ngrams(),
    }
