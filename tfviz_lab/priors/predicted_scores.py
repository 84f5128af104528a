"""Does it help to guess a layer's scores from those below, and what do the kernels learn?

    python -m tfviz_lab predicted_scores    → results/predicted_scores.json

A GPT of four layers reads 32 characters of English text at a time. The score is nats per character
on held-out text, in two ways: of whole rows at once, as in training, and of rows that are cut
before the character that is asked for, as when a model writes.

plain        attention as it is
residual     α S_n + (1 − α) Ŝ_(n−1): the kernel that only copies, and does not learn
predictive   the kernel learns; it sees neither later rows nor later keys
unmasked     the kernel learns, and sees all nine places, as in an encoder
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.cores import Dense, Where
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.priors.predictive_attention import SIDE, Predictive
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS = (0, 1, 2), 150
LENGTH, WIDTH, HEADS, LAYERS, BATCH, ROWS, RATE = 32, 32, 4, 4, 8, 128, 5e-3
ALPHA = 0.5


class Copied(Predictive):
    """The kernel that copies each head's score, and stays as it is."""

    def __init__(self, h: int) -> None:
        super().__init__(h, ALPHA)
        self.kernel.data.zero_()
        self.kernel.data[range(h), range(h), 1, 1] = 1
        self.kernel.requires_grad_(False)


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
    "plain": Dense,
    "residual": Copied,
    "predictive": lambda h: Predictive(h, ALPHA),
    "unmasked": Unmasked,
}


def trained(name: str, seed: int, steps: int) -> GPT:
    vocab = len(data.characters()[1])
    model = seeded(
        seed,
        lambda: GPT(
            vocab,
            WIDTH,
            HEADS,
            LAYERS,
            positions=Learned(LENGTH, WIDTH),
            core=VARIANTS[name],
        ),
    )
    loss = next_token(data.split(data.characters()[0])[0], BATCH, LENGTH)
    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    return model


@torch.no_grad()
def nats(model: nn.Module) -> dict[str, float]:
    """Nats of the character in the middle of a row: when the model has the whole row, as in
    training, and when it has nothing after the character that it reads."""
    ids = data.split(data.characters()[0])[1]
    x, y = data.windows(ids, ROWS, LENGTH, Generator().manual_seed(1))
    model.eval()
    places = range(LENGTH // 2, LENGTH - 1, 3)
    at_once = model(x)
    cut = torch.stack([model(x[:, : n + 1])[:, -1] for n in places], 1)
    answers = y[:, places]
    return {
        "at once": round(
            F.cross_entropy(at_once[:, places].flatten(0, 1), answers.flatten()).item(), 4
        ),
        "cut": round(F.cross_entropy(cut.flatten(0, 1), answers.flatten()).item(), 4),
    }


def kernels(model: Any) -> list[Any]:
    """Of each layer above the first: (heads out, heads in, the row above and its own, 3)."""
    blocks = list(model.stack.blocks)[1:]
    rounded = [block.attend.core.kernel[:, :, :2].detach() * 1000 for block in blocks]
    return [
        [[[[x / 1000 for x in row] for row in k] for k in out] for out in one]
        for one in (r.round().tolist() for r in rounded)
    ]


@torch.no_grad()
def shown(model: Any) -> dict[str, Any]:
    """Own scores and those below, as used, of one head of layer 2, for the first characters."""
    ids, alphabet = data.characters()
    text = ids[:24]
    seen: list[Tensor] = []
    hooks = [
        block.attend.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        for block in list(model.stack.blocks)[:2]
    ]
    model(text[None])
    for hook in hooks:
        hook.remove()
    scores = []
    for X, block in zip(seen, list(model.stack.blocks)[:2], strict=True):
        Q, K, _ = block.attend.project(X, None)
        scores.append((Q @ K.mT / Q.shape[-1] ** 0.5)[0])
    return {
        "text": alphabet.decode(text),
        "below": [[[round(x, 3) for x in row] for row in head] for head in scores[0].tolist()],
        "own": [[[round(x, 3) for x in row] for row in head] for head in scores[1].tolist()],
    }


def runs() -> list[Run]:
    return [
        Run(name, {"variant": name, "steps": STEPS}, seed) for name in VARIANTS for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    name = config["variant"]
    model = trained(name, seed, config["steps"])
    found: dict[str, Any] = nats(model)
    if name == "predictive":
        found["kernels"] = kernels(model)
        if seed == 0:
            found["shown"] = shown(model)
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Scores by variant, one for each seed, and the kernels of the predictive ones."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        rows.setdefault(x["run"]["config"]["variant"], []).append(x["result"])
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "scores": {
            kind: {name: [x[kind] for x in rows[name]] for name in VARIANTS if name in rows}
            for kind in ("at once", "cut")
        },
        "kernels": [x["kernels"] for x in rows["predictive"]],
        "shown": rows["predictive"][0]["shown"],
    }
