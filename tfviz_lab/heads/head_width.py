"""How wide must a head be to draw a map? Random maps, fitted with heads of several widths.

    python -m tfviz_lab head_width    → results/head_width.json

The maps are MAPS random ones of TOKENS tokens, softmax of standard normal scores, and one head each
is fitted: W^q and W^k, by Adam on KL(map ‖ head), from rows X that are drawn and stay as they are.
Rows of 32 numbers are linearly independent, as the paper's theorem asks for; rows of 8 and 16
numbers are not. `scores` has the KL divergence in nats, by the width of the rows and of the head;
`squares` that of the head whose scores are nearest to the map's by squares, without training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from tfviz.heads.decoupled_head_size import divergence, drawn_by
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, RATE = (0, 1, 2), 400, 0.05
TOKENS, MAPS = 32, 4
ROWS = (32, 16, 8)  # numbers of a row of X
WIDTHS = (1, 2, 4, 8, 16, 24, 32, 64)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=Generator().manual_seed(seed))


def maps(seed: int) -> Tensor:
    return drawn(seed, MAPS, TOKENS, TOKENS).softmax(-1)


def fitted(P: Tensor, X: Tensor, d_p: int, seed: int, steps: int) -> float:
    """KL in nats, the mean over maps, when `steps` steps are done."""
    d = X.shape[-1]
    W = torch.stack([drawn(seed + n, len(P), d, d_p) for n in (100, 200)]) / d**0.5
    W.requires_grad_()
    optimizer = torch.optim.Adam([W], RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, steps)
    for _ in range(steps):
        loss = divergence(P, head(X, W)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return round(divergence(P, head(X, W)).mean().item(), 5)


def head(X: Tensor, W: Tensor) -> Tensor:
    Q, K = X @ W[0], X @ W[1]
    A: Tensor = (Q @ K.mT / W.shape[-1] ** 0.5).softmax(-1)
    return A


def runs() -> list[Run]:
    return [
        Run(f"rows of {d}", {"task": "fit", "rows": d, "steps": STEPS}, seed)
        for seed in SEEDS
        for d in ROWS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    P, X = maps(seed), drawn(seed + 50, MAPS, TOKENS, config["rows"])
    by_squares = [
        max(0.0, round(torch.stack([divergence(p, drawn_by(p, d_p)) for p in P]).mean().item(), 5))
        for d_p in WIDTHS
    ]
    return {
        "scores": [fitted(P, X, d_p, seed, config["steps"]) for d_p in WIDTHS],
        "squares": by_squares,
        "threads": torch.get_num_threads(),
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    found = {(x["run"]["config"]["rows"], x["run"]["seed"]): x["result"] for x in done}
    return {
        "tokens": TOKENS,
        "widths": list(WIDTHS),
        "scores": {str(d): [found[d, seed]["scores"] for seed in SEEDS] for d in ROWS},
        "squares": [found[ROWS[0], seed]["squares"] for seed in SEEDS],
    }
