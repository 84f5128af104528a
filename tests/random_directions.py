"""Directions for random features, the same for the same seed."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from tfviz import GPT
from tfviz.compressed.rfa import directions
from tfviz.cores import Make


def drawn(m: int, d: int, seed: int = 0, orthogonal: bool = True) -> Tensor:
    """(m, d), in float64."""
    return directions(m, d, orthogonal, Generator().manual_seed(seed)).double()


def directions_are_saved(core: Make) -> None:
    """A model with others answers otherwise, until it gets those of the first."""
    t, models = torch.zeros(1, 3).long(), list[GPT]()
    for seed in (0, 5):
        torch.manual_seed(seed)
        models.append(GPT(11, 16, 2, 2, core=core).eval())
    one, other = models
    assert one(t).isfinite().all() and not other(t).equal(one(t))
    other.load_state_dict(one.state_dict())
    assert other(t).equal(one(t))
