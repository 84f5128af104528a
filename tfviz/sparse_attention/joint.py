"""One softmax over several windows: for unions such as the row and the column of strided attention.

Each window is a grid of groups in which m queries meet n keys. Windows may overlap and may reach
beyond the pattern: a pair counts in the first window that holds it, and only if the pattern allows
it. The largest score of a query over all windows is subtracted, the exponentials and their sums are
added up window by window, and one division at the end makes the softmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tfviz.patterns.pattern import Pattern
from tfviz.sparse_attention.gathers import take
from tfviz.sparse_attention.key_lists import holds, positions
from tfviz.sparse_attention.windows import Offsets

BLOCK = 64
"""Queries in a block of a window."""
SCORES = 2**22
"""Scores held at once; more heads and batch entries follow one another."""


@dataclass(frozen=True)
class Grid:
    """Groups of m queries that meet n keys each; outside 0 … L - 1 is padding."""

    queries: Int[Tensor, "groups m"]
    keys: Int[Tensor, "groups n"]
    forbidden: Bool[Tensor, "groups m n"]
    order: Int[Tensor, " L"]  # where query i is in the groups, flattened


def attend(
    Q: Float[Tensor, "n L d"],
    K: Float[Tensor, "n L d"],
    V: Float[Tensor, "n L dv"],
    plan: tuple[Grid, ...],
) -> Float[Tensor, "n L dv"]:
    """Attention with the keys of all grids under one softmax."""
    step = max(1, SCORES // max(1, sum(grid.forbidden.numel() for grid in plan)))
    parts = zip(Q.split(step), K.split(step), V.split(step), strict=True)
    return torch.cat([_attend(q, k, v, plan) for q, k, v in parts])


def _attend(Q: Tensor, K: Tensor, V: Tensor, plan: tuple[Grid, ...]) -> Tensor:
    Q = Q / math.sqrt(Q.shape[-1])
    largest = Q.new_full(Q.shape[:2], torch.finfo(Q.dtype).min)
    scores = []
    for grid in plan:
        s = take(Q, grid.queries) @ take(K, grid.keys).transpose(-1, -2)
        scores.append(s.masked_fill_(grid.forbidden.to(Q.device), -math.inf))
        largest = torch.maximum(largest, _in_order(s.detach().amax(-1, keepdim=True), grid)[..., 0])
    values = F.pad(V, (0, 1), value=1.0)  # a column of ones gathers the sum of the exponentials
    total = values * 0  # zeros, and part of the graph
    for grid, s in zip(plan, scores, strict=True):
        weights = s.sub_(take(largest[..., None], grid.queries)).exp_()
        total = total + _in_order(weights @ take(values, grid.keys), grid)
    out, denominator = total[..., :-1], total[..., -1:]
    return out / denominator.masked_fill(denominator == 0, 1.0)


def _in_order(x: Float[Tensor, "n groups m w"], grid: Grid) -> Float[Tensor, "n L w"]:
    return x.flatten(1, 2).index_select(1, grid.order.to(x.device))


@lru_cache(maxsize=8)
def plan(
    pattern: Pattern, windows: tuple[tuple[Pattern, Offsets], ...], L: int
) -> tuple[Grid, ...]:
    """The grids of a pattern that these windows cover together."""
    grids: list[Grid] = []
    for n, (window, offsets) in enumerate(windows):
        queries, keys = _positions(offsets, L)
        i, j = queries[:, :, None], keys[:, None, :]
        allowed = holds(pattern, i, j, L) & holds(window, i, j, L)
        for earlier, _ in windows[:n]:
            allowed &= ~holds(earlier, i, j, L)
        inside = (queries < L).flatten()
        order = queries.flatten().where(inside, L).argsort()[:L]
        grids.append(Grid(queries, keys, ~allowed, order))
    return tuple(grids)


def _positions(at: Offsets, L: int) -> tuple[Tensor, Tensor]:
    """Blocks of each residue modulo the gap, and the stretches of keys that they need."""
    gap = min(at.gap, L)
    n = -(-L // gap)
    low, high = at.in_residue(n)
    if high - low + BLOCK >= n:  # a window is as long as the sequence: one block
        inner = outer = torch.arange(n)[None]
    else:
        blocks = torch.arange(-(-n // BLOCK))
        inner = positions(blocks, BLOCK)
        outer = blocks[:, None] * BLOCK - high + torch.arange(BLOCK + high - low)
    residue = torch.arange(gap)[:, None, None]
    return (inner * gap + residue).flatten(0, 1), (outer * gap + residue).flatten(0, 1)
