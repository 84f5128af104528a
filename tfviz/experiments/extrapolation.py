"""Trained on 64 characters, asked with up to 512: which ways to tell positions stand it?

Seven small GPTs differ only in how they are told the positions; with the same seed they begin with
the same other weights and see the same batches. Two tasks:

    text      the next character of English text
    recall    a row of random symbols; at every place, name the symbol BACK places before it

Measured on the last SCORED places of rows of each length. On text these are the same characters for
all lengths: a longer row only gives more context before them, so that a model which can use or
ignore it gets no worse. On recall, places without a symbol BACK places before them are not scored.
A learned table has no rows beyond its L_max = 64: null.

Under "extra" are some of them with a part taken away, or made smaller.

    python -m tfviz.experiments extrapolation        all of it, → results/extrapolation.json
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.experiments.runner import Done, Run, main
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.position.shaw_relative import shaw
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.position.t5_relative_bias import t5_bias
from tfviz.position.xl_relative import XL, xl
from tfviz.training import next_token, seeded, train

LENGTHS, TRAIN_LENGTH, SCORED, ROWS = (16, 32, 64, 96, 128, 256, 512), 64, 16, 64
LAYERS, HEADS, WIDTH = 2, 4, 64
BATCH, RATE, SEEDS = 16, 3e-3, (0, 1, 2)
STEPS = {"text": 500, "recall": 300}
SYMBOLS, BACK, SHAW_K, T5_BUCKETS, T5_FAR, T5_SCALE = 8, 12, 16, 32, 64, 10.0

PACKAGES = ["torch", "numpy"]


class _WithoutQR(XL):
    """Terms one, three and four: which distance is liked does not depend on the query."""

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return super().bias(torch.zeros_like(Q), K)


class _WithoutUV(XL):
    """Terms one and two: u and v stay 0."""

    def __init__(self, h: int, d_head: int) -> None:
        super().__init__(h, d_head)
        self.u.requires_grad_(False)
        self.v.requires_grad_(False)


def t5(**options: Any) -> dict[str, Any]:
    return {"core": t5_bias(HEADS, **{"buckets": T5_BUCKETS, "far": T5_FAR} | options)}


ENCODINGS: dict[str, Any] = {
    "none": lambda: {},
    "sinusoidal": lambda: {"places": Sinusoidal(WIDTH, scale=WIDTH**-0.5)},
    "learned": lambda: {"places": Learned(TRAIN_LENGTH, WIDTH)},
    "shaw": lambda: {"core": shaw(WIDTH // HEADS, SHAW_K)},
    "xl": lambda: {"core": xl(HEADS, WIDTH // HEADS)},
    "t5": lambda: t5(scale=T5_SCALE),
    "rotary": lambda: {"core": lambda: Rope(WIDTH // HEADS)},
}
"""What a GPT is told of positions; called with torch's random numbers seeded."""

EXTRA: dict[str, dict[str, Any]] = {
    "text": {
        "shaw, keys only": lambda: {"core": shaw(WIDTH // HEADS, SHAW_K, values=False)},
        "xl, without u and v": lambda: {"core": lambda: _WithoutUV(HEADS, WIDTH // HEADS)},
        "xl, without q·r": lambda: {"core": lambda: _WithoutQR(HEADS, WIDTH // HEADS)},
        "t5, slow table": lambda: t5(),
    },
    "recall": {
        "shaw, k = 4": lambda: {"core": shaw(WIDTH // HEADS, 4)},
        "t5, 16 buckets": lambda: t5(scale=T5_SCALE, buckets=16),
        "t5, slow table": lambda: t5(),
    },
}
"""What is taken away or made smaller, to see what it was good for."""


def model(encoding: str, vocab: int, seed: int) -> GPT:
    """A GPT whose weights, but for those of the positions, are those of every other encoding."""
    told = (ENCODINGS | EXTRA["text"] | EXTRA["recall"])[encoding]
    plain = seeded(seed, lambda: GPT(vocab, WIDTH, HEADS, LAYERS))
    made = seeded(seed, lambda: GPT(vocab, WIDTH, HEADS, LAYERS, **told()))
    made.load_state_dict(plain.state_dict(), strict=False)
    return made


def symbols_back(b: int, L: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(rows, answers): random symbols, and at place t the symbol of place t − BACK.

    −100, which is not scored, where there is none.
    """
    rows = torch.randint(SYMBOLS, (b, L), generator=rng)
    answers = torch.full_like(rows, -100)
    answers[:, BACK:] = rows[:, :-BACK]
    return rows, answers


def recall_loss(b: int, L: int) -> Any:
    """Nats per recalled symbol, on a batch of new rows."""

    def loss(gpt: nn.Module, rng: Generator, step: int) -> Tensor:
        x, y = symbols_back(b, L, rng)
        return F.cross_entropy(gpt(x).flatten(0, 1), y.flatten())

    return loss


def trained(task: str, encoding: str, seed: int, steps: int) -> GPT:
    if task == "text":
        ids, alphabet = data.characters()
        gpt = model(encoding, len(alphabet), seed)
        train(gpt, next_token(data.split(ids)[0], BATCH, TRAIN_LENGTH), steps, rate=RATE, seed=seed)
    else:
        gpt = model(encoding, SYMBOLS, seed)
        train(gpt, recall_loss(BATCH, TRAIN_LENGTH), steps, rate=RATE, seed=seed)
    return gpt


def examined(task: str, rows: int = ROWS) -> tuple[Int[Tensor, "rows L"], Int[Tensor, "rows L"]]:
    """(x, y) of the longest length, never trained on; shorter ones are their ends."""
    rng = Generator().manual_seed(1)
    if task == "text":
        held_out = data.split(data.characters()[0])[1]
        return data.windows(held_out, rows, max(LENGTHS), rng)
    return symbols_back(rows, max(LENGTHS), rng)


@torch.no_grad()
def nats(
    gpt: GPT, task: str, x: Int[Tensor, "rows L"], y: Int[Tensor, "rows L"], length: int
) -> Float[Tensor, ""]:
    """Mean −ln p of the last SCORED answers when only the last `length` tokens are there."""
    x, y = x[:, -length:], y[:, -length:]
    if task == "recall":
        y = y.masked_fill(torch.arange(length) < BACK, -100)
    scored = [
        F.cross_entropy(gpt(rows)[:, -SCORED:].flatten(0, 1), answers.flatten(), reduction="sum")
        for rows, answers in zip(x.split(16), y[:, -SCORED:].split(16), strict=True)
    ]
    return torch.stack(scored).sum() / (y[:, -SCORED:] >= 0).sum()


def runs() -> list[Run]:
    """Both tasks, every encoding, every seed; and what is taken away."""
    wanted = [(t, e, seed) for seed in SEEDS for t in STEPS for e in ENCODINGS]
    wanted += [(t, e, seed) for seed in SEEDS for t in STEPS for e in EXTRA[t]]
    return [
        Run(f"{task} {name}", {"task": task, "encoding": name, "steps": STEPS[task]}, seed)
        for task, name, seed in wanted
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Loss at each length; null where a learned table has no row left."""
    task, encoding = config["task"], config["encoding"]
    gpt = trained(task, encoding, seed, config["steps"])
    x, y = examined(task)
    losses: list[float | None] = []
    for length in LENGTHS:
        beyond = encoding == "learned" and length > TRAIN_LENGTH
        losses.append(None if beyond else round(nats(gpt, task, x, y, length).item(), 4))
    return {"losses": losses, "threads": torch.get_num_threads()}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"tasks": {task: {encoding: [[loss at each length] of each seed]}}, "extra": the same, …}."""
    tasks: dict[str, dict[str, list[Any]]] = {task: {} for task in STEPS}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config = x["run"]["config"]
        tasks[config["task"]].setdefault(config["encoding"], []).append(x["result"]["losses"])
    return {
        "title": "Trained on 64 tokens, asked with up to 512",
        "lengths": list(LENGTHS),
        "train_length": TRAIN_LENGTH,
        "encodings": list(ENCODINGS),
        "unit": {"text": "nats per character", "recall": "nats per recalled symbol"},
        "tasks": {task: {e: tasks[task][e] for e in ENCODINGS} for task in tasks},
        "extra": {task: {e: tasks[task][e] for e in EXTRA[task]} for task in tasks},
        "settings": {
            **{"layers": LAYERS, "heads": HEADS, "width": WIDTH, "batch": BATCH, "rate": RATE},
            **{"steps": STEPS, "scored": SCORED, "rows": ROWS, "symbols": SYMBOLS, "back": BACK},
            **{"shaw_k": SHAW_K, "t5_buckets": T5_BUCKETS, "t5_far": T5_FAR},
            "t5_scale": T5_SCALE,
            "threads": done[0]["result"]["threads"],
        },
    }


if __name__ == "__main__":
    sys.exit(main(["extrapolation"]))
