"""One sentence as GPT, a prefix LM, BERT and T5 train on it: who reads what, who must say what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import traitlets as t

from tfviz import _arguments, patterns
from tfviz.basics.lm_objectives import Span, drop_spans, prefix_lm, scored_after
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import given, knob, own

OBJECTIVES = ("gpt", "prefix", "bert", "t5")
FATES = ("", "mask", "other", "same")
BEGIN, MASK = "⟨begin⟩", "⟨mask⟩"
MOST_WORDS = 10


class View(NamedTuple):
    """What a model is given: row i reads inputs[i], must say targets[i] if scored[i], and may look
    at the inputs j with mask[i][j]. The first `sources` rows are an encoder's and say nothing."""

    inputs: list[str]
    targets: list[str]
    scored: list[bool]
    mask: list[list[bool]]
    sources: int


def spans_of(fates: Sequence[str]) -> list[Span]:
    """Runs of words with a fate: what T5 takes out."""
    spans: list[Span] = []
    for i, fate in enumerate(fates):
        if fate and spans and spans[-1][1] == i:
            spans[-1] = (spans[-1][0], i + 1)
        elif fate:
            spans.append((i, i + 1))
    return spans


class TrainingViews(Explorer):
    """One row for each position: what it reads, what it sees, what it must say.

    words       1 to 10 words
    objective   "gpt", "prefix", "bert" or "t5"
    row         the position that is explained
    prefix      for "prefix": how many inputs all positions may see
    fates       for "bert" and "t5", one for each word: "" stays; "mask", "other" (a wrong word) and
                "same" are chosen and scored. T5 takes out all that are chosen
    masked      for "gpt": False lifts the causal mask
    other       the wrong word

    Raises ValueError for values that do not fit.
    """

    module: ClassVar[str] = "training_views"
    label: ClassVar[str] = "Training views: inputs, mask and targets of three objectives"
    min_height: ClassVar[str] = "51rem"
    min_height_narrow: ClassVar[str] = "76rem"
    narrow: ClassVar[int] = 640

    words = given(t.List(t.Unicode()))
    objective = knob("gpt", of=OBJECTIVES, label="objective")
    prefix = knob(
        4, low=0, high=lambda e: len(e.words), label="inputs that all may see", letter="p"
    )
    fates = own(t.List(t.Unicode()), optional=True)
    masked = knob(True, label="causal mask")
    other = given(t.Unicode("fish"))
    row = knob(0, low=0, high=lambda e: len(e.view.inputs) - 1, label="position", letter="i")
    asks = (
        "Choose an objective, then step through the positions with the slider or the arrow keys: "
        "what does each one read, and what must it say?"
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        words = list(said["words"])
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        fates = list(said.get("fates", [""] * len(words)))
        if len(fates) != len(words):
            raise ValueError(f"{len(fates)} fates for {len(words)} words; give one for each")
        if wrong := [fate for fate in fates if fate not in FATES]:
            raise ValueError(f"fates has {wrong}; choose among {list(FATES)}")
        return {"prefix": min(4, len(words))} | said | {"words": words, "fates": fates}

    def heights(self) -> dict[int, str]:
        more = len(self.view.inputs) > MOST_WORDS  # T5: two sequences, one below the other
        return {0: "61rem", self.narrow: "84rem"} if more else super().heights()

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {
            "causal": patterns.causal.formula.javascript(),
            "full": patterns.full.formula.javascript(),
            "prefix": prefix_lm.formula.javascript(),
            "begin": BEGIN,
            "mask": MASK,
        }

    @property
    def view(self) -> View:
        """Inputs, targets, scores and mask as the library makes them."""
        words, L = list(self.words), len(self.words)
        if self.objective == "bert":
            become = {"": None, "same": None, "mask": MASK, "other": self.other}
            inputs = [become[f] or w for w, f in zip(words, self.fates, strict=True)]
            scored = [bool(fate) for fate in self.fates]
            return View(inputs, words, scored, patterns.full().mask(L).tolist(), 0)
        if self.objective == "t5":
            spans = spans_of(self.fates)
            marks = list(range(L, L + len(spans) + 1))
            names = [*words, *(f"⟨{n}⟩" for n in range(len(marks)))]
            source, said = drop_spans(range(L), spans, marks)
            sources, n = len(source), len(source) + len(said)
            read = [names[x] for x in source] + [BEGIN] + [names[x] for x in said[:-1]]
            say = [""] * sources + [names[x] for x in said]
            scored = [i >= sources for i in range(n)]
            return View(read, say, scored, prefix_lm(prefix=sources).mask(n).tolist(), sources)
        read = [BEGIN, *words[:-1]]
        if self.objective == "prefix":
            mask = prefix_lm(prefix=self.prefix).mask(L).tolist()
            return View(read, words, scored_after(L, self.prefix).tolist(), mask, 0)
        pattern = patterns.causal() if self.masked else patterns.full()
        return View(read, words, [True] * L, pattern.mask(L).tolist(), 0)

    @property
    def leaks(self) -> list[int]:
        """Positions that are scored and see their own answer, the next input: GPT and prefix LM."""
        _, _, scored, mask, _ = self.view
        shifted = self.objective in ("gpt", "prefix")
        return [i for i in range(len(mask) - 1) if shifted and scored[i] and mask[i][i + 1]]

    def numbers(self) -> dict[str, Any]:
        """Which positions are scored, which pairs allowed (1 or 0), and how many leak."""
        view = self.view
        return {
            "scored": [int(x) for x in view.scored],
            "mask": [int(x) for row in view.mask for x in row],
            **{"sources": view.sources, "leaks": len(self.leaks)},
        }
