"""What cheaper attention buys: a block's operations, where two methods cross, and who is left.

    full    24 d² + 4 L d operations for one token of a block       G = (6d + L) / (6d + rD)
    cheap   24 d² + 4 D d, if a token meets D things, not L keys

A block has four d × d matrices around its attention and eight in its feed-forward layer. r says how
much longer one operation of the cheap method takes. Counted after Tay et al. 2020 (arXiv
2009.06732). `streamed` is what FlashAttention computes (Dao et al. 2022, arXiv 2205.14135, section
3.1): full attention, of which only one chunk of scores is there at a time.

>>> speedup(L=24, d=4, D=6)  # attention four times cheaper, the block 1.6 times
1.6
>>> length_for(2, d=4096, D=256, r=4.0)
26624.0
>>> front({"full": (1.0, 2.0), "window": (0.5, 2.0), "average": (0.4, 2.5)})
['window', 'average']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, _qkv
from tfviz._arguments import named

__all__ = ["block_flops", "crossing", "front", "length_for", "objection", "speedup", "streamed"]

Exactness = Literal["any", "linear", "exact"]
"""From what blurs keys, or does not look at them, over what meets fewer keys, each by itself, to
what compares every query with every key."""
ORDER: tuple[Exactness, ...] = ("any", "linear", "exact")


@named
def block_flops(L: int, d: int, D: int | None = None) -> int:
    """Operations of a block for one token that meets D things, or, if D is None, all L tokens."""
    _arguments.integer("L", L, 1)
    _arguments.integer("d", d, 1)
    met = L if D is None else _arguments.integer("D", D, 1)
    return 24 * d * d + 4 * met * d


@named
def speedup(L: float, d: int, D: float, r: float = 1.0) -> float:
    """How many times less time a block takes, if time is operations, and r for a cheap one."""
    for name, value in {"L": L, "d": d, "D": D, "r": r}.items():
        _positive(name, value)
    return (6 * d + L) / (6 * d + r * D)


@named
def length_for(gain: float, d: int, D: float, r: float = 1.0) -> float:
    """The length from which on `speedup` is at least `gain`."""
    for name, value in {"gain": gain, "d": d, "D": D, "r": r}.items():
        _positive(name, value)
    return gain * (6 * d + r * D) - 6 * d


@named
def crossing(lengths: Sequence[float], ratios: Sequence[float | None]) -> float | None:
    """The length from which on a method is faster: its time ÷ full attention's stays below 1.

    Between two lengths, logarithms are joined by a line. `lengths[0]` if the ratio is below 1 from
    the start, None if it is not at the end. Lengths at the end that were not measured (None) are
    left out.
    """
    if len(lengths) != len(ratios):
        raise ValueError(f"{len(lengths)} lengths, {len(ratios)} ratios; give one for each length")
    known = [(L, ratio) for L, ratio in zip(lengths, ratios, strict=True) if ratio is not None]
    if not known or any(L is None for L in ratios[: len(known)]):
        raise ValueError(f"ratios = {list(ratios)}; give numbers, and None only at the end")
    for L, ratio in known:
        _positive("lengths", L)
        _positive("ratios", ratio)
    if known[-1][1] >= 1:
        return None
    last = known[0][0]
    for (short, before), (long, after) in pairwise(known):
        if before >= 1 > after:
            share = math.log(before) / math.log(before / after)
            last = short * (long / short) ** share
    return last


@named
def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other is at least as small as in both numbers, and smaller in one."""
    for name, pair in points.items():
        if len(pair) != 2 or not all(math.isfinite(x) for x in pair):
            raise ValueError(f"points[{name!r}] = {pair!r}; give two finite numbers")

    def beaten(name: str) -> bool:
        x, y = points[name]
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())

    return [name for name in points if not beaten(name)]


@named
def objection(
    time: float | None,
    memory: float | None,
    exactness: Exactness,
    *,
    at_most: float,
    wanted: Exactness = "any",
    sees_future: bool = False,
) -> str:
    """Why a method is out, in a word or two, or "" if it is left: the first reason that holds.

    Time and memory are those of full attention times so many, None where they were not measured; at
    most `at_most` times the memory is there. A model that writes has no place for what
    `sees_future`.
    """
    for name, value in {"exactness": exactness, "wanted": wanted}.items():
        if value not in ORDER:
            raise ValueError(f"{name} = {value!r}; choose any, linear or exact")
    _positive("at_most", at_most)
    if sees_future:
        return "sees the future"
    if ORDER.index(exactness) < ORDER.index(wanted):
        return "not exact enough"
    if time is None or memory is None:
        return "not measured"
    if memory > at_most:
        return "too much memory"
    return "slower" if time > 1 else ""


@named
def streamed(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    chunk: int,
    causal: bool = True,
) -> Float[Tensor, "b h Lq dv"]:
    """softmax(QKᵀ/√d) V, with the scores of `chunk` keys at a time: for each query, the largest
    score m so far, the sum of e^(score − m), and the sum of values with these weights."""
    _qkv.check(Q, K, V, self_attention=causal)
    _arguments.integer("chunk", chunk, 1)
    i = torch.arange(Q.shape[-2], device=Q.device)[:, None]
    wide = torch.promote_types(Q.dtype, torch.float32)
    m = torch.full_like(Q[..., :1], -math.inf, dtype=wide)
    total = torch.zeros_like(m)
    out = m.new_zeros(*Q.shape[:-1], V.shape[-1])
    for start in range(0, K.shape[-2], chunk):
        keys, values = (X[..., start : start + chunk, :].to(wide) for X in (K, V))
        scores = Q.to(wide) @ keys.mT / math.sqrt(Q.shape[-1])
        if causal:
            j = start + torch.arange(keys.shape[-2], device=Q.device)
            scores = scores.masked_fill(j > i, -math.inf)
        larger = torch.maximum(m, scores.amax(-1, keepdim=True)).detach()
        old, weights = (m - larger).exp(), (scores - larger).exp()
        total = old * total + weights.sum(-1, keepdim=True)
        out = old * out + weights @ values
        m = larger
    return (out / total).to(V.dtype)


def _positive(name: str, value: Any) -> None:
    if not _arguments.real(name, value) > 0:
        raise ValueError(f"{name} = {value}; give a number above 0")
