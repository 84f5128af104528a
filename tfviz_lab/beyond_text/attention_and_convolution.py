"""Which peaks of a noisy signal are like the first? Attention, a convolution, or both.

    python -m tfviz_lab attention_and_convolution    → results/attention_and_convolution.json

A signal has LENGTH samples: a first peak, OTHERS more at random places at least GAP apart, each
narrow or wide, and noise. A model reads all samples and says of each whether it lies in the middle
of a later peak of the first one's kind. To tell a narrow peak from a wide one takes the samples
near it; to know which kind is wanted takes the first peak, which may be far.

All models are one block of the Conformer, with feed-forward layers so wide that all have nearly the
same number of parameters: attention and then convolution; two attentions; two convolutions; the
convolution first; full steps in place of half ones; kernels of other sizes.

F1      of the samples in the middle of wanted peaks, over TESTED new signals, every EVERY steps
near    the share of later peaks, at most FAR after the first, of whose middle sample it is rightly
        said whether it is wanted; a guess is right in half of them
far     the same, further than FAR after the first
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from tfviz.beyond_text.conformer_block import conformer
from tfviz.models.blocks import pre_norm
from tfviz.training import seeded
from tfviz.training import train as fit
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, EVERY = (0, 1, 2), 700, 100
LENGTH, OTHERS, GAP, FIRST = 48, 2, 12, 6
NARROW, WIDE, NOISE = 1.2, 3.0, 0.25  # standard deviations of the peaks, and of the noise
WIDTH, HEADS, KERNEL, BATCH, RATE, TESTED = 32, 2, 15, 16, 5e-3, 500
FAR = 20
PARAMETERS = 18_000

TWO_ATTENTIONS = ("feed", "attend", "attend", "feed")
TWO_CONVOLUTIONS = ("feed", "convolve", "convolve", "feed")
BEFORE = ("feed", "convolve", "attend", "feed")
VARIANTS: dict[str, dict[str, Any]] = {
    "Conformer": {},
    "attention only": {"parts": TWO_ATTENTIONS},
    "convolution only": {"parts": TWO_CONVOLUTIONS},
    "convolution first": {"parts": BEFORE},
    "full steps": {"step": pre_norm},
    "kernel 3": {"kernel": 3},
    "kernel 31": {"kernel": 31},
}


def signals(
    b: int, rng: Generator
) -> tuple[Float[Tensor, "b L"], Bool[Tensor, "b L"], Tensor, Bool[Tensor, "b peaks"]]:
    """(signals, which samples are wanted, the places of the peaks, which of them are wide)."""
    slack = LENGTH - FIRST - GAP * OTHERS - GAP // 2
    gaps = torch.rand(b, OTHERS, generator=rng).sort(-1).values * slack
    later = FIRST + GAP * torch.arange(1, OTHERS + 1) + gaps.long()
    places = torch.cat([torch.full((b, 1), FIRST), later], 1)
    wide = torch.rand(b, OTHERS + 1, generator=rng) < 0.5
    width = torch.where(wide, WIDE, NARROW)[..., None]
    away = torch.arange(LENGTH) - places[..., None]
    x = torch.exp(-((away / width) ** 2) / 2).sum(1)
    x = x + NOISE * torch.randn(b, LENGTH, generator=rng)
    like_first = wide == wide[:, :1]
    wanted = ((away.abs() <= 1) & like_first[..., None])[:, 1:].any(1)
    return x, wanted, places, wide


class Finder(nn.Module):
    """One block; a logit for each sample."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.sample = nn.Linear(1, WIDTH)
        self.block = conformer(1, WIDTH, HEADS, **{"kernel": KERNEL, **options})
        self.logit = nn.Linear(WIDTH, 1)

    def forward(self, x: Float[Tensor, "b L"]) -> Float[Tensor, "b L"]:
        return self.logit(self.block(self.sample(x[..., None])))[..., 0]


def size(model: nn.Module) -> int:
    return sum(x.numel() for x in model.parameters())


def finder(variant: str) -> Finder:
    """With as wide feed-forward layers as come nearest to PARAMETERS."""
    one, two = (size(Finder(**VARIANTS[variant], d_ff=n)) for n in (1, 2))
    return Finder(**VARIANTS[variant], d_ff=1 + round((PARAMETERS - one) / (two - one)))


@torch.no_grad()
def score(model: Finder, seed: int) -> dict[str, Any]:
    """F1 over samples; and the share of peaks told right near the first one, and far from it."""
    x, wanted, places, wide = signals(TESTED, Generator().manual_seed(1000 + seed))
    training = model.training
    said = model.eval()(x) > 0
    model.train(training)
    right = said.gather(1, places[:, 1:]) == (wide[:, 1:] == wide[:, :1])
    far = places[:, 1:] - places[:, :1] > FAR
    both = (said & wanted).sum().item()
    return {
        "F1": round(2 * both / (said.sum() + wanted.sum()).item(), 4),
        "near": round(right[~far].float().mean().item(), 4),
        "far": round(right[far].float().mean().item(), 4),
    }


def trained(variant: str, seed: int, steps: int) -> dict[str, Any]:
    model, scores = seeded(seed, lambda: finder(variant)), list[dict[str, Any]]()

    def loss(model: Finder, rng: Generator, step: int) -> Tensor:
        if step and step % EVERY == 0:
            scores.append(score(model, seed))
        x, wanted, *_ = signals(BATCH, rng)
        return F.binary_cross_entropy_with_logits(model(x), wanted.float())

    fit(model, loss, steps, lr=RATE, seed=seed, progress=False)
    scores.append(score(model, seed))
    curve = [found["F1"] for found in scores]
    return {"F1": curve, **{n: scores[-1][n] for n in ("near", "far")}, "parameters": size(model)}


def runs() -> list[Run]:
    return [Run(name, {"variant": name, "steps": STEPS}, n) for name in VARIANTS for n in SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    return trained(config["variant"], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant a list over seeds: of F1 after each of "steps", of near and of far."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    table = {
        what: {name: [found[name, seed][what] for seed in SEEDS] for name in VARIANTS}
        for what in ("F1", "near", "far")
    }
    counts = {name: found[name, SEEDS[0]]["parameters"] for name in VARIANTS}
    return {"steps": list(range(EVERY, STEPS + 1, EVERY)), **table, "parameters": counts}
