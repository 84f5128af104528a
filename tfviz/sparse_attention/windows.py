"""Attention over keys at offsets low … high in steps of a gap: views of blocks, no gather."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

BLOCK, BLOCK_TRAINING = 64, 128
"""Queries in a block: small ones waste fewer pairs, large ones have the quicker backward."""
EVERYWHERE = 2**62
"""An offset beyond every sequence."""


@dataclass(frozen=True)
class Offsets:
    """The keys j = i - t for low ≤ t ≤ high and t a multiple of gap; low ≤ 0 ≤ high."""

    low: int
    high: int
    gap: int = 1

    def __and__(self, other: Offsets) -> Offsets:
        gap = math.lcm(self.gap, other.gap)
        return Offsets(max(self.low, other.low), min(self.high, other.high), gap)

    def in_residue(self, n: int) -> tuple[int, int]:
        """(low, high) in units of the gap, as far as a sequence of n goes."""
        return max(-(-self.low // self.gap), 1 - n), min(self.high // self.gap, n - 1)

    def keys(self, L: int) -> int:
        """The most keys that a query has."""
        low, high = self.in_residue(-(-L // self.gap))
        return high - low + 1


def attend(
    Q: Float[Tensor, "n L d"], K: Float[Tensor, "n L d"], V: Float[Tensor, "n L dv"], at: Offsets
) -> Float[Tensor, "n L dv"]:
    """Attention over these offsets. Positions with the same residue modulo the gap never meet
    others, so each residue is a sequence of its own, in which the offsets are contiguous."""
    L, gap = Q.shape[1], min(at.gap, Q.shape[1])
    length = -(-L // gap)
    if gap == 1:
        return _window(Q, K, V, *at.in_residue(L))

    def residues(x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, 0, length * gap - L)).unflatten(1, (length, gap)).transpose(1, 2)

    q, k, v = residues(Q), residues(K), residues(V)
    long = L - (length - 1) * gap  # so many residues have `length` positions, the others one less
    results = []
    for which, n in ((slice(0, long), length), (slice(long, gap), length - 1)):
        if which.start < which.stop:
            a, b, c = (x[:, which, :n].flatten(0, 1) for x in (q, k, v))
            out = _window(a, b, c, *at.in_residue(n)).unflatten(0, (len(Q), -1))
            results.append(F.pad(out, (0, 0, 0, length - n)))
    return torch.cat(results, 1).transpose(1, 2).flatten(1, 2)[:, :L]


def _window(Q: Tensor, K: Tensor, V: Tensor, low: int, high: int) -> Tensor:
    """Keys j with low ≤ i - j ≤ high. The first `high` rows and the last rows, whose window leaves
    the sequence, are apart; between them every block of rows has the same mask."""
    L = Q.shape[1]
    training = torch.is_grad_enabled() and any(x.requires_grad for x in (Q, K, V))
    block = BLOCK_TRAINING if training else BLOCK
    if high == L - 1 and low in (0, 1 - L):  # causal or full
        out = F.scaled_dot_product_attention(
            Q[:, None], K[:, None], V[:, None], is_causal=low == 0 and L > 1
        )
        return out[:, 0]
    blocks = (L - high + low) // block
    if blocks < 2:
        return _rows(Q, K, V, 0, L, low, high)
    end = high + blocks * block
    width = block + high - low
    # unfold: (n, blocks, d, width) with block b holding the keys from b·block on, without a copy
    k, v = (x.unfold(1, width, block)[:, :blocks].transpose(-1, -2) for x in (K, V))
    q = Q[:, high:end].unflatten(1, (blocks, block))
    mask = _mask(high, block, 0, width, low, high, Q)
    middle = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).flatten(1, 2)
    first, last = (_rows(Q, K, V, a, b, low, high) for a, b in ((0, high), (end, L)))
    return torch.cat([first, middle, last], 1)


def _rows(Q: Tensor, K: Tensor, V: Tensor, start: int, end: int, low: int, high: int) -> Tensor:
    """The rows start … end - 1 with the keys that any of them may use."""
    a, b = max(0, start - high), min(Q.shape[1], end - low)
    mask = _mask(start, end - start, a, b - a, low, high, Q)
    q, k, v = Q[:, None, start:end], K[:, None, a:b], V[:, None, a:b]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[:, 0]


def _mask(
    query: int, queries: int, key: int, keys: int, low: int, high: int, like: Tensor
) -> Float[Tensor, "queries keys"]:
    """0 where low ≤ i - j ≤ high, else -infinity, for i from `query` and j from `key` on."""
    i = torch.arange(query, query + queries, device=like.device)[:, None]
    t = i - torch.arange(key, key + keys, device=like.device)
    zeros = torch.zeros(queries, keys, dtype=like.dtype, device=like.device)
    return zeros.masked_fill_((t < low) | (t > high), -torch.inf)
