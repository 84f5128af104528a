"""Ways to choose a token, on next-token distributions that a small trained model left behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz import _arguments, experiments
from tfviz.basics.decoding_strategies import (
    Hypothesis,
    beam_search,
    nucleus,
    temperature,
    top_k,
)
from tfviz.experiments.decoding import stored_next
from tfviz.explorers.base import Explorer

WIDEST, LONGEST, MOST_ALPHA = 6, 10, 2.0


class Decoding(Explorer):
    """Two views of stored distributions.

    view="token"   one step: temperature `tau` first, then `top_k` (0: off), then nucleus `p`
                   (1: off), after the beginning number `which`
    view="beam"    a search: `width`, length penalty `alpha`, after `steps` tokens
    stored         beginnings as `experiments.load("decoding")` has them ("contexts" or "trees"),
                   which are the default

    Raises ValueError for numbers out of range.
    """

    module: ClassVar[str] = "decoding"
    label: ClassVar[str] = "Decoding: from a model's probabilities to text"
    narrow: ClassVar[int] = 640

    view = t.Unicode("token").tag(sync=True)
    stored = t.List().tag(sync=True)
    which = t.Int(0).tag(sync=True)
    tau = t.Float(1.0).tag(sync=True)
    k = t.Int(0).tag(sync=True)
    p = t.Float(1.0).tag(sync=True)
    width = t.Int(2).tag(sync=True)
    alpha = t.Float(0.0).tag(sync=True)
    steps = t.Int(LONGEST).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        view: str = "token",
        *,
        which: int = 0,
        tau: float = 1.0,
        k: int = 0,
        p: float = 1.0,
        width: int = 2,
        alpha: float = 0.0,
        steps: int = LONGEST,
        stored: Sequence[dict[str, Any]] | None = None,
        prompt: str = "",
    ) -> None:
        kinds = {"token": "contexts", "beam": "trees"}
        if view not in kinds:
            raise ValueError(f"view = {view!r}; choose 'token' or 'beam'")
        if stored is None:
            stored = experiments.load("decoding")[kinds[view]]
        _arguments.integer("which", which, 0, len(stored) - 1)
        _arguments.integer("k", k, 0)
        _arguments.integer("width", width, 1, WIDEST)
        _arguments.integer("steps", steps, 1, LONGEST)
        super().__init__(
            view=view, stored=list(stored), which=which, k=k, width=width, steps=steps,
            tau=_arguments.real("tau", tau, 0.0, 3.0), p=_arguments.real("p", p, 0.0, 1.0),
            alpha=_arguments.real("alpha", alpha, 0.0, MOST_ALPHA),
            prompt=prompt or {
                "token": "Predict: with p = 0.8, which beginning keeps most tokens? And what does "
                "k = 10 take from each?",
                "beam": "Predict: does a wider beam end with the tokens that greedy began with?",
            }[view],
        )  # fmt: skip

    def heights(self) -> dict[int, str]:
        wide, narrow = ("39.5rem", "84.5rem") if self.view == "token" else ("59rem", "89rem")
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

    @property
    def entropy(self) -> float:
        """Of `probabilities`, in nats."""
        return -sum(x * math.log(x) for x in self.probabilities if x)

    def __repr__(self) -> str:
        if self.view == "token":
            return f"Decoding(which={self.which}, tau={self.tau}, k={self.k}, p={self.p})"
        return (
            f"Decoding('beam', which={self.which}, width={self.width}, alpha={self.alpha}, "
            f"steps={self.steps})"
        )
