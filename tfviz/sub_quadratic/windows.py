"""Windows: patterns in which everything depends on the offset i - j alone, or on that of blocks.

Such a formula can be evaluated on offsets instead of positions (`offsets`). Positions with the same
residue modulo the gap of the offsets never meet others, so each residue is a sequence of its own;
there, blocks of queries meet overlapping stretches of keys, which are views, and share one mask.

>>> from tfviz import patterns
>>> window = offsets(patterns.dilated(radius=2, dilation=3) & patterns.causal(), 20)
>>> window.low, window.high, window.gap
(0, 6, 3)
>>> offsets(patterns.global_tokens(count=1), 20) is None
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfviz.patterns.family import Leaf
from tfviz.patterns.pattern import Pattern
from tfviz.sub_quadratic.key_lists import CHUNK, Interval, Truth
from tfviz.sub_quadratic.merged import Call
from tfviz.sub_quadratic.rows import Stepped

BLOCK = 32
"""Queries in a block: small ones waste fewer pairs, large ones make the quicker products."""
ROWS = 256
"""Queries at once where the window leaves the sequence, and every block has its own keys."""


@dataclass(frozen=True)
class Window:
    """Keys j = i - t with low ≤ t ≤ high and t a multiple of gap, perhaps fewer; the same for
    every i, or for every i a whole number of units further on."""

    low: int
    high: int
    gap: int
    unit: int
    solid: bool  # all of these offsets


@lru_cache(maxsize=256)  # a plan asks for the same parts again and again
def offsets(pattern: Pattern, L: int) -> Window | None:
    """The pattern as a window; None if it is no matter of offsets, or has no pair at all."""
    t, units = torch.arange(1 - L, L), [1]
    try:
        allowed = _truth(pattern, _Position(t, 1, 1, units), _Position(t, -1, 1, units), L)
    except (TypeError, AttributeError):
        return None
    found = t[allowed.somewhere.expand(t.shape)].numpy()
    if not len(found):
        return None
    unit = math.lcm(*units)
    gap = int(np.gcd.reduce(found)) if unit == 1 else 1
    low, high, gap = int(found[0]), int(found[-1]), max(1, gap)
    return Window(low, high, gap, unit, unit == 1 and len(found) == (high - low) // gap + 1)


class _Position:
    """i or j of the pairs at all offsets t = i - j. Raises TypeError for anything else."""

    def __init__(self, t: Tensor, sign: int, unit: int, units: list[int]) -> None:
        self.t, self.sign, self.unit, self.units = t, sign, unit, units

    def __floordiv__(self, n: int) -> _Position:
        self.units.append(self.unit * n)
        return _Position(self.t, self.sign, self.unit * n, self.units)

    def __sub__(self, other: Any) -> Interval:
        if not isinstance(other, _Position) or (self.sign, self.unit) != (-other.sign, other.unit):
            raise TypeError("not a difference of i and j")
        apart = Interval(self.t // self.unit, -(-self.t // self.unit))  # by where the blocks begin
        return apart if self.sign == 1 else -apart

    def __ge__(self, other: Any) -> Truth:
        if isinstance(other, int) and other <= 0:
            return _constant(True)
        return self - other >= 0

    def __le__(self, other: Any) -> Truth:
        return self - other <= 0

    def __gt__(self, other: Any) -> Truth:
        return self - other > 0

    def __lt__(self, other: Any) -> Truth:
        return self - other < 0

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return self - other == 0

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return self - other != 0


def _constant(value: bool) -> Truth:
    return Truth(torch.tensor(value), torch.tensor(value))


def _truth(pattern: Pattern, i: _Position, j: _Position, L: int) -> Truth:
    def of_leaf(leaf: Pattern) -> Truth:
        if not isinstance(leaf, Leaf):
            raise TypeError("a table has no formula")
        found = leaf.family.function(i, j, **leaf.values_at(L))
        if not isinstance(found, Truth):
            raise TypeError("not decided by offsets")
        return found

    return pattern.evaluated(of_leaf)


def calls(pattern: Pattern, window: Window, L: int) -> list[Call]:
    """The pairs of a pattern that is this window."""
    gap = window.gap
    n = -(-L // gap)
    long = L - (n - 1) * gap  # so many residues have n positions, the others one less
    return [
        call
        for first, residues, length in ((0, long, n), (long, gap - long, n - 1))
        if residues and length
        for call in _Residues(pattern, window, L, first, residues, length).calls()
    ]


@dataclass(frozen=True)
class _Residues:
    """Sequences first, first + 1, … of n positions each, every gap-th position of all L."""

    pattern: Pattern
    window: Window
    L: int
    first: int
    residues: int
    n: int

    def calls(self) -> Iterator[Call]:
        low = max(-(-self.window.low // self.window.gap), 1 - self.n)
        high = min(self.window.high // self.window.gap, self.n - 1)
        if low > high:
            return
        unit = self.window.unit
        size = unit * max(1, BLOCK // unit)
        if 2 * size > self.n or size > max(ROWS, 1 + high - low):  # blocks far too long
            yield from self._rows(0, self.n, low, high)
            return
        # a block far inside, on positions that may lie beyond L: it is like every other
        inside = -(-self.n // unit) * unit
        mask = self._mask(inside, size, inside - high, size + high - low)
        used = mask.any(0).nonzero().flatten()
        if len(used):
            left, right = int(used[0]) - high, int(used[-1]) - high
            start = -(min(0, left) // unit) * unit
            blocks = (self.n - max(0, right - size + 1) - start) // size
            if blocks >= 2:
                yield from self._rows(0, start, low, high)
                queries = self._stepped(start, blocks, size, size)
                keys = self._stepped(start + left, blocks, right - left + 1, size)
                yield _call(queries, keys, mask[:, left + high : right + high + 1])
                yield from self._rows(start + blocks * size, self.n, low, high)
                return
        yield from self._rows(0, self.n, low, high)

    def _rows(self, start: int, end: int, low: int, high: int) -> Iterator[Call]:
        """The queries start … end - 1, with the keys that any of a block of them may use."""
        if start == end:
            return
        if self.window.solid and low == 1 - self.n and high == self.n - 1:  # full
            yield Call(self._stepped(start, 1, end - start), self._stepped(0, 1, self.n))
        elif self.window.solid and low >= 0 and start == 0 and end - 1 <= high:  # causal
            if end > low:
                size = end - low
                yield Call(self._stepped(low, 1, size), self._stepped(0, 1, size), causal=size > 1)
        else:
            for first in range(start, end, ROWS):
                rows = min(ROWS, end - first)
                a, b = max(0, first - high), min(self.n, first + rows - low)
                mask = self._mask(first, rows, a, max(0, b - a))
                used = mask.any(0).nonzero().flatten()
                if len(used):
                    left, right = int(used[0]), int(used[-1]) + 1
                    queries = self._stepped(first, 1, rows)
                    keys = self._stepped(a + left, 1, right - left)
                    yield _call(queries, keys, mask[:, left:right])

    def _mask(self, query: int, queries: int, key: int, keys: int) -> Tensor:
        gap = self.window.gap
        i, j = query + torch.arange(queries), key + torch.arange(keys)
        some = i.split(max(1, CHUNK // max(1, keys)))
        held = [self.pattern.holds(gap * i[:, None], gap * j[None], self.L) for i in some]
        return torch.cat([h.expand(len(i), keys) for h, i in zip(held, some, strict=True)])

    def _stepped(self, first: int, groups: int, size: int, step: int = 0) -> Stepped:
        gap = self.window.gap
        return Stepped(self.first + gap * first, groups, size, step, gap, self.residues)


def _call(queries: Stepped, keys: Stepped, mask: Tensor) -> Call:
    m, n = mask.shape
    causal = m == n > 1 and mask.equal(torch.ones_like(mask).tril())
    return Call(queries, keys, None if causal or mask.all() else mask[None].clone(), causal)
