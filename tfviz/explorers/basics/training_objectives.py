"""One sentence as GPT, a prefix LM, BERT and T5 train on it: what each row reads and must say."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import traitlets as t

from tfviz import _arguments, patterns
from tfviz.basics.lm_objectives import Span, drop_spans, prefix_lm, scored_after
from tfviz.explorers.base import Explorer, Numbers, given, handed, knob, own

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
    runs = groupby(range(len(fates)), key=lambda i: bool(fates[i]))
    holes = [list(run) for chosen, run in runs if chosen]
    return [(run[0], run[-1] + 1) for run in holes]


SENTENCE = {
    "words": ["the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "warm"],
    "row": 3,
    "fates": ["", "", "mask", "mask", "", "other", "", "", "same", ""],
}
EXAMPLES: dict[str, Numbers] = {
    objective: {**SENTENCE, "objective": objective} for objective in ("gpt", "prefix", "t5")
}


class TrainingObjectives(Explorer):
    """One row for each position: what it reads, what it sees, what it must say.

    fates    for "bert" and "t5", one for each word: "" stays; "mask", "other" (a wrong word) and
             "same" are chosen and scored. T5 takes out all that are chosen
    masked   for "gpt": False lifts the causal mask;  other   the wrong word
    """

    label = "Training views: inputs, mask and targets of four objectives"
    rem = 39.5, 39.5, 33.5, 65.5
    narrow = 640
    data = handed(
        causal=patterns.causal.formula,
        full=patterns.full.formula,
        prefix=prefix_lm.formula,
        begin=BEGIN,
        mask=MASK,
    )

    words = given(t.List(t.Unicode()))
    objective = knob("gpt", of=("gpt", "prefix", "bert", "t5"), label="objective")
    prefix = knob(
        4, low=0, high=lambda e: len(e.words), label="inputs all rows may see", letter="p"
    )
    fates = own(t.List(t.Unicode()), optional=True)
    masked = knob(True, label="causal mask")
    other = given(t.Unicode("fish"))
    row = knob(0, low=0, high=lambda e: len(e.view.inputs) - 1, label="position", letter="i")
    examples = EXAMPLES
    asks = (
        "Choose an objective, then step through the positions: what does each one read, and what "
        "must it say?"
    )

    def prepare(self, said: Numbers) -> Numbers:
        words = list(said["words"])
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        fates = list(said.get("fates", [""] * len(words)))
        if len(fates) != len(words):
            raise ValueError(f"{len(fates)} fates for {len(words)} words; give one for each")
        if wrong := [fate for fate in fates if fate not in FATES]:
            raise ValueError(f"fates has {wrong}; choose among {list(FATES)}")
        return {"prefix": min(4, len(words))} | said | {"words": words, "fates": fates}

    def heights(self) -> dict[int, float]:
        more = len(self.view.inputs) > MOST_WORDS  # T5: two sequences, one below the other
        if more:
            return {0: 38.5, 980: 38.5, 820: 38, self.narrow: 71}
        return super().heights()

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
            marks = range(L, L + len(spans) + 1)
            names = [*words, *(f"⟨{n}⟩" for n in range(len(marks)))]
            source, said = ([names[x] for x in part] for part in drop_spans(range(L), spans, marks))
            n, rows = len(source), len(source) + len(said)
            scored, mask = [i >= n for i in range(rows)], prefix_lm(prefix=n).mask(rows).tolist()
            return View([*source, BEGIN, *said[:-1]], [""] * n + said, scored, mask, n)
        pattern, scored = patterns.causal() if self.masked else patterns.full(), [True] * L
        if self.objective == "prefix":
            pattern, scored = prefix_lm(prefix=self.prefix), scored_after(L, self.prefix).tolist()
        return View([BEGIN, *words[:-1]], words, scored, pattern.mask(L).tolist(), 0)

    @property
    def leaks(self) -> list[int]:
        """Positions that are scored and see their own answer, the next input: GPT and prefix LM."""
        _, _, scored, mask, _ = self.view
        shifted = self.objective in ("gpt", "prefix")
        return [i for i in range(len(mask) - 1) if shifted and scored[i] and mask[i][i + 1]]

    def numbers(self) -> Numbers:
        """Which positions are scored, which pairs allowed (1 or 0), and how many leak."""
        _, _, scored, mask, sources = self.view
        pairs = [int(x) for row in mask for x in row]
        leaks = len(self.leaks)
        return {"scored": list(map(int, scored)), "mask": pairs, "sources": sources, "leaks": leaks}
