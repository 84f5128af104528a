"""Ways to choose a token, on next-token distributions that a small trained model left behind."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz import _arguments
from tfviz import stored as results
from tfviz.basics.decoding_strategies import (
    Hypothesis,
    beam_search,
    nucleus,
    temperature,
    top_k,
)
from tfviz.explorers.base import Explorer
from tfviz.explorers.block_signals import uniforms
from tfviz.explorers.knobs import Knob, given, knob, own
from tfviz.stored import letter_page
from tfviz.stored.letter_gpt import ALPHABET
from tfviz.stored.next_tokens import stored_next

WIDEST, LONGEST, MOST_ALPHA = 6, 10, 2.0
MOST_BEGIN, MOST_WRITTEN = 20, 20  # letters; the model was trained on 40
ROWS, TOLD = 14, 40  # how many tokens are drawn, and how many are compared
CUTS = (*range(21), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
KINDS = {"token": "contexts", "beam": "trees"}
PROMPTS = {
    "token": "Predict: with p = 0.8, which beginning keeps most tokens? And what does k = 10 take "
    "from each?",
    "beam": "Predict: does a wider beam end with the tokens that greedy began with?",
    "write": "Type a beginning. Predict what is written at τ = 0; then press play, move τ, k, p.",
}


class Decoding(Explorer):
    """Two views of stored distributions, and a small model that writes.

    view="token"   one step: temperature `tau` first, then `top_k` (0: off), then nucleus `p`
                   (1: off), after the beginning number `which`
    view="beam"    a search: `width`, length penalty `alpha`, after `steps` tokens
    view="write"   the stored GPT of letters goes on from `begin`, `written` letters of them, each
                   drawn after the same three cuts, with the random numbers of `seed`
    stored         beginnings as `tfviz.stored.load("decoding")` has them ("contexts" or "trees"),
                   which are the default

    Raises ValueError for numbers out of range, and for a `begin` of other characters or length.
    """

    module: ClassVar[str] = "decoding"
    uses: ClassVar[tuple[str, ...]] = ("gpt",)
    label: ClassVar[str] = "Decoding: from a model's probabilities to text"
    narrow: ClassVar[int] = 640

    view = given(Knob("token", of=("token", "beam", "write")))
    which = knob(0, low=0, high=lambda e: max(0, len(e.stored) - 1), label="beginning")
    tau = knob(1.0, low=0.0, high=3.0, step=0.05, label="temperature", letter="τ")
    k = knob(0, of=CUTS, between=True, low=0, high=100_000, label="top-k", letter="k")
    p = knob(1.0, low=0.0, high=1.0, step=0.01, label="nucleus", letter="p")
    width = knob(2, low=1, high=WIDEST, label="beam width", letter="B")
    alpha = knob(0.0, low=0.0, high=MOST_ALPHA, step=0.25, label="length penalty", letter="α")
    steps = knob(LONGEST, low=1, high=LONGEST, label="tokens written")
    begin = own(t.Unicode("the value of "))
    written = knob(8, low=0, high=MOST_WRITTEN, label="letters written")
    seed = knob(1, low=1, high=20, label="other dice")
    stored = given(t.List(), optional=True)

    @t.default("prompt")
    def _first_prompt(self) -> str:
        return PROMPTS[self.view]

    @t.validate("begin")
    def _begin(self, proposal: Any) -> str:
        text: str = proposal["value"]
        _arguments.integer("length of begin", len(text), 1, MOST_BEGIN)
        if other := sorted(set(text) - set(ALPHABET.letters)):
            raise ValueError(
                f"begin = {text!r} has {''.join(other)!r}, which the model has never read; give "
                "small letters from a to z and spaces"
            )
        return text

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        stored = said.pop("stored", None)
        if said.get("view") == "write":
            stored = []
        elif stored is None and said.get("view", "token") in KINDS:
            stored = results.load("decoding")[KINDS[said.get("view", "token")]]
        return said | {"stored": list(stored or ())}

    def heights(self) -> dict[int, str]:
        if self.view == "write":
            return {
                **{0: "44.5rem", 676: "98.5rem", 600: "102.5rem"},
                **{440: "107.5rem", 340: "109rem", 300: "112.5rem"},
            }
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
        return self._cut(self.logits).tolist()

    def _cut(self, logits: Tensor) -> Tensor:
        logits = temperature(logits, self.tau)
        if self.k:
            logits = top_k(logits, self.k)
        return nucleus(logits, self.p).softmax(-1)

    @property
    def text(self) -> tuple[list[int], Tensor]:
        """The letters written so far, as tokens, and the model's log p of the next one."""
        model, dice = letter_page.exact(), uniforms(self.seed, MOST_WRITTEN) / 12**0.5 + 0.5
        t = ALPHABET.encode(self.begin)
        for n in range(self.written):
            held = self._cut(model(t[None])[0, -1]).cumsum(-1)
            below = int((held <= dice[n]).sum())  # the letters that hold less than was thrown
            t = torch.cat([t, torch.tensor([min(below, int((held < held[-1]).sum()))])])
        return t[len(self.begin) :].tolist(), model(t[None])[0, -1].log_softmax(-1)

    @property
    def beam(self) -> list[Hypothesis]:
        """What the search has found after `steps` tokens, the best first."""
        tree = self.stored[self.which]
        V = 1 + max(int(n) for n in tree["names"])
        look = stored_next(lambda tokens: tree["nodes"][" ".join(map(str, tokens))], 1, V)
        start, ends = torch.zeros(1, dtype=torch.long), tree["ends"]
        return beam_search(look, start, self.steps, self.width, end=ends, alpha=self.alpha)

    def numbers(self) -> dict[str, Any]:
        """Of what is written: its letters, the next one's distribution before and after the cuts,
        how many can come, the entropy in nats. Of the token's view what the likeliest are drawn
        with, how many can come after each beginning, what they held, the entropy in nats; of the
        beam's view what was found."""
        if self.view == "write":
            tokens, log_p = self.text
            after, p = self._cut(log_p), log_p.exp()
            return {
                **{"written": tokens, "p": p.tolist(), "after": after.tolist()},
                **{"kept": int((after > 0).sum()), "entropy": float(-(p * log_p).sum())},
            }
        if self.view == "beam":
            found = self.beam
            return {
                **{"tokens": [list(y.tokens) for y in found], "log_p": [y.log_p for y in found]},
                "score": [y.score for y in found],
                "complete": [int(y.complete) for y in found],
            }
        drawn = self.probabilities
        held = temperature(self.logits, self.tau).softmax(-1)
        kept = sum(x > 0 for x in drawn)
        others = [Decoding(**{**self.state, "which": n}) for n in range(len(self.stored))]
        return {
            **{"after": drawn[:TOLD], "mass": float(held[:kept].sum())},
            "kept": [sum(x > 0 for x in one.probabilities) for one in others],
            "entropy": -sum(x * math.log(x) for x in drawn if x),
        }

    @classmethod
    def data(cls) -> dict[str, Any]:
        most = {"begin": MOST_BEGIN, "written": MOST_WRITTEN}
        return {"rows": ROWS, "told": TOLD, "most": most, "model": letter_page.for_page()}
