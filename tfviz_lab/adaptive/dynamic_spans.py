"""Which tokens ask for a long look back? A language of near and far brackets, dynamic spans.

A row is noise with pairs in it: an opening bracket carries one of four symbols, and at the closing
one the model must say which. Round ones close 1 to 4 tokens later, square ones 17 to 31.

python -m tfviz_lab dynamic_spans    → results/dynamic_spans.json
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn

from tfviz.adaptive.adaptive_span import price
from tfviz.adaptive.dynamic_span import DynamicSpan
from tfviz.models.blocks import Block
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS, PACKAGES = (0, 1, 2), 400, ["torch", "numpy"]
WIDTH, HEADS, BATCH, RATE, S, R = 32, 2, 32, 5e-3, 64, 4
VARIANTS = {
    "free": {"price": 0.0, "start": 32},
    "priced": {"price": 0.01, "start": 32},
    "free, from 8": {"price": 0.0, "start": 8},
}
SIDE, PARTS, SYMBOLS, NOISE = 32, 2, 4, 8
L = PARTS * SIDE
KINDS = ("noise", "opens", "closes a near pair", "closes a far pair")
NEAR, FAR = NOISE + 2 * SYMBOLS, NOISE + 2 * SYMBOLS + 1  # the closing brackets
NAMES = [*"········", *(f"{side}{n}" for side in "([" for n in "₁₂₃₄"), ")", "]"]


def rows(b: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(tokens, distance to the matching bracket at closing ones, 0 elsewhere)."""
    n = b * PARTS

    def drawn(low: int, high: int) -> Tensor:  # low … high − 1
        return torch.randint(low, high, (n, 1), generator=rng)

    t = torch.randint(NOISE, (n, SIDE), generator=rng)
    back = torch.zeros_like(t)
    pairs = [(start := 8 * k + drawn(0, 4), start + drawn(1, 5), 0) for k in (1, 2)]
    pairs.append((drawn(0, 8), drawn(24, 32), 1))
    for opened, closed, kind in pairs:
        t.scatter_(1, opened, NOISE + SYMBOLS * kind + drawn(0, SYMBOLS))
        t.scatter_(1, closed, (NEAR, FAR)[kind])
        back.scatter_(1, closed, closed - opened)
    return t.view(b, L), back.view(b, L)


def answers(t: Tensor, back: Tensor) -> Tensor:
    """The opening bracket at each closing one; −100, which is not scored, elsewhere."""
    at = torch.arange(L) - back
    return t.gather(1, at).masked_fill(back == 0, -100)


def kinds(t: Tensor) -> Tensor:
    """The kind of each token, a place in KINDS."""
    return (t >= NOISE).long() + (t >= NEAR).long() + (t == FAR).long()


def learn(steps: int, cost: float, start: float, seed: int) -> dict[str, Any]:
    """Shares of right answers, mean z_t by kind, its correlation with distance, one text."""
    core = partial(DynamicSpan, HEADS, WIDTH // HEADS, S=S, R=R, start=start)
    model = seeded(
        seed, lambda: GPT(len(NAMES), WIDTH, HEADS, 1, positions=Learned(L, WIDTH), core=core)
    )

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        t, back = rows(BATCH, rng)
        found = F.cross_entropy(model(t).flatten(0, 1), answers(t, back).flatten())
        return found + cost * price(model)

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    t, back = rows(500, torch.Generator().manual_seed(1000 + seed))
    with torch.no_grad():
        right = model(t).argmax(-1) == answers(t, back)
    block = cast(Block, model.stack.blocks[0])
    z = cast(DynamicSpan, block.attend.core).z.detach().amax(1)  # of the head that looks furthest
    kind = kinds(t)
    both = torch.stack([z, back.double()])
    far = kind == 3
    return {
        "right": [round(right[kind == k].double().mean().item(), 3) for k in (2, 3)],
        "z": [round(z[kind == k].mean().item(), 2) for k in range(len(KINDS))],
        "r": round(torch.corrcoef(both[:, back > 0])[0, 1].item(), 3),
        "r_far": round(torch.corrcoef(both[:, far])[0, 1].item(), 3),
        "text": t[0].tolist(),
        "spans": [round(x, 1) for x in z[0].tolist()],
        "back": back[0].tolist(),
    }


def runs() -> list[Run]:
    """Every variant on every seed."""
    return [
        Run(name, {"variant": name, **told, "steps": STEPS}, seed)
        for seed in SEEDS
        for name, told in VARIANTS.items()
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    return learn(config["steps"], config["price"], config["start"], seed)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"found": {variant: [what `learn` says, of each seed]}}."""
    found: dict[str, list[Any]] = {name: [] for name in VARIANTS}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        found[x["run"]["config"]["variant"]].append(x["result"])
    return {"title": "Near and far brackets", "kinds": KINDS, "names": NAMES, "found": found}
