"""The scene of chapter 6: the next word's probabilities as a landscape that temperature melts."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from tfviz import stored
from tfviz.basics.decoding_strategies import nucleus, temperature
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

BEGINNING = "The value of"
SHOWN, HELD, HEAD = 15, 0.9, 32


def _next() -> Mapping[str, Any]:
    """What the stored model says after the beginning, the likeliest token first."""
    return next(x for x in stored.load("decoding")["contexts"] if x["prompt"] == BEGINNING)


def _log_p() -> list[list[int]]:
    """[hundredths of ln p, how many tokens have it]; behind the likeliest HEAD in quarters of 1."""
    every = [int(x) for x in _next()["log_p"].split()]
    tail = Counter(25 * round(x / 25) for x in every[HEAD:])
    return [[x, 1] for x in every[:HEAD]] + [[x, tail[x]] for x in sorted(tail, reverse=True)]


def _words() -> dict[str, int]:
    """The likeliest tokens that are words, with their ranks among all tokens, from 0."""
    names = [name.strip() for name in _next()["names"]]
    ranks = [rank for rank, name in enumerate(names) if name.isalpha()]
    return {names[rank]: rank for rank in ranks[:SHOWN]}


class WordLandscape(Explorer):
    """The next token after “The value of”, as a small model that was trained on Python's help texts
    predicts it; the nucleus keeps the likeliest tokens that hold 90 %. Tokens that are no words
    count, and are not drawn."""

    label = (
        "The probabilities of the next word as a landscape; the temperature is moved at its peak"
    )
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(beginning=BEGINNING, words=_words, log_p=_log_p, held=HELD)

    tau = knob(0.8, low=0.1, high=2.5, step=0.05, label="temperature")

    def numbers(self) -> Numbers:
        """The probabilities of the words that are drawn, and how many tokens the nucleus keeps."""
        values, counts = zip(*_log_p(), strict=True)
        logits = exact(values).repeat_interleave(torch.tensor(counts)) / 100
        hot = temperature(logits, self.tau)
        kept = nucleus(hot, HELD).isfinite().sum()
        return {"p": hot.softmax(-1)[list(_words().values())], "kept": kept}
