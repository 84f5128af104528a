"""Rotary positions in small language models: what matters in the recipe, and what happens far out.

    python -m tfviz_lab rotary     trains again and rewrites the stored result

Two layers, four heads of 16 numbers, characters of Python's help texts, 64 at a time. Each run
changes one thing. Then the same held-out characters are scored with more and more text before them,
up to eight times the length of training: as trained, with all positions divided (Chen et al. 2023),
with a larger base (Peng et al. 2023), and after a few steps on longer text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments, data
from tfviz.cores import Dense, Where
from tfviz.models.blocks import Block, MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.position.rope import Rope, rotate, rotate_halves
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

D, HEADS, LAYERS, BATCH, LENGTH = 64, 4, 2, 32, 64
D_HEAD = D // HEADS
STEPS, RATE = 300, 3e-3
TUNING = 40  # steps on text four times as long
LENGTHS, SCORED, WINDOWS = (32, 64, 128, 256, 512), 32, 96
SHIFT = 200


class Shifted(Rope):
    """All positions larger by `by`: what sees only distances cannot tell. And the way back."""

    def __init__(self, d_head: int, by: int = 0) -> None:
        super().__init__(d_head)
        self.by = by

    def turn(self, X: Tensor, start: int) -> Tensor:
        return super().turn(X, start + self.by)

    def turn_back(self, X: Tensor, start: int) -> Tensor:
        return rotate(X, -self.by - start - torch.arange(X.shape[-2]), self.base)


class Halves(Rope):
    """The other pairing, (m, m + d/2)."""

    def turn(self, X: Tensor, start: int) -> Tensor:
        i = torch.arange(start, start + X.shape[-2])
        return rotate_halves(X, i.double() / self.interpolate, self.base)


class TurnedValues(Shifted):
    """Values turned as well; and, with `back`, what comes out is turned back where it arrives."""

    def __init__(self, d_head: int, by: int = 0, *, back: bool) -> None:
        super().__init__(d_head, by)
        self.back = back

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        out, A = super().forward(Q, K, self.turn(V, where.start), where)
        return self.turn_back(out, where.start) if self.back else out, A


RECIPES: dict[str, dict[str, Any]] = {
    "rotary": {},
    "halves": {"positions": "halves"},
    "no positions": {"positions": "none"},
    "base 1": {"base": 1.0},
    "base 100": {"base": 100.0},
    "base 1,000,000": {"base": 1e6},
    "values turned": {"values": "turned"},
    "values turned and back": {"values": "back"},
}


def model(
    vocab: int, positions: str = "rotary", base: float = 10_000.0, values: str = "", seed: int = 0
) -> GPT:
    """An untrained GPT after one of the recipes."""
    kinds: dict[str, Callable[[], Dense]] = {
        "rotary": lambda: Rope(D_HEAD, base),
        "halves": lambda: Halves(D_HEAD, base),
        "none": Dense,
    }
    core = partial(TurnedValues, D_HEAD, back=values == "back") if values else kinds[positions]
    return seeded(seed, lambda: GPT(vocab, D, HEADS, LAYERS, core=core))


def with_positions(trained: GPT, make: Callable[[], Dense]) -> GPT:
    """A copy of the model whose layers turn in another way."""
    changed = deepcopy(trained)
    for module in changed.modules():
        if isinstance(module, MultiHeadAttention):
            module.core = make()
    return changed


@torch.no_grad()
def last_loss(trained: nn.Module, rows: Int[Tensor, "n L+1"], length: int) -> float:
    """Nats per character on the last 32 of each row, when `length` tokens are read in all."""
    _arguments.integer("length", length, SCORED, rows.shape[1] - 1)
    x, y = rows[:, -length - 1 : -1], rows[:, -SCORED:]
    found = [
        F.cross_entropy(trained(part)[:, -SCORED:].flatten(0, 1), answer.flatten()).item()
        for part, answer in zip(x.split(16), y.split(16), strict=True)
    ]
    return sum(found) / len(found)


def larger_base(factor: float, base: float = 10_000.0, d_head: int = D_HEAD) -> float:
    """The base with which the slowest pair turns `factor` times slower, and the first as before."""
    return float(base * factor ** (d_head / (d_head - 2)))


@torch.no_grad()
def clocks(trained: GPT, rows: Int[Tensor, "n L"]) -> dict[str, Any]:
    """By layer and head: mean |q_m||k_m| of each pair m, and the mean weight at each distance."""
    seen: list[Float[Tensor, "h m"]] = []
    hooks = []
    for block in trained.stack.blocks:

        def look(attend: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
            Q, K, _ = attend.project(inputs[0], None)
            q, k = (x.unflatten(-1, (-1, 2)).norm(dim=-1).mean((0, 2)) for x in (Q, K))
            seen.append(q * k)

        assert isinstance(block, Block)
        hooks.append(block.attend.register_forward_pre_hook(look))
    A = attention_weights(trained, rows)
    for hook in hooks:
        hook.remove()
    by_distance = [
        torch.stack([a.diagonal(-n, -2, -1)[..., SCORED:].mean((0, -1)) for n in range(32)], -1)
        for a in A.values()
    ]
    return {
        "lengths": [[[round(x, 4) for x in h] for h in layer.tolist()] for layer in seen],
        "weights": [[[round(x, 5) for x in h] for h in layer.tolist()] for layer in by_distance],
    }


def runs() -> list[Run]:
    """Every recipe with three seeds."""
    return [
        Run(name, {"recipe": recipe, "steps": STEPS}, seed)
        for name, recipe in RECIPES.items()
        for seed in (0, 1, 2)
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    ids, alphabet = data.characters()
    training, held_out = data.split(ids)
    recipe = config["recipe"]
    made = model(len(alphabet), **recipe, seed=seed)
    losses = train(
        made, next_token(training, BATCH, LENGTH), config["steps"], lr=RATE, seed=seed,
        progress=False,
    )  # fmt: skip
    start = torch.randint(
        len(held_out) - max(LENGTHS), (WINDOWS, 1), generator=torch.Generator().manual_seed(1)
    )
    rows = held_out[start + torch.arange(max(LENGTHS) + 1)]
    found: dict[str, Any] = {
        "training": [round(sum(losses[n : n + 20]) / 20, 4) for n in range(0, len(losses), 20)],
        "as trained": [last_loss(made, rows, L) for L in LENGTHS],
    }
    if recipe.get("positions", "rotary") == "rotary" and "base" not in recipe:
        shifted = with_positions(made, lambda: Shifted(D_HEAD, SHIFT))
        found["shifted"] = last_loss(shifted, rows, LENGTH)
    if not recipe:
        found |= _farther(made, training, rows, seed)
        found["clocks"] = clocks(made, rows[:16, : LENGTH + 1])
    return found


def _farther(made: GPT, training: Tensor, rows: Tensor, seed: int) -> dict[str, Any]:
    """What can be done about text longer than in training."""
    ways: dict[str, list[float]] = {"positions divided": [], "larger base": []}
    for L in LENGTHS:
        s = max(1.0, L / LENGTH)

        def divided(s: float = s) -> Rope:
            return Rope(D_HEAD, interpolate=s)

        def based(s: float = s) -> Rope:
            return Rope(D_HEAD, larger_base(s))

        ways["positions divided"].append(last_loss(with_positions(made, divided), rows, L))
        ways["larger base"].append(last_loss(with_positions(made, based), rows, L))
    longer = next_token(training, BATCH // 4, 4 * LENGTH)
    for name, s in (("tuned as it was", 1.0), ("divided by 4 and tuned", 4.0)):
        tuned = with_positions(made, lambda s=s: Rope(D_HEAD, interpolate=s))  # type: ignore[misc]
        train(tuned, longer, TUNING, lr=RATE / 3, seed=seed + 100, progress=False)
        ways[name] = [last_loss(tuned, rows, L) for L in LENGTHS]
    return {"farther": ways}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By recipe, one entry for each seed."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    seeds = sorted({seed for _, seed in found})
    tables = {name: [found[name, seed] for seed in seeds] for name in RECIPES}
    plain = tables["rotary"]
    return {
        "lengths": list(LENGTHS),
        "train_length": LENGTH,
        "unit": f"nats per character, on the last {SCORED} of each of {WINDOWS} rows",
        "training": {name: [x["training"] for x in rows] for name, rows in tables.items()},
        "loss": {name: [x["as trained"] for x in rows] for name, rows in tables.items()},
        "shifted": {
            name: [x["shifted"] for x in rows]
            for name, rows in tables.items()
            if "shifted" in rows[0]
        },
        "farther": {
            name: [x["farther"][name] for x in plain] for name in plain[0]["farther"]
        },
        "clocks": [x["clocks"] for x in plain],
        "settings": {
            "d": D, "heads": HEADS, "layers": LAYERS, "batch": BATCH, "rate": RATE,
            "tuning": TUNING, "shift": SHIFT,
        },
    }  # fmt: skip
