"""Directions for random features, the same for the same seed."""

from __future__ import annotations

from torch import Generator, Tensor

from tfviz.compressed.rfa import directions


def drawn(m: int, d: int, seed: int = 0, orthogonal: bool = True) -> Tensor:
    """(m, d), in float64."""
    return directions(m, d, orthogonal, Generator().manual_seed(seed)).double()
