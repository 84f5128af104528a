"""Learned positions: a table with one trained row for each place.

    X ← X + P,   P ∈ ℝ^{L_max × d};     in every layer:   X⁽ⁿ⁾ ← X⁽ⁿ⁾ + P⁽ⁿ⁾,  n = 0 … N − 1

Gehring et al. 2017 (arXiv 1705.03122). There is no row for a place beyond L_max: asking for one is
an error, and never wraps around. Al-Rfou et al. 2018 (arXiv 1808.04444) add a table P⁽ⁿ⁾ of its own
to the input of every layer n.

>>> table_rows(torch.tensor([2, 0]), torch.eye(3)).tolist()
[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import places

__all__ = ["Learned", "PositionedBlock", "positions_in_every_layer"]


def one_hot_rows(i: Int[Tensor, "L"], P: Float[Tensor, "L_max d"]) -> Float[Tensor, "L d"]:
    """The definition: place i is a one-hot row of length L_max, and P the matrix behind it."""
    return F.one_hot(i.long(), len(P)).to(P.dtype) @ P


def table_rows(i: Int[Tensor, "L"], P: Float[Tensor, "L_max d"]) -> Float[Tensor, "L d"]:
    """The same by reading rows. Raises ValueError beyond the table, also before its first row."""
    if len(_arguments.indices("i", i)) and (i.max() >= len(P) or i.min() < 0):
        raise ValueError(
            f"position {int(i.max() if i.min() >= 0 else i.min())} was asked, but P has rows "
            f"0 … {len(P) - 1} only; train with max_length = L_max or give shorter input"
        )
    return P[i.long()]


def cosines(P: Float[Tensor, "L d"]) -> Float[Tensor, "L L"]:
    """cos(p_i, p_j) for all pairs of rows; 0 where a row is zero."""
    unit = F.normalize(P, dim=-1)
    return unit @ unit.T


def by_distance(M: Float[Tensor, "L L"]) -> Float[Tensor, "L"]:
    """Mean of M_ij over all pairs with |i − j| = k, for k = 0 … L − 1."""
    L = len(M)
    if M.shape != (L, L):
        raise ValueError(f"M has shape {tuple(M.shape)}; give a square matrix, pairs of positions")
    both = (M + M.T) / 2
    return torch.stack([both.diagonal(k).mean() for k in range(L)])


class Learned(nn.Module):
    """Positions (L,) → rows of P (L, d), for the `positions` of a model; P begins as N(0, std²)."""

    @named
    def __init__(self, max_length: int, d: int, std: float = 0.02) -> None:
        super().__init__()
        _arguments.integer("max_length", max_length, 1)
        _arguments.integer("d", d, 1)
        self.P = nn.Parameter(_arguments.real("std", std, 0.0) * torch.randn(max_length, d))

    @classmethod
    def beginning_as(cls, P: Float[Tensor, "L_max d"]) -> Learned:
        """A table whose rows begin as those of P, for instance as sinusoids, and are trained."""
        if P.dim() != 2:
            raise ValueError(f"P has shape {tuple(P.shape)}; give (L_max, d), a row for each place")
        table = cls(len(P), P.shape[1], std=0.0)
        table.P.data = P.detach().clone()
        return table

    @named
    def forward(self, i: Int[Tensor, "L"]) -> Float[Tensor, "L d"]:
        return table_rows(i, self.P)


class PositionedBlock(nn.Module):
    """block(X + P⁽ⁿ⁾): a block of a model with positions of its own at its input."""

    @named
    def __init__(self, block: Any, positions: nn.Module) -> None:
        super().__init__()
        self.block, self.positions = block, positions

    @named
    def forward(
        self,
        X: Float[Tensor, "b L d"],
        memory: Any = None,
        attention_mask: Any = None,
        cache: Any = None,
    ) -> Float[Tensor, "b L d"]:
        kept = (cache or {}).get(self.block.attend)
        past = kept.length if kept else 0  # with a cache, X is what comes after it
        i = places(past, len(X), X.shape[1], X.device)
        return self.block(X + self.positions(i), memory, attention_mask, cache)


@named
def positions_in_every_layer(stack: Any, make: Callable[[], nn.Module]) -> None:
    """Give each block of a `Stack` positions of its own: `make()` is called once for each.

    As Al-Rfou et al. do, with no positions at the input:
    `positions_in_every_layer(model.stack, lambda: Learned(64, d))`.
    """
    stack.blocks = nn.ModuleList(PositionedBlock(block, make()) for block in stack.blocks)
