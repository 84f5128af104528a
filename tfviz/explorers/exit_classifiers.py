"""Where an oracle lets each letter leave, and where three classifiers think it may."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from tfviz import stored
from tfviz.adaptive.depth_classifiers import sequence_oracle, token_oracle
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

SHOWS = {
    "oracle": "score of the oracle",
    "sequence": "q: one exit for the text",
    "token": "q: each letter, at block 1",
    "geometric": "q: stop or go on",
}
PRICES = [round(0.01 * n, 2) for n in range(31)]


@cache
def found() -> dict[str, Any]:
    """Of the stored experiment: LL and q of the letters behind the prompt, seed 0."""
    result = stored.load("exits")
    one, text, prompt = result["early"][0], result["depths"]["aligned"][0], result["prompt"]
    answers = text["text"][prompt + 1 :]
    right = [
        [int(a == b) for a, b in zip(row[prompt:], answers, strict=True)] for row in text["said"]
    ]
    scores = {"LL": one["LL"], "C": right}
    return {"scores": scores, "q": one["q"], "text": answers, "price": result["prices"][1]}


def taken(kind: str) -> Tensor:
    """The exit that a classifier takes: the likeliest; with stop or go on the first of χ > ½."""
    q = torch.tensor(found()["q"][kind], dtype=torch.float64)
    if kind != "geometric":
        return q.argmax(0) + 1
    climbing = 1 - F.pad(q, (0, 0, 1, 0)).cumsum(0)[:-1]
    stop = (2 * q > climbing).long()
    stop[-1] = 1  # at the top in any case
    return stop.argmax(0) + 1


class ExitClassifiers(Explorer):
    """48 letters, four exits: what an oracle decides, and what classifiers have learned of it.

    price   λ of a block;  sigma   how wide scores are smoothed;  score   "LL" or "C" (right or not)
    shows   "oracle", "sequence", "token" or "geometric";  token   which letter is framed, 0 to 47

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "exit_classifiers"
    label: ClassVar[str] = "Exits: the oracle and three classifiers"
    min_height: ClassVar[str] = "51.5rem"
    min_height_narrow: ClassVar[str] = "101rem"

    token = knob(4, low=0, high=47, label="letter", letter="t")
    price = knob(0.0, of=PRICES, label="price of a block", letter="λ")
    sigma = knob(0.0, of=[0.0, 1.0, 4.0, 16.0, 100.0, 10000.0], label="smoothing", letter="σ")
    score = knob("LL", of={"LL": "log likelihood", "C": "right or wrong"}, label="score")
    shows = knob("oracle", of=SHOWS, label="colours show")
    asks = (
        "Raise the price λ: which letters still go high up? Then look at what classifiers learned."
    )

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {**found(), "prices": PRICES}

    def numbers(self) -> dict[str, Any]:
        """The oracle's exit of each letter, their mean at each price, the one exit for all; the
        shown classifier's exits (0: none is shown), and how many are the oracle's (−1: none is
        shown, or the score is not the one from which it learned)."""
        scores = torch.tensor(found()["scores"][self.score], dtype=torch.float64)
        mine = token_oracle(scores, self.price, self.sigma)
        theirs = taken(self.shows) if self.shows != "oracle" else torch.zeros_like(mine)
        hit = int((theirs == mine).sum()) if theirs.any() and self.score == "LL" else -1
        means = [token_oracle(scores, p, self.sigma).double().mean().item() for p in PRICES]
        whole = sequence_oracle(scores, self.price * scores.shape[1]).item()
        return {
            "exits": mine.tolist(),
            "means": means,
            "whole": whole,
            "taken": theirs.tolist(),
            "hit": hit,
        }
