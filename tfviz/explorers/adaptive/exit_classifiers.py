"""The exit that an oracle gives each letter, and what three classifiers learned of it."""

from functools import cache

import torch
from torch import Tensor

from tfviz import stored
from tfviz.adaptive.depth_classifiers import sequence_oracle, token_oracle
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

SHOWS = {
    "oracle": "the oracle's score − γ n",
    "sequence": "q: one exit for the text",
    "token": "q: multinomial, after block 1",
    "geometric": "q: geometric-like, stop or go on",
}
PRICES = [round(0.01 * n, 2) for n in range(31)]


@cache
def stored_exits() -> Numbers:
    """Of the stored experiment: LL and q of the letters after the prompt, seed 0."""
    result = stored.load("exits")
    one, text, prompt = result["early"][0], result["depths"]["aligned"][0], result["prompt"]
    answers = text["text"][prompt + 1 :]
    right = [[int(a == b) for a, b in zip(x[prompt:], answers, strict=True)] for x in text["said"]]
    scores = {"LL": one["LL"], "C": right}
    return {"scores": scores, "q": one["q"], "text": answers, "price": result["prices"][1]}


def taken(kind: str) -> Tensor:
    """The exit that a classifier takes: the likeliest; with stop or go on the first of χ > ½."""
    q = exact(stored_exits()["q"][kind])
    if kind != "geometric":
        return q.argmax(0) + 1
    there = q.flip(0).cumsum(0).flip(0)  # the chance that no earlier exit was taken
    return (2 * q > there).long().argmax(0) + 1  # at the top it always is


class ExitClassifiers(Explorer):
    """48 letters, four exits: what an oracle decides, and what classifiers have learned of it.

    token    the scores of this letter and of the one before it are shown
    """

    label = "Exits: the oracle and three classifiers"
    rem = 44, 38.5, 38.5, 42, 101.5
    data = handed(stored_exits, prices=PRICES)

    token = knob(22, low=0, high=47, label="letter", letter="t")
    price = knob(0.1, of=PRICES, label="price of a block", letter="γ")
    beta = knob(0.0, of=[0.0, 1.0, 4.0, 16.0, 100.0, 10000.0], label="smoothing", letter="β")
    score = knob("LL", of={"LL": "log likelihood", "C": "right or wrong"}, label="score")
    shows = knob("oracle", of=SHOWS, label="colours show")
    asks = "Raise γ: which letters still use deep exits? Then let the colours show a classifier."

    def numbers(self) -> Numbers:
        """The oracle's exit of each letter, their mean at each price, the one exit for all; the
        shown classifier's exits (0: none is shown), and how many are the oracle's (−1: none is
        shown, or the score is not the one from which it learned)."""
        scores = exact(stored_exits()["scores"][self.score])
        mine = token_oracle(scores, self.price, self.beta)
        theirs = taken(self.shows) if self.shows != "oracle" else torch.zeros_like(mine)
        hit = (theirs == mine).sum() if theirs.any() and self.score == "LL" else -1
        means = [token_oracle(scores, p, self.beta).double().mean() for p in PRICES]
        whole = sequence_oracle(scores, self.price * scores.shape[1])
        return {"exits": mine, "means": means, "whole": whole, "taken": theirs, "hit": hit}
