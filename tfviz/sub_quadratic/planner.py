"""A pattern taken apart into calls, each a set of pairs that one product of matrices meets.

Each part of the pattern's formula is met in one of two ways:

* **windows**: everything depends on the offset i - j (band, sliding window, dilated, column,
  causal, full), or on that of blocks (own block, window of blocks), in any combination. Positions
  are split by their residue modulo the gap; overlapping blocks of keys are views, not copies.
* **gathers**: anything else. A block of queries gathers the keys that one of them may use, found
  from the formula (`key_lists`), and masks them exactly. What intervals of positions cannot decide
  is evaluated pair by pair, in chunks: at worst (tables) L² evaluations without L² memory, once for
  a pattern and a length. A pattern in which 64 neighbours together use most of the keys costs what
  dense attention costs.

The parts have no pair in common; `merged` puts them under one softmax.

>>> from tfviz import patterns
>>> [call.scores for call in plan(patterns.own_block(block=150), 300)]  # half of 300²
[45000]
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product
from operator import and_

import torch

from tfviz.patterns.pattern import Combined, Pattern, PerHead
from tfviz.sub_quadratic import gathers, windows
from tfviz.sub_quadratic.merged import Call, Plan, freshened

DENSE = 128
"""Up to this length one masked product is the quickest way."""


def by_head(pattern: Pattern) -> tuple[Pattern, ...]:
    """The plain pattern of each head; one if the pattern does not differ by head."""
    if isinstance(pattern, PerHead):
        return pattern.parts
    if not isinstance(pattern, Combined):
        return (pattern,)
    parts = [by_head(part) for part in pattern.parts]
    counts = {len(part) for part in parts} - {1}
    if not counts:
        return (pattern,)
    if len(counts) > 1:
        raise ValueError(f"{pattern!r} joins patterns of {sorted(counts)} heads; use one number")
    h = counts.pop()
    columns = zip(*(part * (h // len(part)) for part in parts), strict=True)
    return tuple(pattern.with_parts(column) for column in columns)


@lru_cache(maxsize=16)
def plan(pattern: Pattern, L: int) -> Plan:
    """The calls for a pattern and a length. The pairs of a window are met once, by the first of
    the windows that has them; what is in no window is gathered."""
    with torch.inference_mode(False):  # a plan outlives the mode that it was made in
        if L <= DENSE:
            return freshened(gathers.calls(pattern, L), L)
        calls: list[Call] = []
        before: list[Pattern] = []
        rest: list[Pattern] = []
        for part in _parts(pattern, L):
            window = windows.offsets(_without(part, before), L)
            if window is not None:
                calls += windows.calls(_without(part, before), window, L)
                before.append(part)
            elif windows.offsets(part, L) is None:
                rest.append(part)
        for part in rest:
            calls += gathers.calls(_without(part, before), L)
            before.append(part)
        return freshened(calls, L)


def _without(pattern: Pattern, others: list[Pattern]) -> Pattern:
    return reduce(lambda left, other: left & ~other, others, pattern)


def _parts(pattern: Pattern, L: int) -> tuple[Pattern, ...]:
    """Patterns whose union this is, windows where possible; the smallest gap first."""
    parts = _union(pattern, L)
    found = {part: windows.offsets(part, L) for part in parts}
    return tuple(sorted(parts, key=lambda part: w.gap if (w := found[part]) else 1))


def _union(pattern: Pattern, L: int) -> tuple[Pattern, ...]:
    window = windows.offsets(pattern, L)
    if window is not None and window.solid:
        return (pattern,)
    pattern = pattern.written_out(L)
    match pattern:
        case Combined(op="or"):
            return tuple(part for p in pattern.parts for part in _union(p, L))
        case Combined(op="and"):
            unions = [_union(part, L) for part in pattern.parts]
            if any(len(union) > 1 for union in unions):
                return tuple(reduce(and_, factors) for factors in product(*unions))
    return (pattern,)
