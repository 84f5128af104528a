"""Attention over a pattern at the cost of its pairs: plain torch, any device, with gradients.

A pattern is taken apart by what its formula is made of, and each part is met in one of two ways:

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
>>> x = torch.ones(1, 300, 4)
>>> sparse_attention(x, x, x, patterns.strided(stride=17)).shape
torch.Size([1, 300, 4])
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product
from operator import and_

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _qkv
from tfviz.patterns.pattern import Combined, Pattern, PerHead
from tfviz.sub_quadratic import gathers, merged, windows
from tfviz.sub_quadratic.merged import Call, Plan, freshened

DENSE = 128
"""Up to this length one masked product is the quickest way."""


def sparse_attention(
    Q: Float[Tensor, "*heads L d"],
    K: Float[Tensor, "*heads L d"],
    V: Float[Tensor, "*heads L dv"],
    pattern: Pattern,
) -> Float[Tensor, "*heads L dv"]:
    """`attention(Q, K, V, pattern)[0]` without the L × L scores.

    Any length, any parameters of the pattern, any leading dimensions; a pattern that differs by
    head wants the heads in the third dimension from the end. A query without any key gives 0.

    Raises TypeError or ValueError for shapes, dtypes or lengths that do not fit, and for NaN.
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
        q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
        out = merged.attend(q, k, v, plan(heads[0], Q.shape[-2]))
        return out.reshape(*Q.shape[:-1], V.shape[-1])
    if Q.dim() < 3 or Q.shape[-3] != len(heads):
        raise ValueError(
            f"{pattern!r} has {len(heads)} heads, Q has shape {tuple(Q.shape)}; "
            f"give Q, K, V of shape (…, {len(heads)}, L, d)"
        )
    split = zip(heads, Q.unbind(-3), K.unbind(-3), V.unbind(-3), strict=True)
    return torch.stack([sparse_attention(q, k, v, head) for head, q, k, v in split], -3)


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
