"""Ways to choose a token, on next-token distributions that a small trained model left behind."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz import stored as results
from tfviz.basics.decoding_strategies import (
    Hypothesis,
    beam_search,
    nucleus,
    temperature,
    top_k,
)
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import Knob, given, knob
from tfviz.stored.next_tokens import stored_next

WIDEST, LONGEST, MOST_ALPHA = 6, 10, 2.0
ROWS, TOLD = 14, 40  # how many tokens are drawn, and how many are compared
CUTS = (*range(21), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
KINDS = {"token": "contexts", "beam": "trees"}
PROMPTS = {
    "token": "Predict: with p = 0.8, which beginning keeps most tokens? And what does k = 10 take "
    "from each?",
    "beam": "Predict: does a wider beam end with the tokens that greedy began with?",
}


class Decoding(Explorer):
    """Two views of stored distributions.

    view="token"   one step: temperature `tau` first, then `top_k` (0: off), then nucleus `p`
                   (1: off), after the beginning number `which`
    view="beam"    a search: `width`, length penalty `alpha`, after `steps` tokens
    stored         beginnings as `tfviz.stored.load("decoding")` has them ("contexts" or "trees"),
                   which are the default

    Raises ValueError for numbers out of range.
    """

    module: ClassVar[str] = "decoding"
    label: ClassVar[str] = "Decoding: from a model's probabilities to text"
    narrow: ClassVar[int] = 640

    view = given(Knob("token", of=("token", "beam")))
    which = knob(0, low=0, high=lambda e: len(e.stored) - 1, label="beginning")
    tau = knob(1.0, low=0.0, high=3.0, step=0.05, label="temperature", letter="τ")
    k = knob(0, of=CUTS, between=True, low=0, high=100_000, label="top-k", letter="k")
    p = knob(1.0, low=0.0, high=1.0, step=0.01, label="nucleus", letter="p")
    width = knob(2, low=1, high=WIDEST, label="beam width", letter="B")
    alpha = knob(0.0, low=0.0, high=MOST_ALPHA, step=0.25, label="length penalty", letter="α")
    steps = knob(LONGEST, low=1, high=LONGEST, label="tokens written")
    stored = given(t.List(), optional=True)

    @t.default("prompt")
    def _first_prompt(self) -> str:
        return PROMPTS[self.view]

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        stored = said.pop("stored", None)
        if stored is None and said.get("view", "token") in KINDS:
            stored = results.load("decoding")[KINDS[said.get("view", "token")]]
        return said | {"stored": list(stored or ())}

    def heights(self) -> dict[int, str]:
        wide, narrow = ("46rem", "101rem") if self.view == "token" else ("68rem", "108rem")
        return {0: wide, self.narrow: narrow}

    @property
    def logits(self) -> Tensor:
        """log p in falling order, as stored."""
        numbers = [int(x) for x in self.stored[self.which]["log_p"].split()]
        return torch.tensor(numbers, dtype=torch.float64) / 100

    @property
    def probabilities(self) -> list[float]:
        """What each token is drawn with, in falling order, as the library computes it."""
        logits = temperature(self.logits, self.tau)
        if self.k:
            logits = top_k(logits, self.k)
        return nucleus(logits, self.p).softmax(-1).tolist()

    @property
    def beam(self) -> list[Hypothesis]:
        """What the search has found after `steps` tokens, the best first."""
        tree = self.stored[self.which]
        V = 1 + max(int(n) for n in tree["names"])
        look = stored_next(lambda tokens: tree["nodes"][" ".join(map(str, tokens))], 1, V)
        start, ends = torch.zeros(1, dtype=torch.long), tree["ends"]
        return beam_search(look, start, self.steps, self.width, end=ends, alpha=self.alpha)

    def numbers(self) -> dict[str, Any]:
        """Of the token's view what the likeliest are drawn with, how many can come after each
        beginning, what they held, the entropy in nats; of the beam's view what was found."""
        if self.view == "beam":
            found = self.beam
            return {
                **{"tokens": [list(y.tokens) for y in found], "log_p": [y.log_p for y in found]},
                "score": [y.score for y in found],
                "complete": [int(y.complete) for y in found],
            }
        after = self.probabilities
        held = temperature(self.logits, self.tau).softmax(-1)
        kept = sum(x > 0 for x in after)
        others = [Decoding(**{**self.state, "which": n}) for n in range(len(self.stored))]
        return {
            **{"after": after[:TOLD], "mass": float(held[:kept].sum())},
            "kept": [sum(x > 0 for x in one.probabilities) for one in others],
            "entropy": -sum(x * math.log(x) for x in after if x),
        }

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"rows": ROWS, "told": TOLD}
