"""Queries, keys and values: made, and as a type that a call can be checked with."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

Three = tuple[Tensor, Tensor, Tensor]


def three(tensors: Iterable[Tensor]) -> Three:
    """These three: of `f(*three(…), pattern)` mypy knows that the pattern is the fourth."""
    Q, K, V = tensors
    return Q, K, V


def qkv(L: int = 24, d: int = 6, h: int = 3, b: int = 2) -> Three:
    """Leaves in float64; V is a number narrower, so that no two of the sizes can be exchanged."""
    sizes = d, d, d - 1
    return three(torch.randn(b, h, L, n, dtype=torch.float64, requires_grad=True) for n in sizes)
