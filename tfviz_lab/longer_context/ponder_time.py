"""How long a Universal Transformer ponders, where the number of steps that are needed is known.

A row holds a permutation π of five nodes, new each time, a pair (i, π(i)) at each of five positions
and a query (a, k) for each node a: where does one stand after k hops from a?

ponder   a stack that halts at each position, by τ: share of right answers and mean N, by hops
fixed    T steps at all positions, with the signal's part by step and without; the same weights with
         other T than in training; and how states move, for a row of the test

python -m tfviz_lab ponder_time    → results/ponder_time.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.longer_context.universal_transformer import Universal, changes
from tfviz.longer_context.ut_act import Halting, pondered, price
from tfviz.longer_context.ut_time_position_signal import TimePosition
from tfviz.models.blocks import Block, post_norm
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS, RATE, BATCH = (0, 1, 2), 800, 3e-3, 64
PACKAGES = ["torch"]
NODES, HOPS, WIDTH, HEADS, MOST, BIAS, LONGEST = 5, 3, 32, 4, 4, -1.0, 8
SHOWN = 20  # a row of the test whose permutation is one round
TAUS = (0.01, 0.03, 0.1)
FIXED = ((1, True), (2, True), (3, True), (3, False))


def rows(b: int, rng: Generator) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"], Tensor]:
    """(π, hops of the query at each node, answers)."""
    pi = torch.rand(b, NODES, generator=rng).argsort(1)
    hops = torch.randint(1, HOPS + 1, (b, NODES), generator=rng)
    ends = [torch.arange(NODES).expand(b, -1)]
    for _ in range(HOPS):
        ends.append(pi.gather(1, ends[-1]))
    return pi, hops, torch.stack(ends, -1).gather(-1, hops[..., None]).squeeze(-1)


class Pointers(nn.Module):
    """Logits of the node at which each query ends; `stack` is any stack of blocks."""

    def __init__(self, stack: nn.Module) -> None:
        super().__init__()
        self.node, self.points, self.start = (nn.Embedding(NODES, WIDTH) for _ in range(3))
        self.hops, self.read = nn.Embedding(HOPS + 1, WIDTH), nn.Linear(WIDTH, NODES)
        self.stack = stack

    def embedded(self, pi: Tensor, hops: Tensor) -> Float[Tensor, "b 2n d"]:
        name = torch.arange(NODES)
        pairs = self.node(name) + self.points(pi)
        return torch.cat([pairs, self.start(name) + self.hops(hops)], 1)

    def forward(self, pi: Tensor, hops: Tensor) -> Float[Tensor, "b n n"]:
        return self.read(self.stack(self.embedded(pi, hops))[:, NODES:])


def made(seed: int, T: int, halts: bool, steps: bool = True) -> Pointers:
    def make() -> Pointers:
        signal = TimePosition(WIDTH, scale=WIDTH**-0.5, steps=steps)
        block = Block(WIDTH, HEADS, post_norm)
        if not halts:
            return Pointers(Universal(block, T, signal))
        # so small and so many rows at once: choosing rows takes longer than computing all
        return Pointers(Halting(block, T, signal, bias=BIAS, compact=False))

    return seeded(seed, make)


def learn(model: Pointers, tau: float, steps: int, seed: int) -> None:
    def loss(model: Pointers, rng: Generator, step: int) -> Tensor:
        pi, hops, answers = rows(BATCH, rng)
        found = F.cross_entropy(model(pi, hops).flatten(0, 1), answers.flatten())
        return found + tau * price(model) if tau else found

    train(model, loss, steps, seed=seed, lr=RATE, progress=False)


def rounded(x: Tensor) -> list[Any]:
    return x.double().mul(1e4).round().div(1e4).tolist()


@torch.no_grad()
def examined(model: Pointers, b: int = 500) -> dict[str, Any]:
    """Share of right answers by hops; of a stack that halts the mean N of queries, by hops, and of
    pairs, and N in one row."""
    pi, hops, answers = rows(b, Generator().manual_seed(9))
    right = model(pi, hops).argmax(-1) == answers
    by_hops = lambda x: rounded(torch.stack([x[hops == k].double().mean() for k in (1, 2, 3)]))  # noqa: E731
    found: dict[str, Any] = {"right": by_hops(right)}
    if isinstance(model.stack, Halting):
        N = pondered(model).N
        found |= {"N": by_hops(N[:, NODES:]), "pairs": N[:, :NODES].double().mean().item()}
        found["row"] = {n: x[SHOWN].tolist() for n, x in (("pi", pi), ("hops", hops), ("N", N))}
    return found


@torch.no_grad()
def unrolled(model: Pointers, b: int = 500) -> dict[str, Any]:
    """With 1 … LONGEST steps: share of right answers; in one row what is answered, and how far each
    state moves in each step."""
    pi, hops, answers = rows(b, Generator().manual_seed(9))
    stack, says = model.stack, []
    assert isinstance(stack, Universal)
    for stack.T in range(1, LONGEST + 1):
        says.append(model(pi, hops).argmax(-1))
    said = torch.stack(says)  # (T, b, n)
    moved = changes(stack.states(model.embedded(pi[[SHOWN]], hops[[SHOWN]])))[0]
    given = {"pi": pi, "hops": hops, "answers": answers}
    return {
        "longer": rounded((said == answers).double().mean((1, 2))),
        "row": {name: x[SHOWN].tolist() for name, x in given.items()}
        | {"says": said[:, SHOWN].tolist(), "moved": rounded(moved)},
    }


def runs() -> list[Run]:
    kinds: list[dict[str, Any]] = [{"tau": tau} for tau in TAUS]
    kinds += [{"T": T, "signal of steps": steps} for T, steps in FIXED]
    named = [(", ".join(f"{name} {x}" for name, x in c.items()), c) for c in kinds]
    return [Run(name, {**c, "steps": STEPS}, seed) for seed in SEEDS for name, c in named]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "tau" in config:
        model = made(seed, MOST, halts=True)
        learn(model, config["tau"], config["steps"], seed)
        return examined(model)
    model = made(seed, config["T"], halts=False, steps=config["signal of steps"])
    learn(model, 0.0, config["steps"], seed)
    return examined(model) | unrolled(model)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each τ, and for each of FIXED; in it what was found, one item for each seed."""
    found: dict[str, dict[str, Any]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config = {n: v for n, v in x["run"]["config"].items() if n != "steps"}
        entry = found.setdefault(str(config), {"config": config})
        for name, value in x["result"].items():
            entry.setdefault(name, []).append(value)
    every = [found[str({n: v for n, v in r.config.items() if n != "steps"})] for r in runs()]
    every = every[: len(TAUS) + len(FIXED)]
    return {"title": "Hops", "ponder": every[: len(TAUS)], "fixed": every[len(TAUS) :]}
