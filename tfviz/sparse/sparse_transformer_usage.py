"""Three ways to use factorised attention: interleaved, merged, one head each.

Child, Gray, Radford, Sutskever 2019 (arXiv 1904.10509), section 5.2. With p factors A⁽¹⁾ … A⁽ᵖ⁾

    interleaved   Attend(X, A⁽¹⁺⁽ⁿ ᵐᵒᵈ ᵖ⁾⁾) Wᵒ    layer n = 0, 1, … uses one factor, they take turns
    merged        Attend(X, ⋃ₘ A⁽ᵐ⁾) Wᵒ           every head of every layer uses their union
    per head      concat(Attend(X, A⁽¹⁾), …) Wᵒ    heads of one layer use different factors

Each function returns one pattern per layer, which is all that the choice amounts to; the layer
itself, `SparseSelfAttention`, does not know which of the three it serves. Papers number layers and
factors from 1 or from both; here layers count from 0, so that the first layer uses A⁽¹⁾.

>>> interleaved((patterns.causal(), patterns.full()), 3)
[causal(), full(), causal()]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, patterns
from tfviz.patterns import Pattern


def interleaved(factors: Sequence[Pattern], layers: int) -> list[Pattern]:
    """One pattern per layer: the factors take turns, the first one in layer 0."""
    _check(factors, layers)
    return [factors[n % len(factors)] for n in range(layers)]


def merged(factors: Sequence[Pattern], layers: int) -> list[Pattern]:
    """One pattern per layer: every layer uses the union of the factors, under one softmax."""
    _check(factors, layers)
    return [reduce(or_, factors)] * layers


def by_head(factors: Sequence[Pattern], layers: int, heads: int) -> list[Pattern]:
    """One pattern per layer: head m uses factor m mod p, each under its own softmax."""
    _check(factors, layers)
    _arguments.integer("heads", heads, len(factors))
    return [patterns.per_head(*(factors[m % len(factors)] for m in range(heads)))] * layers


def _check(factors: Sequence[Pattern], layers: int) -> None:
    if not factors:
        raise ValueError("factors is empty; give at least one pattern")
    _arguments.integer("layers", layers, 1)


class SparseSelfAttention(nn.Module):
    """Multi-head self-attention in which query i sees the keys S_i of a pattern only.

    A pattern without heads serves all heads; one from `by_head` brings a mask for each. A row
    without keys gives zeros, so that behind a skip connection the token passes unchanged.
    The mask is kept for one length; the product is dense, which is the fastest way at the
    lengths that a lesson trains on (`tfviz.attention.sparse_attention` is the one for long rows).
    """

    def __init__(self, d: int, heads: int, pattern: Pattern) -> None:
        super().__init__()
        _arguments.integer("heads", heads, 1)
        if d % heads:
            raise ValueError(f"d = {d} is not a multiple of heads = {heads}; choose d = h · d_head")
        self.heads, self.pattern = heads, pattern
        self.projection = nn.Linear(d, 3 * d, bias=False)  # W^q, W^k, W^v of all heads
        self.output = nn.Linear(d, d, bias=False)  # W^o
        self._kept: Bool[Tensor, "*h L L"] = torch.zeros(0, 0, dtype=torch.bool)

    def mask(self, L: int) -> Bool[Tensor, "*h L L"]:
        """M of the pattern, made once per length: (L, L), or (h, L, L) per head."""
        if self._kept.shape[-1] != L:
            self._kept = self.pattern.mask(L)
            if self._kept.ndim == 3 and len(self._kept) != self.heads:
                raise ValueError(
                    f"pattern has {len(self._kept)} heads, the layer {self.heads}; "
                    f"make it with by_head(factors, layers, heads={self.heads})"
                )
        return self._kept

    def forward(self, X: Float[Tensor, "b L d"]) -> Float[Tensor, "b L d"]:
        b, L, d = X.shape
        Q, K, V = self.projection(X).view(b, L, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(Q, K, V, attn_mask=self.mask(L))  # (b, h, L, d_head)
        return self.output(out.transpose(1, 2).reshape(b, L, d))
