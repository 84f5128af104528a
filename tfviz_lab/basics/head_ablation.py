"""What several heads are good for, and what heads of a trained model do.

    python -m tfviz_lab head_ablation        trains all again and rewrites the stored result

Two lookups: from a row of random symbols say, at every place, which stood one place and which five
places before. One layer of attention with 1, 2, 4, 8 or 16 heads of equal total width, read out by
one matrix or with an MLP between.

A small GPT: two layers of four heads, trained on text and on made-up words that repeat themselves.
Its weights are stored; `trained()` gives the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.basics.multi_head_attention import mean_distance, weight_at, without_heads
from tfviz.basics.scaled_dot_product_attention import row_entropy
from tfviz.models.blocks import Embedding, FeedForward, MultiHeadAttention
from tfviz.models.use import attention_weights
from tfviz.patterns import causal
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.stored.letter_gpt import (
    ALPHABET,
    GPT_HEADS,
    GPT_LAYERS,
    GPT_LENGTH,
    GPT_WIDTH,
    gpt,
    pack,
    unpack,
)
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

# --- two lookups ---------------------------------------------------------------------------------

SYMBOLS, LENGTH, WIDTH, BACK = 16, 24, 32, (1, 5)
BATCH, RATE = 32, 1e-2
HEADS, SEEDS = (1, 2, 4, 8, 16), (0, 1, 2)
READOUTS = {
    "one matrix": {"mlp": False, "steps": 400},
    "one matrix, four times as long": {"mlp": False, "steps": 1600},
    "with an MLP": {"mlp": True, "steps": 400},
}


class TwoLookups(nn.Module):
    """Tokens (b, L) → logits (b, L, 2, symbols): which symbol stood 1 back, which 5 back?"""

    def __init__(self, h: int, mlp: bool = False) -> None:
        super().__init__()
        self.embed = Embedding(SYMBOLS, WIDTH, Sinusoidal(WIDTH))
        nn.init.normal_(self.embed.weight)
        self.attend = MultiHeadAttention(WIDTH, h, pattern=causal())
        self.feed = FeedForward(WIDTH, 4 * WIDTH, nn.GELU()) if mlp else None
        self.read = nn.Linear(WIDTH, len(BACK) * SYMBOLS)

    def forward(self, t: Int[Tensor, "b L"]) -> Float[Tensor, "b L 2 symbols"]:
        X = self.attend(self.embed(t))
        X = X if self.feed is None else X + self.feed(X)
        return self.read(X).unflatten(-1, (len(BACK), SYMBOLS))


def asked(b: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b n 2"]]:
    """(rows of symbols, the right answers at the places from 5 on)."""
    t = torch.randint(SYMBOLS, (b, LENGTH), generator=rng)
    first = max(BACK)
    return t, torch.stack([t[:, first - back : LENGTH - back] for back in BACK], -1)


def lookup_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    t, y = asked(BATCH, rng)
    return F.cross_entropy(model(t)[:, max(BACK) :].flatten(0, 2), y.flatten())


def two_lookups(h: int, mlp: bool = False, steps: int = 400, seed: int = 0) -> TwoLookups:
    """A trained one."""
    model = seeded(seed, lambda: TwoLookups(h, mlp))
    train(model, lookup_loss, steps, lr=RATE, seed=seed, progress=False)
    return model


@torch.no_grad()
def answers(model: TwoLookups) -> dict[str, Any]:
    """Shares of right answers for each of the two, nats, and what every head looks at."""
    t, y = asked(512, torch.Generator().manual_seed(1000))
    logits = model(t)[:, max(BACK) :]
    (A,) = attention_weights(model, t).values()
    return {
        "right": (logits.argmax(-1) == y).float().mean((0, 1)).tolist(),
        "loss": F.cross_entropy(logits.flatten(0, 2), y.flatten()).item(),
        "weight": [
            [round(w, 4) for w in weight_at(A, back, max(BACK)).mean(0).tolist()] for back in BACK
        ],
    }


# --- a small GPT on text and repeats -------------------------------------------------------------

GPT_STEPS, GPT_BATCH, GPT_RATE = 1500, 32, 5e-3
GPT_SEEDS = (1, 0)  # the first is stored and shown: its heads divide the work more clearly
PERIODS = (4, 16)


@cache
def letters() -> tuple[Tensor, Tensor]:
    """(for training, held out): Python's help texts in 26 letters, one space for all the rest."""
    return data.split(ALPHABET.encode(re.sub("[^a-z]+", " ", data.text().lower())))


def repeats(
    b: int, rng: Generator, period: int | None = None
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"], Int[Tensor, "b 1"]]:
    """(x, y, periods): made-up words of different letters, each repeated to the end of its row."""
    low, high = PERIODS if period is None else (period, period)
    p = torch.randint(low, high + 1, (b, 1), generator=rng)
    words = torch.rand(b, len(ALPHABET), generator=rng).argsort(1)
    rows = words.gather(1, torch.arange(GPT_LENGTH + 1) % p)
    return rows[:, :-1], rows[:, 1:], p


def known(p: Int[Tensor, "b 1"]) -> Tensor:
    """Where the next letter has been seen: from the end of the first round on (b, L)."""
    return torch.arange(GPT_LENGTH) + 1 >= p


def nats(model: nn.Module, x: Tensor, y: Tensor) -> Float[Tensor, "b L"]:
    return F.cross_entropy(model(x).transpose(1, 2), y, reduction="none")


def gpt_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Half of the rows text, half repeats; what nobody can know is not asked."""
    x, y = data.windows(letters()[0], GPT_BATCH // 2, GPT_LENGTH, rng)
    u, v, p = repeats(GPT_BATCH // 2, rng)
    counts = torch.cat([torch.ones_like(x), known(p)]).float()
    return (nats(model, torch.cat([x, u]), torch.cat([y, v])) * counts).sum() / counts.sum()


@torch.no_grad()
def losses(model: nn.Module, rows: int = 128) -> dict[str, float]:
    """Nats per letter: on held-out text, and on repeats from their second round on."""
    rng = torch.Generator().manual_seed(1000)
    x, y = data.windows(letters()[1], rows, GPT_LENGTH, rng)
    u, v, p = repeats(rows, rng)
    return {
        "text": nats(model, x, y).mean().item(),
        "repeats": nats(model, u, v)[known(p)].mean().item(),
    }


@torch.no_grad()
def portrait(model: nn.Module) -> list[list[dict[str, float]]]:
    """Layer by layer and head by head, what it looks at.

    On held-out text: entropy of a row in nats, mean distance, weight on the token before and on
    the first of all. On repeats of period 12: weight on the token that came next last time.
    """
    rng = torch.Generator().manual_seed(1001)
    x, _ = data.windows(letters()[1], 128, GPT_LENGTH, rng)
    u, _, _ = repeats(128, rng, period=12)
    found = []
    text, again = (list(attention_weights(model, t).values()) for t in (x, u))
    for A, B in zip(text, again, strict=True):
        columns = {
            "entropy": row_entropy(A).mean((0, 2)),
            "distance": mean_distance(A).mean(0),
            "before": weight_at(A, 1).mean(0),
            "first": A[..., 0].mean((0, 2)),
            "next": weight_at(B, 11, 12).mean(0),
        }
        found.append([
            {name: round(values[n].item(), 4) for name, values in columns.items()}
            for n in range(GPT_HEADS)
        ])  # fmt: skip
    return found


def attentions(model: nn.Module) -> list[MultiHeadAttention]:
    """The attention of every layer."""
    return [m for m in model.modules() if isinstance(m, MultiHeadAttention)]


def without(model: nn.Module, gone: Sequence[tuple[int, int]]) -> dict[str, float]:
    """The losses without some heads (layer, head)."""
    if not gone:
        return losses(model)
    layer = gone[0][0]
    here, rest = [n for m, n in gone if m == layer], [x for x in gone if x[0] != layer]
    with without_heads(attentions(model)[layer], here):
        return without(model, rest)


def one_after_the_other(model: nn.Module, task: str) -> list[dict[str, Any]]:
    """Remove heads until none is left, always the one whose loss hurts `task` least."""
    left = [(m, n) for m in range(GPT_LAYERS) for n in range(GPT_HEADS)]
    gone: list[tuple[int, int]] = []
    path: list[dict[str, Any]] = [{"head": None, **losses(model)}]
    while left:
        tried = {head: without(model, [*gone, head]) for head in left}
        best = min(left, key=lambda head: tried[head][task])
        gone.append(best)
        left.remove(best)
        path.append({"head": list(best), **tried[best]})
    return path


# --- the runs ------------------------------------------------------------------------------------


def runs() -> list[Run]:
    found = [
        Run(f"{readout}, {h} heads", {"readout": readout, "heads": h, **options}, seed)
        for readout, options in READOUTS.items()
        for h in HEADS
        for seed in SEEDS
    ]
    return found + [Run("gpt", {"steps": GPT_STEPS}, seed) for seed in GPT_SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "heads" in config:
        return answers(two_lookups(config["heads"], config["mlp"], config["steps"], seed))
    model = seeded(seed, gpt)
    train(model, gpt_loss, config["steps"], lr=GPT_RATE, seed=seed, progress=False)
    weights = pack(model)
    model = unpack(weights)  # from here on the model that is stored, not the one before rounding
    found = {
        **losses(model),
        "heads": portrait(model),
        "without": [
            [without(model, [(m, n)]) for n in range(GPT_HEADS)] for m in range(GPT_LAYERS)
        ],
        "path": {task: one_after_the_other(model, task) for task in ("text", "repeats")},
    }
    return found | ({"weights": weights} if seed == GPT_SEEDS[0] else {})


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By readout: right[-1 or -5], loss and weights, a row for each seed over the heads."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

    def table(readout: str, pick: Any) -> list[list[Any]]:
        return [[pick(found[f"{readout}, {h} heads", seed]) for h in HEADS] for seed in SEEDS]

    others = [
        {key: value for key, value in found["gpt", seed].items() if key != "weights"}
        for seed in GPT_SEEDS[1:]
    ]
    return {
        "heads": list(HEADS),
        "back": list(BACK),
        "two_lookups": {
            readout: {
                "right": [table(readout, lambda r, n=n: r["right"][n]) for n in range(len(BACK))],
                "loss": table(readout, lambda r: r["loss"]),
                "weight": table(readout, lambda r: r["weight"]),
            }
            for readout in READOUTS
        },
        "gpt": {**found["gpt", GPT_SEEDS[0]], "other_seeds": others},
        "settings": {
            "two_lookups": {
                "symbols": SYMBOLS, "length": LENGTH, "width": WIDTH, "batch": BATCH, "rate": RATE
            },
            "gpt": {
                "width": GPT_WIDTH, "heads": GPT_HEADS, "layers": GPT_LAYERS, "length": GPT_LENGTH,
                "batch": GPT_BATCH, "rate": GPT_RATE, "steps": GPT_STEPS, "seeds": list(GPT_SEEDS),
            },
        },
    }  # fmt: skip
