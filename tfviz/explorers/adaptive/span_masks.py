"""Three masks on one row of attention: all keys, a learned ramp, a fixed step."""

from functools import cache

import torch

from tfviz.adaptive.adaptive_span import ramp
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

L = 32


@cache
def row() -> dict[str, list[float]]:
    """The scores of one query with 32 keys, the nearest first, and a number as each key's value."""
    dice = torch.Generator().manual_seed(3)
    s = 1.1 * torch.randn(L, generator=dice) - 0.03 * torch.arange(L)
    v = torch.randn(L, generator=dice)
    return {"s": s.double().tolist(), "v": v.double().tolist()}


class SpanMasks(Explorer):
    """One query and the 32 keys before it, under three masks side by side."""

    label = "Three masks for one query: all keys, a learned ramp, a fixed step"
    rem = 26, 25, 26.5, 28, 93
    data = handed(row)

    z = knob(8.5, low=0.0, high=24.0, step=0.5, label="span", letter="z")
    R = knob(6, low=1, high=16, label="length of the ramp", letter="R")
    scale = knob(8, low=0, high=L - 1, label="last key of the fixed step", letter="ω")
    asks = "Drag the ends of the ramp: which keys pass in full, which in part, which not at all?"

    def numbers(self) -> Numbers:
        """Weights of each key under the three masks, and what each key adds to dy/dz,
        where y is the sum of the weighted values."""
        s, v = (exact(row()[name]) for name in "sv")
        x = torch.arange(L, dtype=torch.float64)
        ramped = ramp(x, exact(self.z), self.R)
        masks = {"all": torch.ones(L), "ramp": ramped, "step": x <= self.scale}
        loud = {name: m * s.exp() for name, m in masks.items()}
        A = {name: e / e.sum() for name, e in loud.items()}
        on = (x > self.z) & (x < self.z + self.R)
        y = (A["ramp"] * v).sum()
        pull = on * s.exp() / self.R * (v - y) / loud["ramp"].sum()
        return {**A, "pull": pull, "keys": [(a > 0).sum() for a in A.values()]}
