"""Multi-Scale Transformer: heads with windows of fixed, different sizes, larger ones higher up.

Guo, Qiu, Liu, Xue, Zhang 2020 (arXiv 1912.00544). A head of scale ω reads the ω tokens on each side
(causal: the ω before it, and itself),

    S_i = {j : |i − j| ≤ ω}

and each layer shares its h heads out to scales ω_1 < … < ω_K. How, is our reconstruction: in layer
l = 1, 2, … scale k gets a part of the heads proportional to exp(α (K − k) / l). With α > 0 the
lowest layer has mostly short windows, and the parts even out higher up; α = 0 is the same in all.

>>> allocation(N=3, h=4, scales=(1, 3, 8, 32), alpha=2.0)
[(1, 1, 1, 3), (1, 1, 1, 3), (1, 1, 3, 8)]
>>> multi_scale((1, 3)).mask(5).sum((-2, -1))
tensor([ 9, 14])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.patterns.pattern import Pattern

__all__ = ["allocation", "multi_scale"]


@named
def allocation(N: int, h: int, scales: Sequence[int], alpha: float) -> list[tuple[int, ...]]:
    """The scale of each head of each layer, lowest layer first. Largest remainders are rounded up.

    Raises ValueError for scales that do not grow.
    """
    _arguments.integer("N", N, 1), _arguments.integer("h", h, 1)
    if not scales or list(scales) != sorted(set(scales)):
        raise ValueError(f"scales = {scales!r}; give whole numbers that grow")
    found = []
    below = torch.arange(len(scales) - 1, -1, -1, dtype=torch.float64)  # K − k
    for layer in range(1, N + 1):
        due = h * (_arguments.real("alpha", alpha) * below / layer).softmax(-1)
        count = due.floor().long()
        count[(due - count).argsort(descending=True, stable=True)[: h - int(count.sum())]] += 1
        found.append(tuple(torch.tensor(scales).repeat_interleave(count).tolist()))
    return found


@named
def multi_scale(scales: Sequence[int], causal: bool = True) -> Pattern:
    """The pattern of a layer whose heads have these scales."""
    if causal:
        return patterns.per_head(*(patterns.sliding_window(lookback=w) for w in scales))
    return patterns.per_head(*(patterns.band(radius=w) for w in scales))


def far(layers: Sequence[Sequence[int]]) -> int:
    """How many tokens back the top can hear from: the largest scale of each layer, summed."""
    return sum(max(layer) for layer in layers)
