"""Does a gate help a state that fills? Recall with random features, with a gate and without.

    python -m tfviz_lab gated_recall    → results/gated_recall.json

A text is n pairs of a key symbol and a value symbol, with keys that all differ. They are written
into the state one after the other; then keys are asked for their values:

    all     every key of the text
    last    the keys of the LAST pairs that were written last; nothing older is ever asked for

Queries, keys and values are learned vectors, as in `linear_recall`. Each model is trained on texts
of 1 to 64 pairs and scored on texts of each of PAIRS: the share of right answers. A state has 2 D
features; the larger one is measured where no gate helps. `left` is what trained gates leave of a
token after LAST more, the mean over keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.compressed.rfa import RFA
from tfviz.compressed.rfa_causal import GatedRFA
from tfviz.cores import CAUSAL, Where
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, BATCH = (0, 1, 2), 300, 32
KEYS, VALUES, WIDTH, LAST = 256, 16, 32, 8
PAIRS, DIRECTIONS, ASKED = (4, 8, 16, 32, 64), (8, 32), ("all", "last")
TEXTS = 200

VARIANTS: dict[str, Callable[..., nn.Module]] = {"no gate": RFA, "gate": GatedRFA}


class Memory(nn.Module):
    """Logits of the value of each key that is asked for, after all pairs have been written."""

    def __init__(self, core: Callable[..., nn.Module], D: int) -> None:
        super().__init__()
        self.query, self.key = nn.Embedding(KEYS, WIDTH), nn.Embedding(KEYS, WIDTH)
        self.value = nn.Embedding(VALUES, WIDTH)
        self.core: Any = core(1, WIDTH, D=D, tau=0.5)
        self.logits = nn.Linear(WIDTH, VALUES)

    def forward(
        self, keys: Int[Tensor, "b n"], values: Int[Tensor, "b n"], asked: Int[Tensor, "b a"]
    ) -> Float[Tensor, "b a VALUES"]:
        K, V = self.key(keys)[:, None], self.value(values)[:, None]
        kept: list[Any] = []
        self.core(K, K, V, Where(CAUSAL, keep=kept.append))
        Q = self.query(asked)[:, None]
        return self.logits(self.read(Q, kept[0])[:, 0])

    def read(self, Q: Tensor, state: Any) -> Tensor:
        """What queries find in a state, to which they add nothing."""
        S, before = state if isinstance(state, tuple) else (state, None)
        sums = self.core.of_queries(Q) @ S
        left = torch.ones(()) if before is None else -before.expm1()[..., None]
        return sums[..., :-1] / torch.maximum(sums[..., -1:], self.core.least * left)


def text(
    task: str, b: int, n: int, rng: Generator
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"], int]:
    """Keys that differ within a text, a value for each, and the first pair that is asked for."""
    keys = torch.rand(b, KEYS, generator=rng).argsort(-1)[:, :n]
    first = max(0, n - LAST) if task == "last" else 0
    return keys, torch.randint(VALUES, (b, n), generator=rng), first


def loss(task: str, model: nn.Module, rng: Generator, step: int) -> Tensor:
    n = int(torch.randint(1, max(PAIRS) + 1, (), generator=rng))
    keys, values, first = text(task, BATCH, n, rng)
    answers = model(keys, values, keys[:, first:])
    return F.cross_entropy(answers.flatten(0, 1), values[:, first:].flatten())


@torch.no_grad()
def right(task: str, model: nn.Module, n: int) -> float:
    keys, values, first = text(task, TEXTS, n, Generator().manual_seed(n))
    named = model(keys, values, keys[:, first:]).argmax(-1)
    return round((named == values[:, first:]).float().mean().item(), 4)


def runs() -> list[Run]:
    return [
        Run(
            f"{task}, {name}, D = {D}",
            {"task": task, "variant": name, "D": D, "steps": STEPS},
            seed,
        )
        for task in ASKED
        for name in VARIANTS
        for D in DIRECTIONS
        if DIRECTIONS[0] == D or (task, name) == ("all", "no gate")
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    task = config["task"]
    model = seeded(seed, lambda: Memory(VARIANTS[config["variant"]], config["D"]))
    train(model, partial(loss, task), config["steps"], lr=1e-2, seed=seed, progress=False)
    left = None
    if isinstance(model.core, GatedRFA):
        with torch.no_grad():
            log_g = model.core.log_gates(model.key.weight[None, None])
        left = round((LAST * log_g.mean()).exp().item(), 4)
    return {"right": [right(task, model, n) for n in PAIRS], "left": left}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By task, variant and D, a list for each seed, of a share for each of PAIRS."""
    shares: dict[str, dict[str, dict[str, list[list[float]]]]] = {}
    left: dict[str, dict[str, list[float]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        D = str(config["D"])
        of_task = shares.setdefault(config["task"], {})
        of_task.setdefault(config["variant"], {}).setdefault(D, []).append(result["right"])
        if result["left"] is not None:
            left.setdefault(config["task"], {}).setdefault(D, []).append(result["left"])
    return {
        "pairs": list(PAIRS),
        "directions": list(DIRECTIONS),
        "last": LAST,
        "chance": 1 / VALUES,
        "right": shares,
        "left": left,
    }
