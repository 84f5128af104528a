"""Additive score and dot product on the same states: one is bounded, the other is not."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz.attention import attention
from tfviz.basics.additive_attention import additive_attention
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import given, knob

SIZES = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
SHARPNESS = [0.0, 0.5, 1.0, 2.0, 5.0, 10.0]


class AdditiveScores(Explorer):
    """One state s and n notes H of its width, scored by tanh(s W_a + h U_a) v_aᵀ and by s hᵀ/√d.

    size        multiplies s and H;  sharpness multiplies v_a: one of SIZES, of SHARPNESS

    Raises ValueError for shapes or values that do not fit.
    """

    module: ClassVar[str] = "additive_scores"
    label: ClassVar[str] = "Additive score and dot product while states grow"
    min_height: ClassVar[str] = "26.75rem"
    min_height_narrow: ClassVar[str] = "57.25rem"
    narrow: ClassVar[int] = 640

    s = given(t.List(t.Float()))
    H = given(t.List(t.List(t.Float())))
    W_a = given(t.List(t.List(t.Float())))
    U_a = given(t.List(t.List(t.Float())))
    v_a = given(t.List(t.Float()))
    names = given(t.List(t.Unicode()))
    size = knob(1.0, of=SIZES, label="length of all states, times")
    sharpness = knob(1.0, of=SHARPNESS, label="v, times")
    asks = (
        "Predict: what do both show at 1 times the length, and at 100 times? Which of the two "
        "becomes certain, which one stops changing?"
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        s, H, v_a, names = said["s"], said["H"], said["v_a"], said["names"]
        if len(H) != len(names) or not 1 <= len(H) <= 8:
            raise ValueError(f"{len(H)} notes, {len(names)} names; give 1 to 8, as many of each")
        shapes = {"H": (len(H), len(s)), "W_a": (len(s), len(v_a)), "U_a": (len(s), len(v_a))}
        for name, shape in shapes.items():
            rows = said[name] = [list(r) for r in said[name]]
            if len(rows) != shape[0] or any(len(r) != shape[1] for r in rows):
                raise ValueError(
                    f"{name} = {rows!r}; with this s and v_a its shape must be {shape}"
                )
        return said | {"s": list(s), "v_a": list(v_a), "names": list(names)}

    def _tensors(self) -> tuple[Tensor, Tensor]:
        S, H = (torch.tensor(x, dtype=torch.float64) for x in ([self.s], self.H))
        return self.size * S, self.size * H

    @property
    def additive(self) -> list[float]:
        """α by the additive score, as the library computes it."""
        W_a, U_a, v_a = (
            torch.tensor(x, dtype=torch.float64) for x in (self.W_a, self.U_a, self.v_a)
        )
        alpha = additive_attention(*self._tensors(), W_a, U_a, self.sharpness * v_a)[1]
        return alpha[0].tolist()  # type: ignore[no-any-return, unused-ignore]

    @property
    def dot(self) -> list[float]:
        """α by the scaled dot product."""
        S, H = self._tensors()
        return attention(S, H, H)[1][0].tolist()  # type: ignore[no-any-return, unused-ignore]
