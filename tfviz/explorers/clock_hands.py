"""A position as a row of clock hands: two places, the angles between them, and their product."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.explorers.base import Explorer
from tfviz.formula import Formula
from tfviz.position.sinusoidal_pe import hand, similarity, sinusoid

PLACES = 64
SIZES = (4, 8, 16, 24)
BASES = (2.0, 10.0, 100.0, 1_000.0, 10_000.0)


class ClockHands(Explorer):
    """The hands of place i and of place i + k, for d numbers.

    place, step    i, and k: both places lie in 0 … 63
    d, base        how many numbers a row has, and what the speeds are powers of

    Raises ValueError for numbers that do not fit.
    """

    module: ClassVar[str] = "clock_hands"
    label: ClassVar[str] = "Sinusoidal positions as clock hands"
    min_height: ClassVar[str] = "43rem"
    min_height_narrow: ClassVar[str] = "70rem"
    narrow: ClassVar[int] = 640

    place = t.Int(5).tag(sync=True)
    step = t.Int(3).tag(sync=True)
    d = t.Int(16).tag(sync=True)
    base = t.Float(10_000.0).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self, place: int = 5, step: int = 3, d: int = 16, base: float = 10_000.0, prompt: str = ""
    ) -> None:
        super().__init__(
            place=place, step=step, d=d, base=base,
            prompt=prompt or "Predict: which angles between the two hands change when i moves and "
            "k stays? Then move i.",
        )  # fmt: skip

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {
            "entry": Formula(sinusoid).javascript(), "hand": Formula(hand).javascript(),
            "places": PLACES, "sizes": SIZES, "bases": BASES,
        }  # fmt: skip

    @t.validate("place", "step")
    def _place(self, proposal: Any) -> int:
        name = proposal["trait"].name
        low = 0 if name == "place" else 1 - PLACES
        return _arguments.integer(name, proposal["value"], low, PLACES - 1)

    @t.validate("d", "base")
    def _one(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        allowed = SIZES if name == "d" else BASES
        if value not in allowed:
            raise ValueError(f"{name} = {value!r}; choose one of {', '.join(map(str, allowed))}")
        return value

    @property
    def product(self) -> float:
        """p_i p_{i+k}ᵀ, as the library computes it; the second place stays within 0 … 63."""
        there = min(max(self.place + self.step, 0), PLACES - 1)
        k = torch.tensor(float(there - self.place), dtype=torch.float64)
        return float(similarity(k, self.d, self.base))

    def __repr__(self) -> str:
        return f"ClockHands(place={self.place}, step={self.step}, d={self.d}, base={self.base})"
