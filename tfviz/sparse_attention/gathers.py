"""Plans for attention over sets of keys that are gathered: which queries meet which keys.

Made once for a pattern and a length (the last few are kept), with O(kept pairs) memory.
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
from tfviz.sparse_attention.key_lists import CHUNK, holds, key_lists, positions

BLOCK = 64
"""Queries that gather their keys together."""
EXACT = 8
"""So many different numbers of keys get calls of their own, without padding."""
GATHERED, POSITIONS = 2**12, 2**14
"""Keys gathered for one call, and positions of the heads done together: what stays in the cache."""


@dataclass(frozen=True)
class Call:
    """Groups of queries; each group meets its own keys in one product."""

    queries: Int[Tensor, "groups m"]
    keys: Int[Tensor, "groups n"] | None  # None: all keys, and there is one group
    mask: Bool[Tensor, "groups #m n"] | None  # None: every pair is allowed


@dataclass(frozen=True)
class Plan:
    """Calls that together answer every query once."""

    calls: tuple[Call, ...]
    order: Int[Tensor, " L"]  # where row i is in the concatenated results; the last row is zeros


def attend(
    Q: Float[Tensor, "n L d"], K: Float[Tensor, "n L d"], V: Float[Tensor, "n L dv"], plan: Plan
) -> Float[Tensor, "n L dv"]:
    """Carry out a plan: gather, one SDPA for each call, put the rows back in order."""
    step = max(1, POSITIONS // Q.shape[1])
    parts = zip(Q.split(step), K.split(step), V.split(step), strict=True)
    return torch.cat([_attend(q, k, v, plan) for q, k, v in parts])


def _attend(Q: Tensor, K: Tensor, V: Tensor, plan: Plan) -> Tensor:
    results = []
    for call in plan.calls:
        q = take(Q, call.queries)
        k, v = (x[:, None] if call.keys is None else take(x, call.keys) for x in (K, V))
        mask = None if call.mask is None else additive(call.mask, Q)
        if mask is not None:
            mask = mask.expand(-1, q.shape[2], -1)[None]
        results.append(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).flatten(1, 2))
    results.append(V[:, :1] * 0)  # for queries without keys; part of the graph, unlike new zeros
    return torch.cat(results, 1).index_select(1, plan.order.to(Q.device))


def take(x: Float[Tensor, "n L d"], at: Int[Tensor, "groups m"]) -> Float[Tensor, "n groups m d"]:
    """The rows of x at these positions; positions outside the sequence give any row."""
    flat = at.clamp(0, x.shape[1] - 1).flatten().to(x.device)
    return x.index_select(1, flat).unflatten(1, tuple(at.shape))


def additive(mask: Bool[Tensor, "..."], like: Tensor) -> Float[Tensor, "..."]:
    """0 where allowed and -infinity elsewhere: what SDPA is quickest with."""
    zeros = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return zeros.masked_fill_(~mask.to(like.device), -torch.inf)


@lru_cache(maxsize=8)
def plan(pattern: Pattern, L: int) -> Plan:
    """Every block of queries gathers the keys that it uses; blocks with similar numbers of keys
    share a call. A block that uses more than half of all keys takes them all, without a gather."""
    lists = key_lists(pattern, L, BLOCK)
    start = lists.counts.cumsum(0) - lists.counts
    many = lists.counts > L // 2
    calls: list[Call] = []
    for blocks in _alike(lists.counts.where(~many, 0)):
        count = int(lists.counts[blocks].max())
        for part in blocks.split(max(1, GATHERED // count)):
            within = torch.arange(count)
            at = (start[part, None] + within).clamp(max=len(lists.keys) - 1)
            keys = lists.keys[at].where(within < lists.counts[part, None], L)
            calls.append(_call(pattern, positions(part, BLOCK), keys, L, lists.full[part]))
    for part in many.nonzero().flatten().split(max(1, CHUNK // (BLOCK * L))):
        queries, full = positions(part, BLOCK).flatten()[None], lists.full[part]
        full = full & (lists.counts[part] == L)
        calls.append(_call(pattern, queries, torch.arange(L)[None], L, full, all_keys=True))
    return _ordered(calls, L)


def _call(
    pattern: Pattern, queries: Tensor, keys: Tensor, L: int, full: Tensor, all_keys: bool = False
) -> Call:
    if not full.all():
        mask = holds(pattern, queries[:, :, None], keys[:, None, :], L)
    else:  # but shorter lists are filled up with L, which is no key
        mask = (keys < L)[:, None]
    return Call(queries, None if all_keys else keys, None if mask.all() else mask)


def _alike(counts: Int[Tensor, " rows"]) -> list[Int[Tensor, " some"]]:
    """Rows with the same count together or, if there are many counts, with counts up to a quarter
    apart; none for those without keys."""
    if len(counts.unique()) <= EXACT:
        return [(counts == n).nonzero().flatten() for n in counts.unique() if n > 0]
    size = (counts.double().log() / math.log(1.25)).ceil()
    return [(size == s).nonzero().flatten() for s in size.unique() if s >= 0]


def _ordered(calls: list[Call], L: int) -> Plan:
    rows = torch.cat([*(call.queries.flatten() for call in calls), torch.tensor([L])])
    order = torch.full((L,), len(rows) - 1)
    inside = (rows < L).nonzero().flatten()
    order[rows[inside]] = inside
    return Plan(tuple(calls), order)
