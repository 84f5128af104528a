"""Queries, keys and values, as a type that a call can be checked with."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

Three = tuple[Tensor, Tensor, Tensor]


def three(tensors: Iterable[Tensor]) -> Three:
    """These three: of `f(*three(…), pattern)` mypy knows that the pattern is the fourth."""
    Q, K, V = tensors
    return Q, K, V
