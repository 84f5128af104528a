"""Poolingformer: near keys one by one, then a wider window of pooled keys.

Zhang, Gong, Shen, Li, Lv, Duan, Chen 2021 (arXiv 2105.04371). Two attentions in one layer. The
first is a window of w₁ tokens on each side. The second reads its output Y, with projections of its
own: the 2 w₂ + 1 keys and values around a query are pooled, κ neighbours into one, a step of ξ
tokens from one to the next,

    y_i = attn(q_i, K_N, V_N)             N: the tokens j with |i − j| ≤ w₁
    z_i = attn(q'_i, pool(K'_W), pool(V'_W))      W: those with |i − j| ≤ w₂;  Q', K', V' made of Y
    out = Y + Z

A query has (2 w₂ + 1 − κ)/ξ + 1 pooled keys. The slots are counted from the left end of a query's
own window, so neighbouring queries pool other groups; each of them is a mean of κ neighbours
somewhere, so all are made once, and a query reads every ξ-th. Here κ is odd and a slot is centred
at the query, as with κ = ξ = 3 and w₂ = 4: positions −4 … −2, −1 … 1, 2 … 4. At the ends of a text
a slot pools what is there.

We have no code of the authors. That level 2 reads level 1's output, with a residual between, is
the paper's; that its own pooling is a dynamic convolution we know second-hand, so it is not here.

>>> import torch
>>> mean_pool(torch.tensor([[3.0], [6.0], [9.0]]), 3).T  # slots centred at −1, 0, 1, 2, 3
tensor([[3.0000, 4.5000, 6.0000, 7.5000, 9.0000]])
>>> slots(w2=4, kernel=3, stride=3)
3
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.cores import Sparse, Where
from tfviz.dense_attention import FULL, attention
from tfviz.models.blocks import AttentionMask, MultiHeadAttention, Seq
from tfviz.patterns import band, dilated
from tfviz.sub_quadratic import sparse_attention

__all__ = [
    "PooledWindow",
    "Poolingformer",
    "max_pool",
    "mean_pool",
    "pooled_window_attention",
    "pooled_window_definition",
    "slots",
    "two_levels",
]

Pool = Callable[[Tensor, int], Tensor]
"""Of L vectors, the L + κ − 1 pooled ones whose κ positions are in the text, at least in part."""


@named
def mean_pool(X: Float[Tensor, "*b L d"], kernel: int) -> Float[Tensor, "*b centres d"]:
    """The mean of `kernel` neighbours, of those that are there."""
    ones = X.new_ones(X.shape[-2], 1)
    total, count = (_windows(x, kernel, 0.0).sum(-1) for x in (X, ones))
    return total / count


@named
def max_pool(X: Float[Tensor, "*b L d"], kernel: int) -> Float[Tensor, "*b centres d"]:
    """The largest of `kernel` neighbours, number by number. No matrix applies that to values."""
    return _windows(X, kernel, -math.inf).amax(-1)


def _pooled(pool: Pool) -> Pool:
    if not callable(pool):
        raise TypeError(f"pool = {pool!r}; give a function of vectors and a width: mean_pool")
    return pool


def _windows(X: Tensor, kernel: int, fill: float) -> Float[Tensor, "*b centres d kernel"]:
    """All runs of `kernel` positions that meet the text, without a copy."""
    return F.pad(X, (0, 0, kernel - 1, kernel - 1), value=fill).unfold(-2, kernel, 1)


@named
def slots(w2: int, kernel: int, stride: int) -> int:
    """How many pooled keys a query has. Raises ValueError unless the slots fill 2 w₂ + 1 tokens."""
    kernel, stride = (
        _arguments.integer("kernel", kernel, 1),
        _arguments.integer("stride", stride, 1),
    )
    w2 = _arguments.integer("w2", w2, 0)
    if kernel % 2 == 0:
        raise ValueError(
            f"kernel = {kernel} has no token in its middle; give an odd one, e.g. {kernel + 1}"
        )
    sides, rest = divmod(w2 - kernel // 2, stride)
    if rest or sides < 0:
        good = kernel // 2 + stride * max(sides, 0)
        raise ValueError(
            f"slots of {kernel} tokens, {stride} apart and one at the query, do not end at w2 = "
            f"{w2}; give w2 = {good} or {good + stride}"
        )
    return 2 * sides + 1


@named
def pooled_window_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    w2: int,
    kernel: int,
    stride: int,
    pool: Pool = mean_pool,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L centres"]]:
    """The output, and how much each query takes of each slot; the first is centred at −κ//2."""
    mask = _read(Q.shape[-2], w2, kernel, stride).to(Q.device)
    return attention(Q, pool(K, kernel), pool(V, kernel), mask)


def _read(L: int, w2: int, kernel: int, stride: int) -> Bool[Tensor, "L centres"]:
    """Which slots a query reads."""
    sides = slots(w2, kernel, stride) // 2
    centre = torch.arange(-(kernel // 2), L + kernel // 2)
    away = centre - torch.arange(L)[:, None]
    return (away % stride == 0) & (away.abs() <= sides * stride)


@named
def pooled_window_attention(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    w2: int,
    kernel: int,
    stride: int,
    pool: Pool = mean_pool,
) -> Float[Tensor, "*b L dv"]:
    """The same in O(L · slots · d): the slots that queries read are a band with holes."""
    sides = slots(w2, kernel, stride) // 2
    _qkv.check(Q, K, V, self_attention=True)
    _pooled(pool)
    half = kernel // 2
    queries = F.pad(Q, (0, 0, half, half))  # one for each slot: those before and after are no rows
    pattern = dilated(radius=sides, dilation=stride)
    out = sparse_attention(queries, pool(K, kernel), pool(V, kernel), pattern)
    return out[..., half : half + Q.shape[-2], :]


class PooledWindow(nn.Module):
    """The second level as a core: a window of w₂ tokens on each side, pooled.

    w2, kernel, stride   so that the slots fill the window; see `slots`
    pool                 `mean_pool` or `max_pool`

    It looks both ways, and does not know padding, caches, or patterns other than full.
    """

    @named
    def __init__(self, w2: int, kernel: int, stride: int, pool: Pool = mean_pool) -> None:
        super().__init__()
        slots(w2, kernel, stride)
        self.w2, self.kernel, self.stride, self.pool = w2, kernel, stride, _pooled(pool)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("slots pool tokens on both sides of a query", "slots"):
            raise ValueError(
                "pattern = causal(): the slots pool tokens after the query, too; Poolingformer is "
                "for encoders: give pattern = full()"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        sizes = self.w2, self.kernel, self.stride
        out = pooled_window_attention(Q, K, V, *sizes, self.pool)
        if not where.need_weights or self.pool is not mean_pool:
            return out, None
        read = pooled_window_definition(Q, K, V, *sizes)[1]
        one = torch.eye(Q.shape[2], dtype=Q.dtype, device=Q.device)
        return out, read @ mean_pool(one, self.kernel)


class Poolingformer(nn.Module):
    """Both levels in the place of an attention: `BERT(…, mix=two_levels(w1=8, w2=40, …))`.

    Each level is a multi-head attention with projections of its own; the second reads what the
    first has found, and both are added.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        *,
        w1: int,
        w2: int,
        kernel: int,
        stride: int,
        pool: Pool = mean_pool,
        pattern: Any = None,
    ) -> None:
        super().__init__()
        if pattern not in (None, FULL):
            raise ValueError(
                f"pattern = {pattern!r}: the levels bring windows of their own, which look both "
                "ways; Poolingformer is for encoders: give no pattern"
            )
        self.near = MultiHeadAttention(d, h, core=Sparse, pattern=band(radius=w1))
        self.far = MultiHeadAttention(
            d, h, core=lambda: PooledWindow(w2, kernel, stride, pool), pattern=FULL
        )

    @named
    def forward(
        self, X: Seq, memory: Any = None, attention_mask: AttentionMask = None, cache: Any = None
    ) -> Seq:
        if cache is not None:
            raise ValueError("a cache cannot keep windows that look ahead: call it without one")
        Y = self.near(X, memory, attention_mask)
        return Y + self.far(Y, memory, attention_mask)


@named
def two_levels(
    w1: int, w2: int, kernel: int, stride: int, pool: Pool = mean_pool
) -> Callable[..., Any]:
    """What `BERT` takes as `mix`. Raises ValueError unless the slots fill the wider window."""
    slots(w2, kernel, stride)
    return partial(Poolingformer, w1=w1, w2=w2, kernel=kernel, stride=stride, pool=pool)
