"""What a pattern costs, counted on its mask: by elements, and by blocks as hardware works.

>>> from tfviz import patterns
>>> patterns.causal().cost(8).pairs
36
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfviz import _arguments


class HasRows(Protocol):
    """What is counted: a pattern, of which only its rows are used."""

    def rows(self, i: Int[Tensor, " n"], L: int) -> Bool[Tensor, "*h n L"]: ...


@dataclass(frozen=True)
class Cost:
    """What a pattern costs, counted on its mask. Element-exact: only the allowed pairs.
    Block-exact: every block of the matrix that holds an allowed pair is computed whole, as
    hardware does it.

    pairs are counted over the heads that the mask distinguishes (one, unless it is `per_head`);
    flops = two products, 4 d per pair over all heads; bytes = the scores of all heads in float32.
    """

    L: int
    d: int
    h: int
    block: int
    heads: int
    pairs: int
    blocks: int
    full_blocks: int
    block_pairs: int

    @property
    def full_pairs(self) -> int:
        return self.heads * self.L * self.L

    @property
    def flops(self) -> int:
        return self._flops(self.pairs)

    @property
    def full_flops(self) -> int:
        return self._flops(self.full_pairs)

    @property
    def block_flops(self) -> int:
        return self._flops(self.block_pairs)

    @property
    def bytes(self) -> int:
        return 4 * self.pairs * self.h // self.heads

    @property
    def full_bytes(self) -> int:
        return 4 * self.full_pairs * self.h // self.heads

    @property
    def block_bytes(self) -> int:
        return 4 * self.block_pairs * self.h // self.heads

    def _flops(self, pairs: int) -> int:
        return 4 * self.d * pairs // self.heads


def count(pattern: HasRows, L: int, d: int, h: int, block: int) -> Cost:
    """Count one layer of total width d with h heads; see `Pattern.cost`."""
    L = _arguments.integer("L", L, 1)
    d, h = _arguments.integer("d", d, 1), _arguments.integer("h", h, 1)
    block = _arguments.integer("block", block, 1)
    if d % h:
        raise ValueError(f"d = {d} is not divisible by h = {h}; choose h that divides d")
    edges = torch.tensor([min(block, L - s) for s in range(0, L, block)])
    small = torch.uint8 if block < 256 else torch.int32  # holds a count up to `block`
    heads, pairs, blocks, block_pairs = 1, 0, 0, 0
    for start, height in zip(range(0, L, block), edges.tolist(), strict=True):
        rows = pattern.rows(torch.arange(start, start + height), L)
        heads = rows.shape[0] if rows.dim() == 3 else 1
        columns = rows.view(torch.uint8).sum(-2, dtype=small)  # (*h, L): keys, over these queries
        pairs += int(columns.sum())
        padded = torch.nn.functional.pad(columns, (0, len(edges) * block - L))
        kept = padded.unflatten(-1, (len(edges), block)).any(-1)  # (*h, blocks)
        blocks += int(kept.sum())
        block_pairs += int((kept * edges).sum()) * height
    if heads > 1 and heads != h:
        raise ValueError(f"{pattern!r} has {heads} heads, h = {h}; give h = {heads}")
    full_blocks = heads * len(edges) ** 2
    return Cost(L, d, h, block, heads, pairs, blocks, full_blocks, block_pairs)
