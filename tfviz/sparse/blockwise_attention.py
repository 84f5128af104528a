"""Blockwise attention: each head reads one block, given by a permutation of the blocks.

Qiu, Ma, Levy, Yih, Wang, Tang 2019 (arXiv 1911.02972, BlockBERT). n blocks and a permutation π of
them per head, everything counted from 0:

    M_ij = [π(⌊i n / L⌋) = ⌊j n / L⌋]
    out_b = softmax(Q_b K_π(b)ᵀ / √d_k) V_π(b),   b = 0 … n − 1

where Q_b are the L/n rows of block b. The mask says it on paper; the second line is what is
computed: n small dense products, and permuting the key blocks is only a matter of which rows to
read. Not causal in general: π(b) > b reads the future. No implementation by the authors is known
to us; the proof is that both forms agree.

>>> shift(4, 1)
(1, 2, 3, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, _fused, _qkv, patterns
from tfviz._arguments import named
from tfviz.patterns import Pattern

__all__ = ["blockwise_definition", "blockwise_self_attention"]


def shift(n: int, by: int) -> tuple[int, ...]:
    """The cyclic shift π(b) = (b + by) mod n; shift(n, 0) is the identity, i.e. block-local."""
    _arguments.integer("n", n, 1)
    return tuple((b + by) % n for b in range(n))


def heads(permutations: Sequence[Sequence[int]]) -> Pattern:
    """The pattern of a whole layer: head m reads blocks by permutation m."""
    return patterns.per_head(*(patterns.blockwise(permutation=tuple(p)) for p in permutations))


def block_starts(L: int, n: int) -> list[int]:
    """First row of each block and L at the end; blocks differ by one row if n does not divide L."""
    _arguments.integer("n", n, 1, L)
    return [-(-b * L // n) for b in range(n + 1)]  # the first i with ⌊i n / L⌋ = b is ⌈b L / n⌉


@named
def blockwise_definition(
    Q: Float[Tensor, "L d"],
    K: Float[Tensor, "L d"],
    V: Float[Tensor, "L dv"],
    permutation: Sequence[int],
) -> Float[Tensor, "L dv"]:
    """The stacked equation, one block after the other; any L >= n."""
    n = _order([permutation], 1).shape[1]
    starts = block_starts(len(Q), n)
    rows = [slice(a, b) for a, b in pairwise(starts)]
    out = []
    for b, target in enumerate(permutation):
        scores = Q[rows[b]] @ K[rows[target]].T / sqrt(Q.shape[-1])  # Q_b K_π(b)^T / √d_k
        out.append(torch.softmax(scores, -1) @ V[rows[target]])
    return torch.cat(out)


@named
def blockwise_self_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    permutations: Sequence[Sequence[int]],
) -> Float[Tensor, "b h L dv"]:
    """All heads at once in O(L² d / n): gather the key blocks, then one batched dense product."""
    _qkv.check(Q, K, V, self_attention=True)
    b, h, L, _ = Q.shape
    order = _order(permutations, h)  # (h, n)
    n = order.shape[1]
    if L % n:
        raise ValueError(
            f"L = {L} is not a multiple of n = {n} blocks; choose n that divides L, "
            "or use blockwise_definition, which takes uneven blocks"
        )

    def blocks(X: Tensor) -> Tensor:
        return X.reshape(b, h, n, L // n, X.shape[-1])  # (b, h, n, L/n, d): a view

    def read(X: Tensor) -> Tensor:
        return blocks(X)[:, torch.arange(h)[:, None], order]  # block π_m(b) of head m

    q, k, v = (X.flatten(0, 1) for X in (blocks(Q), read(K), read(V)))  # (b·h, n, L/n, d)
    out = _fused.attention(q, k, v)
    return out.reshape(b, h, L, V.shape[-1])


def _order(permutations: Sequence[Sequence[int]], h: int) -> Tensor:
    if len(permutations) != h:
        raise ValueError(f"permutations has {len(permutations)} members for h = {h}; one per head")
    n = len(permutations[0])
    for p in permutations:
        if sorted(p) != list(range(n)):
            raise ValueError(
                f"permutation = {tuple(p)} is not a permutation of 0 … {n - 1}; "
                "list each block exactly once, the same number of blocks in every head"
            )
    return torch.tensor([list(p) for p in permutations])


def shifts_reach_all(n: int, shifts: Sequence[int], layers: int = 2) -> bool:
    """Whether heads with these cyclic shifts connect all pairs of tokens in `layers`, with skips.

    Token i hears the whole block b + s₁ + … + s_k (mod n) for any k of the shifts: the sums of 1
    to `layers` shifts must be all of Zₙ. The skip lets a layer pass (k smaller than `layers`) but
    keeps the token only, not its block, so that k = 0 does not count.
    """
    _arguments.integer("n", n, 1)
    _arguments.integer("layers", layers, 1)
    sums = {0}  # of k shifts
    heard: set[int] = set()
    for _ in range(layers):
        sums = {(a + s) % n for a in sums for s in shifts}
        heard |= sums
    return len(heard) == n
