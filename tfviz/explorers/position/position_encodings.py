"""Position encodings side by side: what a place alone adds to a score, and what lengths cost."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
import traitlets as t
from jaxtyping import Float
from torch import Tensor

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, given, handed, knob
from tfviz.formula import Formula
from tfviz.longer_context.alibi import ramp
from tfviz.longer_context.da_transformer import rescale
from tfviz.position.sinusoidal_pe import hand

LENGTHS = (16, 32, 64, 128, 256)
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

Bias = Callable[[Tensor, Tensor], Tensor] | Tensor

RULES: dict[str, Bias] = {
    "alibi": lambda i, j: ramp(i, j, m=1.0),
    "da": lambda i, j: rescale((i - j).abs().double(), -0.1, 3.0),
}
"""What is known without training, or chosen here: DA's two numbers."""


EXAMPLES: dict[str, Numbers] = {
    "": {
        "encodings": ["sinusoidal", "alibi", "rotary"],
        "length": 128,
        "row": 100,
        "column": 60,
        "d": 16,
    }
}
LESS = {1: 13.5, 2: 4.0}
"""Rem that a phone needs less for one encoding, or for two, which leave no rival to choose."""


class PositionEncodings(Explorer):
    """One encoding and a rival: score by place, the same against distance, and loss against length.

    encodings    the names, of WORDS, to choose from: one to four; chosen: the one in colour;
                 rival: the one beside it, if it is another one
    bias         what a place adds in an encoding, by name: a function of the indices (i, j), or a
                 square matrix, which then ends where the encoding ends. "none", "sinusoidal",
                 "rotary" and "alibi" are known; so are "learned", a table that was trained
                 (position_tables), and "da", whose curve is here below half from distance 8 on
    race         a result as `extrapolation` stores it; None: the stored one, if there is one
    task         which of its losses

    Every matrix is divided by its largest magnitude. A rotary score is that of a query and a key
    with the same number in all places.
    """

    label = "Position encodings side by side"
    rem = 41, 43.5, 43, 43, 103.5
    narrow = 640
    data = handed(words=WORDS, clocks=CLOCKS, known=["learned", *RULES], hand=Formula(hand))

    encodings = given(t.List(t.Unicode(), ["sinusoidal", "learned"]), optional=True)
    chosen = knob("", of=lambda e: e.encodings, label="encoding in colour")
    rival = knob("", of=lambda e: e.encodings, label="its rival")
    length = knob(128, of=LENGTHS, label="positions drawn", letter="L")
    row = knob(40, low=0, high=length - 1, label="query", letter="i")
    column = knob(24, low=0, high=length - 1, label="key", letter="j")
    d = knob(64, of=(4, 8, 16, 32, 64, 128), label="numbers in a vector", letter="d")
    base = knob(10_000.0, of=BASES, label="base of the speeds")
    bias = given(t.Dict(), optional=True)
    race = given(t.Dict(), optional=True)
    task = knob("text", of=lambda e: list(e.race.get("tasks", {})) or ["text"], label="measured on")
    examples = EXAMPLES
    asks = "Move i, even past the end of the training length, or choose another rival."

    def heights(self) -> dict[int, float]:
        """Less on a phone where there is no rival to choose."""
        less = LESS.get(len(self.encodings), 0)
        return super().heights() | {self.narrow: self.rem[-1] - less}

    def prepare(self, said: Numbers) -> Numbers:
        names = list(said.get("encodings", ("sinusoidal", "learned")))
        if not 1 <= len(names) <= 4 or len(set(names)) < len(names):
            raise ValueError(f"encodings = {names}; give one to four different names")
        if unknown := [name for name in names if name not in WORDS]:
            raise ValueError(f"encodings has {unknown[0]!r}; choose from {', '.join(WORDS)}")
        bias = {n: rule for n, rule in RULES.items() if n in names} | said.get("bias", {})
        if "learned" in names and "learned" not in bias:
            bias["learned"] = torch.tensor(stored.load("position_tables")["cosines"])
        for name in set(names) - {*bias, *CLOCKS, "none"}:
            raise ValueError(
                f"the scores of {name!r} depend on what was trained; give them as "
                f"bias={{{name!r}: a function of (i, j), or a matrix}}"
            )
        race = said.get("race") or stored.load("extrapolation")
        chosen = said.get("chosen") or names[0]
        others = [name for name in names if name != chosen]
        return said | {
            "encodings": names,
            "bias": {n: _table(n, bias[n]) for n in names if n in bias},
            "race": {n: race[n] for n in ("lengths", "train_length", "tasks", "unit")},
            "chosen": chosen,
            "rival": said.get("rival") or next(iter(others), chosen),
        }

    def matrix(self, name: str) -> Float[Tensor, "L L"]:
        """What place j adds to a score of query i in this encoding; NaN where it has no row."""
        L, i = self.length, torch.arange(self.length)
        if name in CLOCKS and name not in self.bias:
            m = torch.arange(self.d // 2, dtype=torch.float64)
            by_distance = hand(i[:, None].double(), m, d=self.d, base=self.base).mean(1)
            return by_distance[(i - i[:, None]).abs()]
        table = self.bias.get(name, {"offset": L, "values": [0.0] * (2 * L + 1)})
        values = exact(table["values"])
        if "offset" in table:
            return values[i - i[:, None] + table["offset"]]
        n, more = table["side"], max(0, L - table["side"])
        return F.pad(values.view(n, n), (0, more, 0, more), value=torch.nan)[:L, :L]

    def numbers(self) -> Numbers:
        """The query's row in each encoding, as far as it has one; how far the rows of the chosen
        one differ at a distance; at which distance to the left it falls below half (−1: never)."""
        i, chosen = self.row, self.matrix(self.chosen)
        diagonals = [chosen.diagonal(n) for n in range(1 - self.length, self.length)]
        seen = [x[~x.isnan()] for x in diagonals]
        spread = max((float(x.max() - x.min()) for x in seen if len(x)), default=0.0)
        left = chosen[i, : i + 1].flip(0)
        below = (left < left[0] / 2).nonzero().flatten().tolist() if left[0] > 0 else []
        shown = [row[~row.isnan()] for row in (self.matrix(n)[i] for n in self.encodings)]
        return {"rows": shown, "spread": spread, "half": below[0] if below else -1}


def _table(name: str, bias: Bias) -> Numbers:
    """By offset j − i if nothing else counts, otherwise by pair; the largest magnitude is 1."""
    if isinstance(bias, Mapping):  # as it stands in the state of a bench
        n = 2 * bias["offset"] + 1 if "offset" in bias else bias["side"] ** 2
        if len(bias["values"]) != n:
            raise ValueError(f"bias[{name!r}] has {len(bias['values'])} values; give {n}")
        return dict(bias)
    i = torch.arange(LENGTHS[-1])
    M = torch.as_tensor(bias(i[:, None], i[None]) if callable(bias) else bias).detach().double()
    if M.dim() != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"bias[{name!r}] has shape {tuple(M.shape)}; give (L, L)")
    M = M / (M.abs().max().clamp(min=1e-12))
    n = len(M)
    if n == LENGTHS[-1] and torch.allclose(M[1:, 1:], M[:-1, :-1], atol=1e-6):
        by_offset = torch.cat([M[1:, 0].flip(0), M[0]])
        return {"offset": n - 1, "values": [round(x, 4) for x in by_offset.tolist()]}
    return {"side": n, "values": [round(x, 2) for x in M.flatten().tolist()]}
