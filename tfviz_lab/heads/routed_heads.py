"""What heads found, put together by W^o or by routing: one wrong vote, and a small GPT.

    python -m tfviz_lab routed_heads    → results/routed_heads.json

votes   HEADS heads vote for OUTPUTS vectors of NUMBERS numbers: the truth, of length LENGTH, plus
        noise, drawn anew for each of TOKENS. Then one vote for one output is shifted by each of
        SHIFTS: back along the truth, to the side, or on along it. How far does that move the
        output: of the mean, of dynamic (simple) and of EM routing, ROUNDS rounds each? "shares" is
        the share that the wrong vote keeps, 1/OUTPUTS in the mean
model   the GPT of `compare`, with W^o or with routing in its place
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from tfviz.heads.routing_heads_dynamic import DynamicRouting, routing_rounds
from tfviz.heads.routing_heads_em import EMRouting, em_rounds
from tfviz_lab import compare
from tfviz_lab.compare import SEEDS, TRAIN_LENGTH, WIDTH
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
STEPS = 200
HEADS, OUTPUTS, NUMBERS, TOKENS, ROUNDS = 8, 2, 4, 500, 3
LENGTH, NOISE = 1.5, 0.3
SHIFTS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
DIRECTIONS = ("back", "to the side", "on")


def by_mean(votes: Tensor) -> tuple[Tensor, Tensor]:
    return torch.full_like(votes[..., 0], 1 / OUTPUTS), votes.mean(-3)


def by_dynamic(votes: Tensor) -> tuple[Tensor, Tensor]:
    return routing_rounds(votes, ROUNDS, squashed=False)[-1]


def by_em(votes: Tensor) -> tuple[Tensor, Tensor]:
    fit = em_rounds(votes, ROUNDS)[-1]
    return fit.shares, fit.mean


WAYS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "mean": by_mean,
    "dynamic": by_dynamic,
    "EM": by_em,
}

JOINS: dict[str, Callable[[], dict[str, Any]]] = {
    "W^o": lambda: {},
    "dynamic": lambda: {"join": lambda: DynamicRouting(WIDTH, compare.HEADS)},
    "EM": lambda: {"join": lambda: EMRouting(WIDTH, compare.HEADS)},
}


def drawn(seed: int) -> tuple[Tensor, Tensor]:
    """(votes, the direction of the truth for output 0): float64."""
    rng = Generator().manual_seed(seed)
    draw = partial(torch.randn, generator=rng, dtype=torch.float64)
    truth = F.normalize(draw(TOKENS, 1, OUTPUTS, NUMBERS), dim=-1)
    votes = LENGTH * truth + NOISE * draw(TOKENS, HEADS, OUTPUTS, NUMBERS)
    return votes, truth[:, 0, 0]


def shifted(seed: int, direction: str, shift: float) -> Tensor:
    """The votes, with the first head's vote for output 0 moved."""
    votes, ahead = drawn(seed)
    side = torch.randn(ahead.shape, generator=Generator().manual_seed(100 + seed)).to(ahead)
    side = F.normalize(side - (side * ahead).sum(-1, keepdim=True) * ahead, dim=-1)
    votes[:, 0, 0] += shift * {"back": -ahead, "to the side": side, "on": ahead}[direction]
    return votes


def one_wrong_vote(way: str, seed: int) -> dict[str, Any]:
    """By direction, for each shift: how far output 0 moves, and the share of the wrong vote."""
    route = WAYS[way]
    honest = route(drawn(seed)[0])[1][:, 0]
    found: dict[str, Any] = {"moved": {}, "shares": {}}
    for direction in DIRECTIONS:
        routed = [route(shifted(seed, direction, shift)) for shift in SHIFTS]
        moved = [(out[:, 0] - honest).norm(dim=-1).mean().item() for _, out in routed]
        found["moved"][direction] = [round(x, 4) for x in moved]
        found["shares"][direction] = [round(r[:, 0, 0].mean().item(), 4) for r, _ in routed]
    return found


def runs() -> list[Run]:
    votes = [Run(f"votes {way}", {"task": "votes", "way": way}, n) for way in WAYS for n in SEEDS]
    return votes + [
        Run(f"model {name}", {"task": "model", "variant": name, "steps": STEPS}, seed)
        for name in JOINS
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "votes":
        return one_wrong_vote(config["way"], seed)
    return compare.measured(JOINS[config["variant"]], "text", seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Shifts and shares by way and direction, one list for each seed; by variant, for each seed a
    score at each length that was trained."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    lengths = [n for n in compare.LENGTHS if n <= TRAIN_LENGTH]
    return {
        "shifts": list(SHIFTS),
        **{
            kind: {
                way: {
                    direction: [found[f"votes {way}", n][kind][direction] for n in SEEDS]
                    for direction in DIRECTIONS
                }
                for way in WAYS
            }
            for kind in ("moved", "shares")
        },
        "steps": STEPS,
        "lengths": lengths,
        "scores": {
            name: [found[f"model {name}", n]["score"][: len(lengths)] for n in SEEDS]
            for name in JOINS
        },
        "parameters": {name: found[f"model {name}", SEEDS[0]]["parameters"] for name in JOINS},
    }
