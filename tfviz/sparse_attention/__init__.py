"""Attention over a pattern at the cost of its pairs: plain torch, any device, with gradients.

Three ways, chosen by the structure of the pattern:

* **windows**: keys at offsets i - j from low to high in steps of a gap (band, sliding window,
  dilated, column, causal, full and their intersections). Positions are split by their residue
  modulo the gap, where the offsets are contiguous; overlapping blocks of keys are views, not
  copies.
* **joint**: a union of several windows, one with a gap, such as the row and the column of strided
  attention: their scores meet under one softmax.
* **gathers**: anything else. A block of 64 queries gathers the keys that one of them may use, found
  from the formula (`key_lists`), and masks them exactly. What intervals of positions cannot decide
  is evaluated pair by pair, in chunks: at worst (tables) L² evaluations without L² memory, once for
  a pattern and a length. A pattern in which 64 neighbours together use most of the keys costs what
  dense attention costs.
"""

from __future__ import annotations

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _qkv, patterns
from tfviz.patterns.pattern import Pattern
from tfviz.sparse_attention import gathers, joint, windows
from tfviz.sparse_attention.windows import EVERYWHERE, Offsets


def sparse_attention(
    Q: Float[Tensor, "*heads L d"],
    K: Float[Tensor, "*heads L d"],
    V: Float[Tensor, "*heads L dv"],
    pattern: Pattern,
) -> Float[Tensor, "*heads L dv"]:
    """`attention(Q, K, V, pattern)[0]` without the L × L scores.

    Any length, any parameters of the pattern, any leading dimensions; a pattern that differs by
    head wants the heads in the third dimension from the end. A query without any key gives 0.

    Raises:
        TypeError, ValueError: shapes, dtypes or lengths that do not fit, and NaN.
    """
    if not isinstance(pattern, Pattern):
        raise TypeError(
            f"pattern is a {type(pattern).__name__}; give a Pattern: "
            "tfviz.patterns.table(mask) makes one of a Boolean mask"
        )
    _qkv.check(Q, K, V, self_attention=True)
    pattern.check_length(Q.shape[-2])
    heads = by_head(pattern)
    if len(heads) == 1:
        q, k, v = (x.reshape(-1, *x.shape[-2:]).contiguous() for x in (Q, K, V))
        return _attend(q, k, v, heads[0]).reshape(*Q.shape[:-1], V.shape[-1])
    if Q.dim() < 3 or Q.shape[-3] != len(heads):
        raise ValueError(
            f"{pattern!r} has {len(heads)} heads, Q has shape {tuple(Q.shape)}; "
            f"give Q, K, V of shape (…, {len(heads)}, L, d)"
        )
    split = zip(heads, Q.unbind(-3), K.unbind(-3), V.unbind(-3), strict=True)
    return torch.stack([sparse_attention(q, k, v, head) for head, q, k, v in split], -3)


def by_head(pattern: Pattern) -> tuple[Pattern, ...]:
    """The plain pattern of each head; one if the pattern does not differ by head."""
    if pattern.op == "heads":
        return pattern.parts
    parts = [by_head(part) for part in pattern.parts]
    counts = {len(part) for part in parts} - {1}
    if not counts:
        return (pattern,)
    if len(counts) > 1:
        raise ValueError(f"{pattern!r} joins patterns of {sorted(counts)} heads; use one number")
    h = counts.pop()
    columns = zip(*(part * (h // len(part)) for part in parts), strict=True)
    return tuple(Pattern(op=pattern.op, parts=column) for column in columns)


def _attend(Q: Tensor, K: Tensor, V: Tensor, pattern: Pattern) -> Tensor:
    offsets = _offsets(pattern)
    if offsets is not None:
        return windows.attend(Q, K, V, offsets)
    L = Q.shape[1]
    covering = _windows(pattern, L)
    if covering is not None:
        return joint.attend(Q, K, V, joint.plan(pattern, covering, L))
    return gathers.attend(Q, K, V, gathers.plan(pattern, L))


# --- what is recognised --------------------------------------------------------------------------


def _offsets(pattern: Pattern) -> Offsets | None:
    """The pattern as one window, if it is one."""
    match pattern.op or pattern.name, pattern.values:
        case "full", _:
            return Offsets(-EVERYWHERE, EVERYWHERE)
        case "causal", _:
            return Offsets(0, EVERYWHERE)
        case "band", {"radius": radius}:
            return Offsets(-radius, radius)
        case "sliding_window", {"lookback": lookback}:
            return Offsets(0, lookback)
        case "dilated", {"radius": radius, "gap": gap}:
            return Offsets(-radius * gap, radius * gap, gap)
        case "column", {"stride": stride}:
            return Offsets(0, EVERYWHERE, stride)
        case "and", _:
            parts = [_offsets(part) for part in pattern.parts]
            known = [part for part in parts if part]
            return reduce(Offsets.__and__, known) if len(known) == len(parts) else None
    return None


def _windows(pattern: Pattern, L: int) -> tuple[tuple[Pattern, Offsets], ...] | None:
    """Windows that cover this pattern together, if one of them has gaps: then its keys lie far
    apart, and blocks of queries would gather too many. None if they hold most of the keys."""
    windows = {part: _offsets(part) for part in _cover(pattern) or ()}
    known = tuple((part, offsets) for part, offsets in windows.items() if offsets)
    keys = sum(offsets.keys(L) for _, offsets in known)
    return known if keys <= L // 2 and any(offsets.gap > 1 for _, offsets in known) else None


def _cover(pattern: Pattern) -> tuple[Pattern, ...] | None:
    """Windows whose union has all pairs of this pattern, perhaps more."""
    if pattern.name == "strided":
        stride = pattern.values["stride"]
        return patterns.sliding_window(lookback=stride), patterns.column(stride=stride)
    if _offsets(pattern):
        return (pattern,)
    covers = [_cover(part) for part in pattern.parts]
    known = [cover for cover in covers if cover]
    if pattern.op == "or":
        return sum(known, ()) if len(known) == len(covers) else None
    if pattern.op == "and":  # any one part covers an intersection
        return min(known, key=len, default=None)
    return None
