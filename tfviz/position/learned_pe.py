"""Learned positions: a table with one trained row for each place.

    X ← X + P,   P ∈ ℝ^{L_max × d}

Gehring et al. 2017 (arXiv 1705.03122). There is no row for a place beyond L_max: asking for one is
an error, and never wraps around. Al-Rfou et al. 2018 (arXiv 1808.04444) add a table P⁽ⁿ⁾ of its own
to the input of every layer n.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _checks


class Learned(nn.Module):
    """Positions (L,) → rows of P (L, d), for the `positions` of a model; P begins as N(0, std²)."""

    def __init__(self, longest: int, d: int, std: float = 0.02) -> None:
        super().__init__()
        _checks.integer("longest", longest, 1)
        _checks.integer("d", d, 1)
        self.P = nn.Parameter(_checks.real("std", std, 0.0) * torch.randn(longest, d))

    def forward(self, i: Int[Tensor, "L"]) -> Float[Tensor, "L d"]:
        if len(i) and (i.max() >= len(self.P) or i.min() < 0):
            raise ValueError(
                f"position {int(i.max() if i.min() >= 0 else i.min())} was asked, but P has rows "
                f"0 … {len(self.P) - 1} only; train with longest = L_max or give shorter input"
            )
        return self.P[i]
