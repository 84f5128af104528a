"""Are two marks within distance 5? What one layer of DA attention learns of near and far.

A row of random symbols, two of them replaced by a mark, 1 to 10 places apart: say whether they are
at most FAR places apart. Nothing tells positions but the core; every distance is asked as often.

    learned        DA: each head learns α and β
    near only      α = −|a|: every head may only prefer what is near
    far only       α = +|a|
    no distance    α = 0: clipped scores, and no position at all
    ALiBi          its four slopes, not learned

python -m tfviz_lab distance_aware_scores    → results/distance_aware_scores.json
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.da_transformer import DA
from tfviz.models.blocks import Stack
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch"]
SEEDS, STEPS, RATE, BATCH, ASKED = (0, 1, 2), 400, 1e-2, 64, 400
LENGTH, SYMBOLS, WIDTH, HEADS = 32, 8, 32, 4
NEAR, FAR = 5, 10  # the answer is yes up to NEAR; distances go up to FAR


class _OneSign(DA):
    """α = sign · |a|, with a learned from 0.1 on."""

    def __init__(self, sign: float) -> None:
        super().__init__(HEADS)
        del self.alpha
        self.a, self.sign = nn.Parameter(torch.full((HEADS,), 0.1)), sign

    @property
    def alpha(self) -> Tensor:  # type: ignore[override]
        return self.sign * self.a.abs()


class _NoDistance(DA):
    def __init__(self) -> None:
        super().__init__(HEADS)
        self.alpha.requires_grad_(False)


CORES: dict[str, Callable[..., nn.Module]] = {
    "learned": DA,
    "near only": lambda: _OneSign(-1.0),
    "far only": lambda: _OneSign(1.0),
    "no distance": _NoDistance,
    "ALiBi": Alibi,
}


class Judge(nn.Module):
    """One block, read at both marks: a number above 0 says "near"."""

    def __init__(self, core: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 1, WIDTH)
        made: Any = CORES[core]
        self.stack, self.read = Stack(1, WIDTH, HEADS, core=made), nn.Linear(WIDTH, 1)

    def forward(self, rows: Int[Tensor, "b L"]) -> Float[Tensor, "b"]:
        marks = (rows == SYMBOLS)[..., None]
        return self.read((self.stack(self.embed(rows)) * marks).sum(1)).squeeze(-1)


def marked(n: Int[Tensor, "b"], rng: Generator) -> Int[Tensor, "b L"]:
    """Rows whose two marks are n places apart, wherever there is room."""
    rows = torch.randint(SYMBOLS, (len(n), LENGTH), generator=rng)
    first = (torch.rand(len(n), generator=rng) * (LENGTH - n)).long()
    return rows.scatter(1, torch.stack([first, first + n], 1), SYMBOLS)


def runs() -> list[Run]:
    return [Run(name, {"core": name, "steps": STEPS}, seed) for seed in SEEDS for name in CORES]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """The share of right answers at each distance, and what α and β became."""

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        n = torch.randint(1, FAR + 1, (BATCH,), generator=rng)
        return F.binary_cross_entropy_with_logits(model(marked(n, rng)), (n <= NEAR).float())

    model = seeded(seed, lambda: Judge(config["core"]))
    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    rng, right = Generator().manual_seed(1000 + seed), []
    with torch.no_grad():
        for n in range(1, FAR + 1):
            says = model(marked(torch.full((ASKED,), n), rng)) > 0
            right.append(round((says == (n <= NEAR)).float().mean().item(), 4))
    core: Any = model.stack.blocks[0].attend.core  # type: ignore[union-attr]
    learned = {
        name: [round(x, 3) for x in getattr(core, name).tolist()]
        for name in ("alpha", "beta")
        if hasattr(core, name)
    }
    return {"right": right, **learned}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"right": {core: [share at each distance] of each seed}, "alpha": {core: …}, "beta": …}."""
    found: dict[str, dict[str, list[Any]]] = {x: {} for x in ("right", "alpha", "beta")}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        for what, table in found.items():
            if what in x["result"]:
                table.setdefault(x["run"]["name"], []).append(x["result"][what])
    return {
        "title": "Are two marks within distance 5?",
        "distances": list(range(1, FAR + 1)),
        "near": NEAR,
        "settings": {"length": LENGTH, "symbols": SYMBOLS, "width": WIDTH, "heads": HEADS},
        **found,
    }
