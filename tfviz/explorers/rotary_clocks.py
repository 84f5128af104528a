"""Rotary positions live: clock hands of a query and a key; the arrows that make the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.explorers.base import Explorer
from tfviz.position.rope import phasors, rotate

FARTHEST, MOST_SHIFT = 64, 1000
BASES = (1, 2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 500_000, 1_000_000)


class RotaryClocks(Explorer):
    """A query and a key of d numbers, d/2 clocks, and the score that they make at every distance.

    pairs    name -> (q, k), d numbers each, d even and at most 16
    pair     the name of the pair that is shown (default: the first)
    i, j     positions of query and key, 0 to 64; shift: added to both, 0 to 1000
    base     θ_m = base^(−2m/d); interpolate: positions are divided by it, 1 to 8
    trained  the largest distance seen in training, drawn as a line (0: none)

    Raises ValueError for shapes or values that do not fit.
    """

    module: ClassVar[str] = "rotary_clocks"
    label: ClassVar[str] = "Rotary clocks: hands of query and key, and the score of each distance"
    min_height: ClassVar[str] = "43rem"
    min_height_narrow: ClassVar[str] = "86rem"
    narrow: ClassVar[int] = 640

    pairs = t.Dict().tag(sync=True)
    pair = t.Unicode().tag(sync=True)
    i = t.Int(0).tag(sync=True)
    j = t.Int(0).tag(sync=True)
    shift = t.Int(0).tag(sync=True)
    base = t.Float(10_000.0).tag(sync=True)
    interpolate = t.Float(1.0).tag(sync=True)
    trained = t.Int(0).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"farthest": FARTHEST, "most_shift": MOST_SHIFT, "bases": list(BASES)}

    def __init__(
        self,
        pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]],
        i: int = 12,
        j: int = 9,
        pair: str | None = None,
        shift: int = 0,
        base: float = 10_000.0,
        interpolate: float = 1.0,
        trained: int = 0,
        prompt: str = "",
    ) -> None:
        if not pairs:
            raise ValueError("pairs is empty; give name -> (q, k), for example from a head")
        table = {name: [_vector(name, x) for x in qk] for name, qk in pairs.items()}
        widths = {len(x) for qk in table.values() for x in qk}
        if len(widths) != 1 or any(len(qk) != 2 for qk in table.values()):
            raise ValueError(f"pairs have widths {sorted(widths)}; give (q, k) of one width each")
        super().__init__(
            pairs=table, pair=next(iter(table)) if pair is None else pair, i=i, j=j, shift=shift,
            base=base, interpolate=interpolate, trained=trained,
            prompt=prompt or "Predict: what do the violet arrows do if both positions move by 100? "
            "Then move “shift both”, and look for the distance with the largest score.",
        )  # fmt: skip

    @t.validate("pair")
    def _pair(self, proposal: Any) -> str:
        if self.pairs and proposal["value"] not in self.pairs:
            raise ValueError(f"pair = {proposal['value']!r}; choose one of {', '.join(self.pairs)}")
        return str(proposal["value"])

    @t.validate("i", "j")
    def _position(self, proposal: Any) -> int:
        return _arguments.integer(proposal["trait"].name, proposal["value"], 0, FARTHEST)

    @t.validate("shift")
    def _shift(self, proposal: Any) -> int:
        return _arguments.integer("shift", proposal["value"], 0, MOST_SHIFT)

    @t.validate("trained")
    def _trained(self, proposal: Any) -> int:
        return _arguments.integer("trained", proposal["value"], 0, FARTHEST)

    @t.validate("base")
    def _base(self, proposal: Any) -> float:
        return _arguments.real("base", proposal["value"], BASES[0], BASES[-1])

    @t.validate("interpolate")
    def _interpolate(self, proposal: Any) -> float:
        return _arguments.real("interpolate", proposal["value"], 1.0, 8.0)

    @property
    def arrows(self) -> tuple[list[float], list[float]]:
        """(length, angle) of each clock's arrow, as the library computes them."""
        q, k = (torch.tensor(x, dtype=torch.float64) for x in self.pairs[self.pair])
        length, angle = phasors(q, k, (self.i - self.j) / self.interpolate, self.base)
        return length.tolist(), angle.tolist()

    @property
    def score(self) -> float:
        """q̃_i k̃_jᵀ, of the turned query and the turned key."""
        places = torch.tensor([self.i + self.shift, self.j + self.shift], dtype=torch.float64)
        both = torch.tensor(self.pairs[self.pair], dtype=torch.float64)
        q, k = rotate(both, places / self.interpolate, self.base)
        return float(q @ k)

    def __repr__(self) -> str:
        return f"RotaryClocks(pair={self.pair!r}, i={self.i}, j={self.j}, shift={self.shift})"


def _vector(name: str, values: Sequence[float]) -> list[float]:
    numbers = [_arguments.real(f"pairs[{name!r}]", float(x)) for x in values]
    if len(numbers) % 2 or not 2 <= len(numbers) <= 16:
        raise ValueError(
            f"pairs[{name!r}] has a vector of {len(numbers)} numbers; give an even number, 2 to 16"
        )
    return numbers
