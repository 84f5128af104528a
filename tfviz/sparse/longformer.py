"""Longformer: a sliding window for every token, and a few tokens that read all and are read by all.

Beltagy, Peters, Cohan 2020 (arXiv 2004.05150). Token i has the keys

    S_i = {j : |i − j| ≤ (w/2) r and r divides i − j} ∪ G        i not in G
    S_i = {0, …, L − 1}                                          i in G

w counts both sides: `radius` = w/2. The gap r (dilation) may differ from head to head. Global
tokens read with projections of their own, q_g, k_g, v_g of all tokens; others read *them* with the
ordinary k and v. One softmax runs over window and G; a key in both counts once.

>>> reach(radii=[2, 2, 4], gaps=[1, 1, 3])
16
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments, _fused, _qkv, patterns
from tfviz._arguments import named
from tfviz.dense_attention import attention
from tfviz.patterns import Pattern
from tfviz.sub_quadratic import merged, plan
from tfviz.sub_quadratic.merged import Call, Plan
from tfviz.sub_quadratic.rows import Gathered, Stepped

__all__ = ["longformer_attention", "longformer_definition"]

QKV: TypeAlias = tuple[
    Float[Tensor, "b h L d"], Float[Tensor, "b h L d"], Float[Tensor, "b h L dv"]
]


def reach(radii: Sequence[int], gaps: Sequence[int] | None = None) -> int:
    """How far a message gets on each side through layers with these windows, without global tokens:
    the sum of radius · gap."""
    gaps = [1] * len(radii) if gaps is None else gaps
    if len(gaps) != len(radii):
        raise ValueError(f"{len(gaps)} gaps for {len(radii)} radii; give one for each layer")
    return sum(radius * gap for radius, gap in zip(radii, gaps, strict=True))


def window(radius: int, gap: int = 1) -> Pattern:
    """The keys on both sides, every gap-th token."""
    return (
        patterns.band(radius=radius) if gap == 1 else patterns.dilated(radius=radius, dilation=gap)
    )


def mask(
    L: int, radius: int, tokens: Iterable[int] = (), gaps: Sequence[int] = (1,)
) -> Bool[Tensor, "heads L L"]:
    """Who may read whom, for each gap."""
    every = torch.stack([window(radius, gap).mask(L) for gap in gaps])
    at = list(_checked(tokens, L))
    every[:, at] = True
    every[:, :, at] = True
    return every


@named
def longformer_definition(
    local: QKV, far: QKV, radius: int, tokens: Iterable[int] = (), gaps: Sequence[int] = (1,)
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h L L"]]:
    """(out, A) from all L² scores: `far` are q_g, k_g, v_g, of which rows in G are made."""
    L = local[0].shape[-2]
    at = list(_checked(tokens, L))
    out, A = attention(*local, mask(L, radius, at, gaps))
    out_far, A_far = attention(*far)
    is_global = torch.zeros(L, 1, dtype=torch.bool)
    is_global[at] = True
    return out_far.where(is_global, out), A_far.where(is_global, A)


@named
def longformer_attention(
    local: QKV, far: QKV, radius: int, tokens: Iterable[int] = (), gaps: Sequence[int] = (1,)
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L (w + |G|) d), with gradients.

    local    Q, K, V;  far   q_g, k_g, v_g of the same shapes: the projections of global tokens
    tokens   G, any positions, the same in the whole batch
    gaps     dilation of each head, or one for all

    Raises TypeError or ValueError for shapes that do not fit, and for tokens outside the sequence.
    """
    for QKV_ in (local, far):
        _qkv.check(*QKV_, self_attention=True)
    if local[0].shape != far[0].shape:
        raise ValueError(
            f"local queries {tuple(local[0].shape)}, global ones {tuple(far[0].shape)}; project "
            "all tokens with both"
        )
    b, h, L, _ = local[0].shape
    at = _checked(tokens, L)
    gaps = tuple(gaps) * h if len(gaps) == 1 else tuple(gaps)
    if len(gaps) != h:
        raise ValueError(f"gaps = {gaps} for {h} heads; give one for each, or one for all")
    plans = {gap: _plan(L, radius, gap, at) for gap in gaps}
    if len(plans) == 1:
        q, k, v = (x.flatten(0, 1) for x in local)
        out = merged.attend(q, k, v, plans[gaps[0]]).unflatten(0, (b, h))
    else:
        split = zip(*(x.unbind(1) for x in local), gaps, strict=True)
        out = torch.stack([merged.attend(q, k, v, plans[gap]) for q, k, v, gap in split], 1)
    if at:
        rows = torch.tensor(at, device=out.device)
        read = _fused.attention(far[0].index_select(2, rows), *far[1:])
        out = out.index_copy(2, rows, read) if out.requires_grad else out.index_copy_(2, rows, read)
    return out


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # what is kept outlives the mode that it was made in
def _plan(L: int, radius: int, gap: int, tokens: tuple[int, ...]) -> Plan:
    """The window, and the global keys of all queries that have them in no window."""
    near = window(_arguments.integer("radius", radius, 0), gap)
    calls = plan(near, L)
    if not tokens:
        return calls
    keys = torch.tensor([tokens])
    outside = ~near.holds(torch.arange(L)[:, None], keys, L)
    return (*calls, Call(Stepped(0, 1, L), Gathered(keys), outside[None]))


def _checked(tokens: Iterable[int], L: int) -> tuple[int, ...]:
    """G, sorted, without repetitions."""
    return tuple(sorted({_arguments.integer("tokens", token, 0, L - 1) for token in tokens}))
