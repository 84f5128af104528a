"""Relative positions live: Shaw's labels, XL's four terms and its shift, T5's buckets."""

import torch
import torch.nn.functional as F
import traitlets as t

from tfviz import _arguments
from tfviz.explorers.base import Explorer, Numbers, exact, given, handed, knob, own, table
from tfviz.formula import Formula
from tfviz.position import shaw_relative as shaw
from tfviz.position.t5_relative_bias import bucket, edges
from tfviz.position.xl_relative import four_terms, rel_shift

VIEWS = ("labels", "terms", "shift", "buckets")
LONGEST, MOST_WORDS, SHIFTED, BUCKETED, STEPS = 24, 8, 5, 40, 4
FARS = (20, 24, 32, 48, 64, 96, 128)
STARTS = {  # the pair with which a view opens that the reader turns to
    "labels": {"row": 7, "column": 2},
    "terms": {"row": 4, "column": 1},
    "shift": {"row": 2, "column": 1},
    "buckets": {"row": 36, "column": 14},
}
# as `rem`, for each view
HEIGHTS = {
    "labels": (33, 33, 32.5, 34, 79),
    "terms": (40, 41, 34.5, 34.5, 99.5),
    "shift": (32, 32, 32, 29, 82),
    "buckets": (33, 33, 32.5, 33.5, 89),
}

PROMPTS = {
    "labels": "Move k, or tick “causal”: which labels does no pair have?",
    "terms": "Switch terms off and see what is left of the sum, or choose a pair.",
    "shift": "Go back to step 0 and press play: the same numbers are cut into new rows.",
    "buckets": "Choose pairs, and change the number of buckets.",
}


WORDS_OF_AN_EXAMPLE = {
    "words": ["the", "old", "cat", "sleeps", "and", "purrs"],
    "Q": [[0.1, 0.0], [0.4, 0.2], [0.2, 1.0], [2.0, 0.1], [0.0, 0.3], [2.0, 0.4]],
    "K": [[0.2, 0.0], [0.6, 0.1], [2.0, 0.2], [0.0, 2.0], [0.1, 0.1], [0.2, 1.8]],
    "u": [0.6, 0.8],
    "v": [1.0, 0.3],
    "R": [[round(0.3 * n, 2), round((-1) ** n * 0.2 * n, 2)] for n in range(-5, 6)],
    "row": 4,
    "column": 1,
}
EXAMPLES: dict[str, Numbers] = {view: {**WORDS_OF_AN_EXAMPLE, "view": view} for view in VIEWS}


class RelativeTerms(Explorer):
    """Four views of relative positions.

    view "labels"    Shaw: L, k, causal
    view "terms"     XL: Q, K, u, v, and R with one row for each distance L − 1 … 1 − L; words;
                     terms: which of the four are added
    view "shift"     XL: step 0 to 4 of pad, cut anew, drop
    view "buckets"   T5: buckets, far, future
    row, column      the pair that is explained; the last one, where the view is smaller
    """

    label = "Relative positions: labels, four terms, shift and buckets"
    examples = EXAMPLES
    asks = PROMPTS
    narrow = 640
    data = handed(
        label=Formula(shaw.label),
        prompts=PROMPTS,
        starts=STARTS,
        shifted=SHIFTED,
        bucketed=BUCKETED,
    )

    view = knob("labels", of=VIEWS, label="view")
    words = given(t.List(t.Unicode()), optional=True)
    Q, K, R = (given(t.List(t.List(t.Float())), optional=True) for _ in "QKR")
    u, v = (given(t.List(t.Float()), optional=True) for _ in "uv")
    L = knob(12, low=4, high=LONGEST, label="length", letter="L")
    k = knob(3, low=0, high=LONGEST, label="largest label", letter="k")
    causal = knob(False, label="causal: keys j ≤ i only")
    terms = own(t.List(t.Bool(), [True] * 4), optional=True)
    step = knob(0, low=0, high=STEPS, label="step")
    buckets = knob(16, low=4, high=32, step=4, label="buckets")
    far = knob(32, of=FARS, between=True, low=17, label="last bucket begins by")
    future = knob(False, label="half the buckets for keys after the query")
    row = knob(0, low=0, high=BUCKETED - 1, label="query", letter="i")
    column = knob(0, low=0, high=BUCKETED - 1, label="key", letter="j")

    def prepare(self, said: Numbers) -> Numbers:
        words, terms = list(said.get("words", ())), list(said.get("terms", [True] * 4))
        if len(terms) != 4:
            raise ValueError(f"terms = {terms!r}; give four times True or False")
        n, rows = len(words), {name: said.get(name, ()) for name in "QKRuv"}
        if said.get("view") == "terms":
            _arguments.integer("number of words", n, 2, MOST_WORDS)
        if n:
            d = len(rows["Q"][0])
            wanted = {"Q": n, "K": n, "R": 2 * n - 1}
            rows = {name: table(name, rows[name], many, d) for name, many in wanted.items()} | dict(
                zip("uv", table("u, v", (rows["u"], rows["v"]), 2, d), strict=True)
            )
        buckets, future = said.get("buckets", 16), said.get("future", False)
        edges(buckets // 2 if future else buckets, said.get("far", 32))
        return said | rows | {"words": words, "terms": terms}

    def heights(self) -> dict[int, float]:
        return dict(zip((0, 1136, 980, 820, self.narrow), HEIGHTS[self.view], strict=True))

    def numbers(self) -> Numbers:
        """Labels and buckets of all pairs; the four terms, then the sum of those that are on,
        divided by √d_head; of the shift the cells of this step, 1 + 5 · query + distance, or 0
        where a zero was padded."""
        if self.view == "labels":
            return {"shown": shaw.labels(self.L, self.L, self.k)}
        if self.view == "buckets":
            i = torch.arange(BUCKETED)
            return {
                "shown": bucket(i[:, None] - i, self.buckets, self.far, bidirectional=self.future)
            }
        if self.view == "terms":
            parts = four_terms(*map(exact, (self.Q, self.K, self.R, self.u, self.v)))
            total = (parts * torch.tensor(self.terms)[:, None, None]).sum(0)
            return {"shown": [*parts, total / len(self.u) ** 0.5]}
        n = SHIFTED
        B = 1 + torch.arange(n)[:, None] * n + torch.arange(n - 1, -1, -1)
        padded = F.pad(B, (1, 0))
        cells = [B, padded, padded.reshape(n + 1, n), rel_shift(B), rel_shift(B)][self.step]
        return {"shown": cells}
