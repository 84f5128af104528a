"""A question about what is seen or heard: does one sequence answer what separate encoders cannot?

    python -m tfviz_lab see_and_hear    → results/see_and_hear.json

The text asks whether the eye's or the ear's number is more than 4, or less than 5. The image is a
digit, and the sound has 0 to 9 beeps. Any one of the three says nothing about the answer, which is
read from the question mark. The two questions about an eye or an ear turn the answer round.

joint     one sequence of all three
masked    a block mask, which is an encoder for each kind
no sound  one sequence of text and image: half of the questions cannot be answered
unmarked  one sequence of all three without the vectors of the kinds
reader    the model that an explorer runs, its weights stored. Half of its batches are of texts
          alone, so that it has also learned how sure to be where it sees nothing but the question
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from tfviz.beyond_text.tokenise_anything import same_kind
from tfviz.stored.digit_vit import DIGITS
from tfviz.stored.see_and_hear import (
    ALPHABET,
    FRAME,
    FRAMES,
    LENGTHS,
    QUESTIONS,
    SeeAndHear,
    pack,
    unpack,
)
from tfviz.training import seeded, train
from tfviz_lab.beyond_text.vit_digits import pictures
from tfviz_lab.compare import classes, images
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn"]
STEPS, BATCH, RATE, SEEDS = 1200, 64, 4e-3, (0, 1, 2)
READER_STEPS, READER_SEED = 2400, 0
PERIOD, NOISE = 4, 0.1  # of a beep, in samples; and the noise's standard deviation

VARIANTS: dict[str, dict[str, Any]] = {
    "joint": {},
    "masked": {"pattern": same_kind(LENGTHS)},
    "no sound": {},
    "unmarked": {"marked": False},
}
"""What the model of each variant is told; "no sound" is given less."""


def sounds(beeps: Int[Tensor, "b"], rng: Generator) -> Float[Tensor, "b 80"]:
    """So many frames of each sound, drawn at random, hold a sine, and all hold some noise."""
    b = len(beeps)
    rank = torch.rand(b, FRAMES, generator=rng).argsort(-1).argsort(-1)
    loud = (rank < beeps[:, None]).float() * (0.7 + 0.6 * torch.rand(b, FRAMES, generator=rng))
    phase = torch.rand(b, FRAMES, 1, generator=rng)
    beep = (2 * torch.pi * (torch.arange(FRAME) / PERIOD + phase)).sin()
    waves = (loud[..., None] * beep).flatten(1)
    return waves + NOISE * torch.randn(waves.shape, generator=rng)


def wanted(
    question: Int[Tensor, "b"], digit: Int[Tensor, "b"], beeps: Int[Tensor, "b"]
) -> Bool[Tensor, "b"]:
    """Whether the answer is yes."""
    eye, more = question < 2, question % 2 == 0
    return (torch.where(eye, digit, beeps) > 4) == more


ASKED = torch.stack([ALPHABET.encode(question) for question in QUESTIONS])


def batch(b: int, rng: Generator) -> tuple[dict[str, Tensor], Bool[Tensor, "b"]]:
    """Training images with questions and sounds, and the answers."""
    drawn = torch.randint(len(classes()[0]), (b,), generator=rng)
    question = torch.randint(len(QUESTIONS), (b,), generator=rng)
    beeps = torch.randint(DIGITS, (b,), generator=rng)
    given = {
        "text": ASKED[question],
        "image": pictures(images()[0][drawn]),
        "sound": sounds(beeps, rng),
    }
    return given, wanted(question, classes()[0][drawn], beeps)


def tested() -> tuple[dict[str, Tensor], Int[Tensor, "n"], Bool[Tensor, "n"]]:
    """Every test image with a sound of its own and each question: what is given, the number of the
    question, the answer."""
    pixels, digits = images()[1], classes()[1]
    rng = Generator().manual_seed(1)
    beeps = torch.randint(DIGITS, (len(digits),), generator=rng)
    n = len(QUESTIONS)
    question = torch.arange(n).repeat(len(digits))
    given = {
        "text": ASKED[question],
        "image": pictures(pixels).repeat_interleave(n, 0),
        "sound": sounds(beeps, rng).repeat_interleave(n, 0),
    }
    answers = wanted(question, digits.repeat_interleave(n), beeps.repeat_interleave(n))
    return given, question, answers


def without(given: dict[str, Tensor], *kinds: str) -> dict[str, Tensor]:
    return {name: part for name, part in given.items() if name not in kinds}


@torch.no_grad()
def right(model: nn.Module, *hidden: str) -> dict[str, float]:
    """The share of the test's questions that are answered correctly: all, and by what they ask."""
    given, question, answers = tested()
    correct = ((model(without(given, *hidden)) > 0) == answers).float()
    eye = question < 2
    parts = {"all": correct, "eye": correct[eye], "ear": correct[~eye]}
    return {name: round(x.mean().item(), 4) for name, x in parts.items()}


def of_variant(name: str, seed: int, steps: int) -> dict[str, Any]:
    """A model trained on the task, and how it does on images and sounds that it has not met."""
    model = seeded(seed, lambda: SeeAndHear(**VARIANTS[name]))
    hidden = ("sound",) if name == "no sound" else ()

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        given, answers = batch(BATCH, rng)
        logits = model(without(given, *hidden))
        return F.binary_cross_entropy_with_logits(logits, answers.float())

    losses = train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    last = torch.tensor(losses[-50:]).mean().item() if losses else None
    return {"right": right(model, *hidden), "loss": last and round(last, 4)}


def of_reader(seed: int, steps: int) -> dict[str, Any]:
    """The stored model: its weights, and how it does with everything and with the text alone."""
    model = seeded(seed, SeeAndHear)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        given, answers = batch(BATCH, rng)
        logits = model(given if step % 2 else without(given, "image", "sound"))
        return F.binary_cross_entropy_with_logits(logits, answers.float())

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    weights = pack(model)
    model = unpack(weights)  # from here on the model that is stored, not the one before rounding
    return {"right": right(model), "weights": weights}


def runs() -> list[Run]:
    variants = [
        Run(name, {"task": "variant", "variant": name, "steps": STEPS}, seed)
        for name in VARIANTS
        for seed in SEEDS
    ]
    return [Run("reader", {"task": "reader", "steps": READER_STEPS}, READER_SEED), *variants]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "reader":
        return of_reader(seed, config["steps"])
    return of_variant(config["variant"], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, for each seed the shares answered correctly; the reader; ten sounds."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    waves = sounds(torch.arange(DIGITS), Generator().manual_seed(2))
    return {
        "title": "A question about a digit that is seen, or beeps that are heard",
        "variants": {
            name: {
                asked: [found[name, seed]["right"][asked] for seed in SEEDS]
                for asked in ("all", "eye", "ear")
            }
            for name in VARIANTS
        },
        "losses": {name: [found[name, seed]["loss"] for seed in SEEDS] for name in VARIANTS},
        "reader": found["reader", READER_SEED],
        "heard": [[round(x, 3) for x in wave] for wave in waves.tolist()],
        "settings": {"batch": BATCH, "rate": RATE, "questions": 4 * len(classes()[1])},
    }
