"""Maps of neighbouring layers, and models that use what a lower layer found.

    python -m tfviz_lab attention_across_layers    → results/attention_across_layers.json

A GPT of LAYERS layers reads 64 characters of English text at a time. A variant says what becomes
of the scores of the layer below: nothing, they are added (RealFormer), or the map is used again in
the next m − 1 layers (LazyFormer).

nats      per character, on held-out text
alike     how far the maps of two layers agree, (layers, layers): for each query from FIRST on, the
          correlation of its weights in the two over the keys so far; the mean of all queries and
          heads, "same" with the head of the same number, "best" with the most similar one
entropy   of the rows of each layer's maps, in nats, the mean of the same queries and all heads
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.position.learned_pe import Learned
from tfviz.priors.lazyformer import lazy_blocks
from tfviz.priors.realformer import RealFormer
from tfviz.training import next_token
from tfviz_lab.compare import BATCH, HEADS, TRAIN_LENGTH, WIDTH, Task, experiment

PACKAGES = ["torch", "numpy"]
LAYERS, STEPS, ROWS, LOOKED_AT, FIRST = 4, 200, 128, 16, 16


def deep(pattern: Any = None, **told: Any) -> GPT:
    """`pattern` is compare's, for another number of layers: this model is causal."""
    vocab = len(data.characters()[1])
    return GPT(vocab, WIDTH, HEADS, LAYERS, positions=Learned(TRAIN_LENGTH, WIDTH), **told)


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
def looked_at(model: nn.Module) -> dict[str, Any]:
    ids = data.split(data.characters()[0])[1]
    x, y = data.windows(ids, ROWS, TRAIN_LENGTH, Generator().manual_seed(1))
    nats = F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    maps = torch.stack(list(attention_weights(model, x[:LOOKED_AT]).values()))
    entropy = -torch.xlogy(maps, maps).sum(-1)[..., FIRST:].flatten(1).mean(1)
    return {
        "nats": round(nats, 4),
        "alike": alike(maps),
        "entropy": [round(h, 4) for h in entropy.tolist()],
    }


TEXT = Task(
    name="text",
    unit="nats per character",
    steps=STEPS,
    model=deep,
    loss=lambda seed, steps: next_token(data.split(data.characters()[0])[0], BATCH, TRAIN_LENGTH),
    score=looked_at,
    inputs=lambda rng: data.windows(data.characters()[0], 2, TRAIN_LENGTH, rng)[0],
)
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": lambda: {},
    "residual": lambda: {"core": RealFormer},
    "lazy 2": lambda: {"layer": lazy_blocks(2)},
    "lazy 4": lambda: {"layer": lazy_blocks(4)},
}
runs, measure, collect = experiment(VARIANTS, tasks=(TEXT,))
