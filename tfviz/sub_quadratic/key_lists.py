"""Which keys does a block of queries use at all? Answered from the formula, without the mask.

A formula is a plain function of i and j, so it can be called on *intervals* of positions instead of
positions: comparisons then say whether a condition holds somewhere in a block, and whether it holds
everywhere. The answer may be "perhaps" where the truth is "nowhere", never the other way round;
only what is in doubt is evaluated pair by pair.

>>> from tfviz import patterns
>>> key_lists(patterns.global_tokens(count=1), 8, 4).counts.tolist()
[8, 1]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfviz.patterns.family import Leaf
from tfviz.patterns.pattern import Pattern

CHUNK = 2**22
"""Pairs of positions evaluated at once."""


@dataclass(frozen=True)
class Truth:
    """A condition over a block of pairs: may it hold `somewhere`, does it hold `everywhere`."""

    somewhere: Tensor
    everywhere: Tensor

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.somewhere & other.somewhere, self.everywhere & other.everywhere)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.somewhere | other.somewhere, self.everywhere | other.everywhere)

    def __invert__(self) -> Truth:
        return Truth(~self.everywhere, ~self.somewhere)


@dataclass(frozen=True, eq=False)
class Interval:
    """All whole numbers from `low` to `high`, with the arithmetic that formulas use."""

    low: Tensor
    high: Tensor

    def __add__(self, other: Any) -> Interval:
        other = _interval(other)
        return Interval(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Any) -> Interval:
        return self + -_interval(other)

    def __rsub__(self, other: Any) -> Interval:
        return _interval(other) + -self

    def __mul__(self, other: Any) -> Interval:
        other = _interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(reduce(torch.minimum, ends), reduce(torch.maximum, ends))

    __rmul__ = __mul__

    def __abs__(self) -> Interval:
        low, high = self.low.abs(), self.high.abs()
        crosses = (self.low <= 0) & (self.high >= 0)
        return Interval(torch.minimum(low, high).masked_fill(crosses, 0), torch.maximum(low, high))

    def __floordiv__(self, other: int) -> Interval:
        n = _positive(other)
        return Interval(self.low // n, self.high // n)

    def __mod__(self, other: int) -> Interval:
        n = _positive(other)
        wraps = self.low // n != self.high // n
        low, high = (self.low % n).masked_fill(wraps, 0), (self.high % n).masked_fill(wraps, n - 1)
        return Interval(low, high)

    def __le__(self, other: Any) -> Truth:
        other = _interval(other)
        return Truth(self.low <= other.high, self.high <= other.low)

    def __ge__(self, other: Any) -> Truth:
        return _interval(other) <= self

    def __lt__(self, other: Any) -> Truth:
        return ~(self >= other)

    def __gt__(self, other: Any) -> Truth:
        return ~(self <= other)

    def __eq__(self, other: Any) -> Truth:  # type: ignore[override]
        other = _interval(other)
        meets = (self.low <= other.high) & (other.low <= self.high)
        one = (self.low == self.high) & (other.low == other.high)
        return Truth(meets, meets & one)

    def __ne__(self, other: Any) -> Truth:  # type: ignore[override]
        return ~(self == other)


@dataclass(frozen=True)
class _List:
    """A list parameter, such as a permutation, that may be indexed by an interval."""

    values: Tensor

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    def __getitem__(self, at: Interval) -> Interval:
        a, b = self.values[at.low], self.values[at.high]
        far = at.high - at.low > 1  # neither one entry nor two: any of them
        low = torch.minimum(a, b).where(~far, self.values.min())
        return Interval(low, torch.maximum(a, b).where(~far, self.values.max()))


def _interval(x: Any) -> Interval:
    if isinstance(x, Interval):
        return x
    if isinstance(x, int):
        return Interval(torch.tensor(x), torch.tensor(x))
    raise TypeError(f"{x!r} has no interval")


def _positive(n: Any) -> int:
    if isinstance(n, int) and n > 0:
        return n
    raise TypeError(f"division by {n!r} has no interval")


def truth(pattern: Pattern, i: Interval, j: Interval, L: int) -> Truth:
    """Where in the blocks i × j the pattern may hold, and where it holds throughout."""
    in_doubt = torch.ones(i.low.shape[0], j.low.shape[1], dtype=torch.bool)

    def of_leaf(leaf: Pattern) -> Truth:
        if isinstance(leaf, Leaf):
            values = leaf.values_at(L).items()
            lists = {n: _List(torch.tensor(v)) if isinstance(v, tuple) else v for n, v in values}
            with suppress(TypeError, AttributeError):  # a formula that intervals cannot read
                return leaf.family.function(i, j, **lists)
        return Truth(in_doubt, ~in_doubt)

    return pattern.evaluated(of_leaf)


def holds(pattern: Pattern, i: Tensor, j: Tensor, L: int) -> Bool[Tensor, "..."]:
    """The pattern on positions, False where i or j lies outside 0 … L - 1."""
    inside = (i >= 0) & (i < L) & (j >= 0) & (j < L)
    return pattern.holds(i.clamp(0, L - 1), j.clamp(0, L - 1), L) & inside


def positions(blocks: Int[Tensor, "*n"], size: int) -> Int[Tensor, "*n size"]:
    """The positions in each block; the last block may reach beyond the sequence."""
    return blocks[..., None] * size + torch.arange(size)


@dataclass(frozen=True)
class KeyLists:
    """For each block of queries, the keys that at least one of its queries may use."""

    keys: Int[Tensor, " n"]  # of the first block of queries, then of the second, …, each sorted
    counts: Int[Tensor, " blocks"]
    full: Bool[Tensor, " blocks"]  # every query of the block may use all of these keys


def key_lists(pattern: Pattern, L: int, size: int) -> KeyLists:
    """The keys of each block of `size` queries: exact, and most of it by intervals alone.

    Blocks of size × size are decided first; what is neither empty nor full is looked at closer.
    """
    first = torch.arange(0, L, size)
    low, high = first, (first + size - 1).clamp(max=L - 1)
    i, j = Interval(low[:, None], high[:, None]), Interval(low[None], high[None])
    known = truth(pattern, i, j, L)
    shape = (len(first), len(first))
    somewhere, everywhere = known.somewhere.expand(shape), known.everywhere.expand(shape)
    full = torch.ones(len(first), dtype=torch.bool)
    row, column = everywhere.nonzero().T
    found = [(row.repeat_interleave(size), positions(column, size).flatten())]
    for part in (somewhere & ~everywhere).nonzero().split(max(1, CHUNK // size**2)):
        row, column = part.T
        used, doubt = _used_keys(pattern, row, column, L, size)
        full[row[doubt]] = False
        block, key = used.nonzero().T
        found.append((row[block], column[block] * size + key))
    rows, keys = (torch.cat(x) for x in zip(*found, strict=True))
    order = torch.from_numpy(np.sort((rows * L + keys)[keys < L].numpy()))  # torch is slower
    return KeyLists(order % L, torch.bincount(order // L, minlength=len(first)), full)


def _used_keys(
    pattern: Pattern, row: Int[Tensor, " n"], column: Int[Tensor, " n"], L: int, size: int
) -> tuple[Bool[Tensor, "n size"], Bool[Tensor, " n"]]:
    """Which keys of these blocks are used, and in which blocks that is not a matter of whole keys.

    Each key is tried against the block of queries, and each query against the block of keys: fixed
    attention is decided by the first, random keys by the second. Pairs are evaluated along the one
    that leaves fewer in doubt.
    """
    i, j = positions(row, size), positions(column, size)
    rows = Interval(i[:, :1], i[:, -1:].clamp(max=L - 1))
    columns = Interval(j[:, :1], j[:, -1:].clamp(max=L - 1))
    i_, j_ = i.clamp(max=L - 1), j.clamp(max=L - 1)
    by_key = truth(pattern, rows, Interval(j_, j_), L)
    by_query = truth(pattern, Interval(i_, i_), columns, L)
    used, some_queries = (
        by_key.everywhere.expand(j.shape).clone(),
        by_query.somewhere.expand(i.shape),
    )
    keys = by_key.somewhere.expand(j.shape) & ~used
    rather_keys = keys.sum(1) <= some_queries.sum(1)
    block, key = (keys & rather_keys[:, None]).nonzero().T
    used[block, key] = holds(pattern, i[block], j[block, key][:, None], L).any(-1)
    block, query = (some_queries & ~rather_keys[:, None]).nonzero().T
    pairs = holds(pattern, i[block, query][:, None], j[block], L)
    used = used | torch.zeros(used.shape, dtype=torch.int).index_add_(0, block, pairs.int()).bool()
    return used, (used & keys).any(1)
