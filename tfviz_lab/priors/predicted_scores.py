"""What a convolution over scores must not read: the next query, in a model that writes.

    python -m tfviz_lab predicted_scores    → results/predicted_scores.json

The small GPT of the protocol, with rotary positions, reads 64 characters of English text at a time.

    full attention          as it is
    kernel, no future       predictive attention; the kernel sees neither later rows nor later keys
    ordinary convolution    the kernel sees all nine places, as in an encoder

scores    nats per character of held-out text, each from what stands before it in a window, in
          two ways: "at once", when the model has the whole window, as in training, and "cut", when
          it has nothing after the character that it reads, as in writing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfviz.cores import Dense, Where
from tfviz.models.gpt import GPT
from tfviz.priors.predictive_attention import SIDE, Predictive
from tfviz.training import next_token, seeded, train
from tfviz_lab import trivial
from tfviz_lab.compare import BATCH, TRAIN_LENGTH
from tfviz_lab.protocol import SEEDS, letters, training_text
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
STEPS, RATE, ALPHA = 300, 1e-2, 0.5
PLACES, EVERY = (49, 54, 59), 3
"""In one window of three, after these places a character is asked for, with more text after it."""


class Unmasked(Dense):
    """The convolution as in an encoder: nothing is hidden from it."""

    def __init__(self, h: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(h, h, SIDE, padding=1, bias=False)

    def scores(self, s: Tensor, where: Where) -> Tensor:
        if where.below is not None:
            s = ALPHA * s + (1 - ALPHA) * self.conv(where.below)
        where.hand_up(s)
        return s


VARIANTS: dict[str, Callable[..., Any]] = {
    "full attention": lambda h: Dense(),
    "kernel, no future": lambda h: Predictive(h, ALPHA),
    "ordinary convolution": lambda h: Unmasked(h),
}


def trained(name: str, seed: int, steps: int) -> GPT:
    model = seeded(seed, lambda: letters(core=VARIANTS[name]))
    loss = next_token(training_text(), BATCH, TRAIN_LENGTH)
    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    return model


@torch.no_grad()
def nats(model: nn.Module) -> dict[str, float]:
    """At once and cut, of the same characters, from the whole of the held-out text."""
    rows, at_once, cut = trivial.held_out_rows()[::EVERY, :-1], list[Tensor](), list[Tensor]()
    for some in rows.split(64):
        out = model(some)
        for n in PLACES:
            at_once.append(F.cross_entropy(out[:, n], some[:, n + 1], reduction="none"))
            alone = model(some[:, : n + 1])[:, -1]
            cut.append(F.cross_entropy(alone, some[:, n + 1], reduction="none"))
    found = {"at once": at_once, "cut": cut}
    return {kind: round(torch.cat(x).double().mean().item(), 4) for kind, x in found.items()}


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return nats(trained(config["variant"], seed, config["steps"]).eval())


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Scores by variant, one for each seed, and what counting reaches on the same text."""
    of = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "seeds": list(SEEDS),
        "scores": {
            kind: {name: [of[name, seed][kind] for seed in SEEDS] for name in VARIANTS}
            for kind in ("at once", "cut")
        },
        "trivial": trivial.ngrams(),
    }
