"""Differential attention: each head has two maps, and uses the first minus a share of the second.

Ye and others 2024 (`ye2024differential`). What both maps have in common cancels, and the weights
may be negative:

    A = A_1 − λ A_2,        λ near λ_0 = 0.8 − 0.6 exp(−0.3 n) at the beginning

for block n, counted from 0; the paper counts from 1 and writes exp(−0.3 (l − 1)). λ is learned, and
each head's output is normalised and scaled by 1 − λ_0; neither is here.

>>> import torch
>>> difference(torch.tensor([0.75, 0.25]), torch.tensor([0.5, 0.5]), share=0.5)
tensor([0.5000, 0.0000])
>>> f"{start_of_lambda(0):.2f} {start_of_lambda(11):.2f}"
'0.20 0.78'
"""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["difference", "start_of_lambda"]


@named
def start_of_lambda(n: int) -> float:
    """λ_0 of block n, counted from 0. Raises ValueError unless n is a whole number from 0."""
    return 0.8 - 0.6 * math.exp(-0.3 * _arguments.integer("n", n, 0))


@named
def difference(
    first: Float[Tensor, "*b L S"], second: Float[Tensor, "*b L S"], share: float
) -> Float[Tensor, "*b L S"]:
    """The first map minus `share` times the second.

    Raises TypeError unless both are tensors of real numbers. Raises ValueError unless they have one
    shape.
    """
    _arguments.tensor("first", first, "(…, L, S)")
    _arguments.tensor("second", second, "(…, L, S)")
    if first.shape != second.shape:
        raise ValueError(
            f"first {tuple(first.shape)} and second {tuple(second.shape)}: give two maps of one "
            "shape"
        )
    return first - _arguments.real("share", share) * second
