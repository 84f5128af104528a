"""How many pairs fit into the state? Linear attention and softmax attention recall what they read.

    python -m tfviz_lab linear_recall    → results/linear_recall.json

A text is n pairs of a key symbol and a value symbol, with keys that all differ; then each key is
asked for its value. Queries, keys and values are learned vectors, of d numbers the first two; one
attention reads the pairs, a linear layer names the value. Each model is trained on texts of 1 to 64
pairs and scored on texts of each of PAIRS: the share of right answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.compressed.linear_transformer import LinearAttention
from tfviz.cores import Dense, Where
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, BATCH = (0, 1, 2), 1000, 64
KEYS, VALUES, WIDTH = 256, 16, 32  # symbols, and numbers of a value's vector
PAIRS, WIDTHS = (1, 2, 4, 8, 16, 32, 64), (4, 8, 16)
TEXTS = 200  # of each number of pairs

VARIANTS: dict[str, Callable[[], nn.Module]] = {"softmax": Dense, "linear": LinearAttention}


class Memory(nn.Module):
    """Logits of the value of each key that is asked for."""

    def __init__(self, core: nn.Module, d: int) -> None:
        super().__init__()
        self.query, self.key = nn.Embedding(KEYS, d), nn.Embedding(KEYS, d)
        self.value, self.core = nn.Embedding(VALUES, WIDTH), core
        self.logits = nn.Linear(WIDTH, VALUES)

    def forward(
        self, keys: Int[Tensor, "b n"], values: Int[Tensor, "b n"]
    ) -> Float[Tensor, "b n VALUES"]:
        Q, K, V = (x[:, None] for x in (self.query(keys), self.key(keys), self.value(values)))
        return self.logits(self.core(Q, K, V, Where())[0][:, 0])


def texts(b: int, n: int, rng: Generator) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]:
    """Keys that differ within a text, and a value for each."""
    keys = torch.rand(b, KEYS, generator=rng).argsort(-1)[:, :n]
    return keys, torch.randint(VALUES, (b, n), generator=rng)


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    n = int(torch.randint(1, max(PAIRS) + 1, (), generator=rng))
    keys, values = texts(BATCH, n, rng)
    return F.cross_entropy(model(keys, values).flatten(0, 1), values.flatten())


@torch.no_grad()
def right(model: nn.Module, n: int) -> float:
    keys, values = texts(TEXTS, n, Generator().manual_seed(n))
    return round((model(keys, values).argmax(-1) == values).float().mean().item(), 4)


def runs() -> list[Run]:
    return [
        Run(f"{name}, d = {d}", {"variant": name, "d": d, "steps": STEPS}, seed)
        for name in VARIANTS
        for d in WIDTHS
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = seeded(seed, lambda: Memory(VARIANTS[config["variant"]](), config["d"]))
    train(model, loss, config["steps"], lr=1e-2, seed=seed, progress=False)
    return {"right": [right(model, n) for n in PAIRS]}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant and width, a list for each seed, of a share for each of PAIRS."""
    shares: dict[str, dict[str, list[list[float]]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config = x["run"]["config"]
        of_width = shares.setdefault(config["variant"], {}).setdefault(str(config["d"]), [])
        of_width.append(x["result"]["right"])
    return {"pairs": list(PAIRS), "widths": list(WIDTHS), "chance": 1 / VALUES, "right": shares}
