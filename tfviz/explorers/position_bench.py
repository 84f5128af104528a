"""Position encodings side by side: what a place alone adds to a score, and what lengths cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import traitlets as t
from jaxtyping import Float
from torch import Tensor

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import given, knob
from tfviz.formula import Formula
from tfviz.longer_context.alibi import ramp
from tfviz.longer_context.da_transformer import rescale
from tfviz.position.sinusoidal_pe import hand

LENGTHS = (16, 32, 64, 128, 256)
SIZES = (4, 8, 16, 32, 64, 128)
BASES = (2.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
WORDS = {
    "none": "no positions",
    "sinusoidal": "sinusoidal",
    "learned": "learned",
    "shaw": "Shaw",
    "xl": "Transformer-XL",
    "t5": "T5 bias",
    "alibi": "ALiBi",
    "rotary": "rotary",
    "da": "DA",
}
"""The encodings that the bench knows, and how it writes them."""
CLOCKS = ("sinusoidal", "rotary")
ALPHA, BETA = -0.1, 3.0

Bias = Callable[[Tensor, Tensor], Tensor] | Tensor

RULES: dict[str, Bias] = {
    "alibi": lambda i, j: ramp(i, j, m=1.0),
    "da": lambda i, j: rescale((i - j).abs().double(), ALPHA, BETA),
}
"""What is known without training, or chosen here: DA's two numbers."""


class PositionBench(Explorer):
    """Two to four encodings: score by place, the same against distance, and loss against length.

    encodings    the names, of WORDS, that are drawn as matrices; chosen: the one in colour
    length, row, column    how many places are drawn, query i and key j
    d, base      of the clock hands in "sinusoidal" and "rotary"
    bias         what a place adds in an encoding, by name: a function of the indices (i, j), or a
                 square matrix, which then ends where the encoding ends. "none", "sinusoidal",
                 "rotary" and "alibi" are known; so are "learned", a table that was trained
                 (position_tables), and "da", whose curve is here below half from distance 8 on
    race         a result as `extrapolation` stores it; None: the stored one, if there is one
    task         which of its losses

    Every matrix is divided by its largest magnitude. A rotary score is that of a query and a key
    with the same number in all places. Raises ValueError for names and numbers that do not fit.
    """

    module: ClassVar[str] = "position_bench"
    label: ClassVar[str] = "Position encodings side by side"
    min_height: ClassVar[str] = "61rem"
    min_height_narrow: ClassVar[str] = "127rem"
    narrow: ClassVar[int] = 640

    encodings = given(t.List(t.Unicode(), ["sinusoidal", "learned"]), optional=True)
    chosen = knob("", of=lambda e: e.encodings, label="encoding in colour")
    length = knob(128, of=LENGTHS, label="positions drawn", letter="L")
    row = knob(40, low=0, high=LENGTHS[-1] - 1, label="query", letter="i")
    column = knob(24, low=0, high=LENGTHS[-1] - 1, label="key", letter="j")
    d = knob(64, of=SIZES, label="numbers in a vector", letter="d")
    base = knob(10_000.0, of=BASES, label="base of the speeds")
    bias = given(t.Dict(), optional=True)
    race = given(t.Dict(), optional=True)
    task = knob("text", of=lambda e: list(e.race.get("tasks", {})) or ["text"], label="measured on")
    asks = (
        "Predict: how will the two curves change when you choose another query? Then move i, and "
        "let i pass the end of the training length."
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        names = list(said.get("encodings", ("sinusoidal", "learned")))
        if not 1 <= len(names) <= 4 or len(set(names)) < len(names):
            raise ValueError(f"encodings = {names}; give one to four different names")
        bias = dict(said.get("bias", {}))
        for name in names:
            if name not in WORDS:
                raise ValueError(f"encodings has {name!r}; choose from {', '.join(WORDS)}")
            if name == "learned" and name not in bias:
                bias[name] = trained_table()
            bias |= {name: RULES[name]} if name in RULES.keys() - bias.keys() else {}
            if name not in bias and name not in (*CLOCKS, "none"):
                raise ValueError(
                    f"the scores of {name!r} depend on what was trained; give them as "
                    f"bias={{{name!r}: a function of (i, j), or a matrix}}"
                )
        made = {
            "encodings": names,
            "bias": {n: _table(n, bias[n]) for n in names if n in bias},
            "race": _race(said.get("race")),
            "chosen": said.get("chosen") or names[0],
        }
        return said | made

    @classmethod
    def data(cls) -> dict[str, Any]:
        known = ["learned", *RULES]
        return {
            "words": WORDS, "clocks": CLOCKS, "known": known, "hand": Formula(hand).javascript()
        }  # fmt: skip

    def matrix(self, name: str) -> Float[Tensor, "L L"]:
        """What place j adds to a score of query i in this encoding; NaN where it has no row."""
        L = self.length
        if name in self.bias:
            table = self.bias[name]
            values = torch.tensor(table["values"], dtype=torch.float64)
            if "offset" in table:
                i = torch.arange(L)
                return values[i - i[:, None] + table["offset"]]
            n = table["side"]
            M = torch.full((max(n, L), max(n, L)), torch.nan, dtype=torch.float64)
            M[:n, :n] = values.reshape(n, n)
            return M[:L, :L]
        if name == "none":
            return torch.zeros(L, L, dtype=torch.float64)
        k, m = (torch.arange(n, dtype=torch.float64) for n in (L, self.d // 2))
        by_distance = hand(k[:, None], m, d=self.d, base=self.base).mean(1)
        i = torch.arange(L)
        return by_distance[(i - i[:, None]).abs()]

    def numbers(self) -> dict[str, Any]:
        """The query's row in each encoding, as far as it has one; how far the rows of the chosen
        one differ at a distance; at which distance to the left it falls below half (−1: never)."""
        i, chosen = min(self.row, self.length - 1), self.matrix(self.chosen)
        rows = [self.matrix(name)[i] for name in self.encodings]
        spread = 0.0
        for offset in range(1 - self.length, self.length):
            seen = chosen.diagonal(offset)
            seen = seen[~seen.isnan()]
            spread = max(spread, float(seen.max() - seen.min()) if len(seen) else 0.0)
        left = chosen[i, : i + 1].flip(0)
        below = (left < left[0] / 2).nonzero().flatten().tolist() if left[0] > 0 else []
        return {
            "rows": [row[~row.isnan()].tolist() for row in rows],
            **{"spread": spread, "half": below[0] if below else -1},
        }


def trained_table() -> Float[Tensor, "L L"]:
    """The cosines of a learned table's rows after training on text, as stored."""
    return torch.tensor(stored.load("position_tables")["cosines"])


def _table(name: str, bias: Bias) -> dict[str, Any]:
    """By offset j − i if nothing else counts, otherwise by pair; the largest magnitude is 1."""
    if isinstance(bias, Mapping):  # as it stands in the state of a bench
        n = 2 * bias["offset"] + 1 if "offset" in bias else bias["side"] ** 2
        if len(bias["values"]) != n:
            raise ValueError(f"bias[{name!r}] has {len(bias['values'])} values; give {n}")
        return dict(bias)
    if isinstance(bias, Tensor):
        M = bias.detach().double()
    else:
        i = torch.arange(LENGTHS[-1])
        M = torch.as_tensor(bias(i[:, None], i[None])).detach().double()
    if M.dim() != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"bias[{name!r}] has shape {tuple(M.shape)}; give (L, L)")
    M = M / (M.abs().max().clamp(min=1e-12))
    n = len(M)
    if n == LENGTHS[-1] and torch.allclose(M[1:, 1:], M[:-1, :-1], atol=1e-6):
        by_offset = torch.cat([M[1:, 0].flip(0), M[0]])
        return {"offset": n - 1, "values": [round(x, 4) for x in by_offset.tolist()]}
    return {"side": n, "values": [round(x, 2) for x in M.flatten().tolist()]}


def _race(race: Mapping[str, Any] | None) -> dict[str, Any]:
    if race is None:
        try:
            race = stored.load("extrapolation")
        except FileNotFoundError:
            return {}
    tasks = {
        task: {
            name: [[None if x is None else round(x, 4) for x in seed] for seed in seeds]
            for name, seeds in by_name.items()
        }
        for task, by_name in race["tasks"].items()
    }
    unit = race["unit"]
    return {
        "lengths": list(race["lengths"]), "train_length": race["train_length"], "tasks": tasks,
        "unit": dict(unit) if isinstance(unit, Mapping) else dict.fromkeys(tasks, unit),
    }  # fmt: skip
