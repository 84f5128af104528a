"""Sets of keys without such an order: blocks of queries gather the keys that one of them may use.

Made once for a pattern and a length (the last few are kept), with O(kept pairs) memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfviz.patterns.pattern import Pattern
from tfviz.sub_quadratic.key_lists import CHUNK, Interval, holds, key_lists, truth
from tfviz.sub_quadratic.merged import Call
from tfviz.sub_quadratic.rows import Gathered, Rows, Stepped

BLOCK, MOST = 64, 1024
"""Queries that gather their keys together: at least, and at most where they have most in common."""
ALIKE = 1.1
"""Blocks are joined if that makes so many times as many pairs, not more."""
EXACT = 8
"""So many different numbers of keys get calls of their own, without padding."""
ALONE = 2**17
"""A block with so many scores is a call of its own."""


@dataclass(frozen=True)
class _Blocks:
    """Blocks of `size` queries with the keys that they use: codes = block · L + key, sorted."""

    size: int
    codes: Int[Tensor, " n"]
    counts: Int[Tensor, " blocks"]
    pairs: Int[Tensor, " blocks"]  # before anything was joined
    full: Bool[Tensor, " blocks"]  # every query may use all of the keys


def calls(pattern: Pattern, L: int) -> list[Call]:
    """The pairs of any pattern. A block that uses more than half of all keys takes them all,
    without a gather; blocks with similar numbers of keys share a call."""
    found: list[Call] = []
    blocks = _first(pattern, L)
    while True:
        wider = _joined(blocks, L) if blocks.size < MOST else None
        alone = torch.ones(len(blocks.counts), dtype=torch.bool)
        if wider is not None:
            good = wider.counts * wider.size <= ALIKE * wider.pairs
            alone = ~good.repeat_interleave(2)[: len(alone)]
        found += _calls(pattern, blocks, alone & (blocks.counts > 0), L)
        if wider is None or not good.any():
            return found
        kept = good[wider.codes // L]
        none = torch.zeros_like(wider.counts)
        blocks = _Blocks(
            wider.size,
            wider.codes[kept],
            wider.counts.where(good, none),
            wider.pairs.where(good, none),
            wider.full,
        )


def _first(pattern: Pattern, L: int) -> _Blocks:
    lists = key_lists(pattern, L, BLOCK)
    rows = torch.arange(len(lists.counts)).repeat_interleave(lists.counts)
    return _Blocks(BLOCK, rows * L + lists.keys, lists.counts, lists.counts * BLOCK, lists.full)


def _joined(blocks: _Blocks, L: int) -> _Blocks:
    """Every two neighbours as one block."""
    n = -(-len(blocks.counts) // 2)
    row, key = blocks.codes // L, blocks.codes % L
    codes = torch.from_numpy(np.sort((row // 2 * L + key).numpy()))  # torch sorts more slowly
    codes = codes.unique_consecutive()
    counts = torch.bincount(codes // L, minlength=n)
    pad = torch.nn.functional.pad
    odd = len(blocks.counts) % 2
    two = pad(blocks.counts, (0, odd)).view(n, 2)
    full = pad(blocks.full, (0, odd), value=True).view(n, 2).all(1)
    full &= ((two == counts[:, None]) | (two == -odd)).all(1)
    return _Blocks(
        2 * blocks.size, codes, counts, pad(blocks.pairs, (0, odd)).view(n, 2).sum(1), full
    )


def _calls(pattern: Pattern, blocks: _Blocks, which: Tensor, L: int) -> list[Call]:
    found: list[Call] = []
    start, size = blocks.counts.cumsum(0) - blocks.counts, blocks.size
    last = torch.arange(len(which)) == L // size  # a shorter block at the end of the sequence
    many = which & (blocks.counts > L // 2)
    large = which & (blocks.counts * size > ALONE)
    apart = [b[None] for b in (which & (last | many | large)).nonzero().flatten()]
    few = which & ~last & ~many & ~large
    full = [few & blocks.full, few & ~blocks.full]
    for part in apart + [part for kind in full for part in _alike(blocks.counts.where(kind, 0))]:
        first, count = int(part[0]), int(blocks.counts[part].max())
        queries: Rows
        keys: Rows
        if len(part) == 1:
            queries = Stepped(first * size, 1, min(size, L - first * size))
        else:
            queries = Gathered(part[:, None] * size + torch.arange(size))
        if bool(many[first]) and len(part) == 1:
            keys, real = Stepped(0, 1, L), None
            is_full = blocks.full[part] & (count == L)
        else:
            within = torch.arange(count)
            real = within < blocks.counts[part, None]
            at = (start[part, None] + within).clamp(max=len(blocks.codes) - 1)
            keys = Gathered((blocks.codes[at] % L).where(real, 0))
            is_full = blocks.full[part]
        mask = _mask(pattern, queries.positions, keys.positions, real, is_full, L)
        found.append(Call(queries, keys, mask))
    return found


def _mask(
    pattern: Pattern, queries: Tensor, keys: Tensor, real: Tensor | None, full: Tensor, L: int
) -> Bool[Tensor, "groups #m n"] | None:
    """None if every query may use all of its keys. Only what is in doubt is evaluated."""
    real = torch.ones_like(keys, dtype=torch.bool) if real is None else real
    if full.all():
        return None if real.all() else real[:, None]
    ends = Interval(queries[:, :1], queries[:, -1:])
    doubt = real & ~truth(pattern, ends, Interval(keys, keys), L).everywhere & ~full[:, None]
    mask = real[:, :, None].repeat(1, 1, queries.shape[1])  # (groups, n, m)
    group, key = doubt.nonzero().T
    for g, k in zip(
        *(x.split(max(1, CHUNK // queries.shape[1])) for x in (group, key)), strict=True
    ):
        mask[g, k] = holds(pattern, queries[g], keys[g, k][:, None], L)
    return None if mask.all() else mask.transpose(1, 2).contiguous()


def _alike(counts: Int[Tensor, " rows"]) -> list[Int[Tensor, " some"]]:
    """Rows with the same count together or, if there are many counts, with counts up to a quarter
    apart; none for those without keys."""
    if len(counts.unique()) <= EXACT:
        return [(counts == n).nonzero().flatten() for n in counts.unique() if n > 0]
    size = (counts.double().log() / math.log(1.25)).ceil()
    return [(size == s).nonzero().flatten() for s in size.unique() if s >= 0]
