"""Strided factorised attention: first along the row, then down the column.

Child, Gray, Radford, Sutskever 2019 (arXiv 1904.10509), section 4.3. 0-based, stride ℓ ≈ √L:

    A⁽¹⁾ᵢ = {j : max(0, i − ℓ) ≤ j ≤ i}             the last ℓ tokens and i    (sliding window)
    A⁽²⁾ᵢ = {j ≤ i : (i − j) mod ℓ = 0}             every ℓ-th token before i  (column)
    Attend(X, S) = (softmax(qᵢ K_Sᵢᵀ / √d_k) V_Sᵢ)ᵢ

What is factored is who can hear whom: A⁽²⁾ after A⁽¹⁾ connects every j ≤ i in two hops with about
2√L keys per row. No matrix of weights is decomposed. The paper states j ≤ i once for all its sets
(section 4.2), here each says it; both contain i and i − ℓ, so they are not disjoint. The formulas
live in `tfviz.patterns`; here is what can be done with the pair.

>>> relay(63, 5, stride=8)
7
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.patterns import Pattern
from tfviz.sub_quadratic import sparse_attention

__all__ = ["best_stride", "strided_attention"]


def factors(stride: int) -> tuple[Pattern, Pattern]:
    """(A⁽¹⁾, A⁽²⁾): the sliding window of lookback ℓ and the column of stride ℓ."""
    _arguments.integer("stride", stride, 1)
    return patterns.sliding_window(lookback=stride), patterns.column(stride=stride)


def radix_factors(base: int, p: int) -> tuple[Pattern, ...]:
    """(A⁽¹⁾, …, A⁽ᵖ⁾): factor m changes digit m of the distance i − j written in base ℓ.

        A⁽ᵐ⁾ᵢ = {i − a ℓᵐ⁻¹ : 0 ≤ a < ℓ}

    p hops reach every distance below ℓᵖ, with p·ℓ keys per row: ℓ = ⌈L^(1/p)⌉ covers length L.
    p = 2 is the strided pair without its two overlaps (window ℓ − 1, column of ℓ keys).
    """
    _arguments.integer("base", base, 2)
    _arguments.integer("p", p, 1)
    return tuple(
        patterns.causal() & patterns.dilated(radius=base - 1, dilation=base**m) for m in range(p)
    )


def attend(
    Q: Float[Tensor, "L d"],
    K: Float[Tensor, "L d"],
    V: Float[Tensor, "L dv"],
    sets: Sequence[Sequence[int]],
) -> Float[Tensor, "L dv"]:
    """Attend(X, S) as literally as the equation, for one head; `sets[i]` lists S_i.

    A row without keys gives zeros.
    """
    if len(sets) != len(Q):
        raise ValueError(f"sets has {len(sets)} members for {len(Q)} queries; give one S_i per row")
    rows = []
    for q, S in zip(Q, sets, strict=True):
        scores = K[list(S)] @ q / sqrt(len(q))  # q_i K_S^T / √d_k: |S_i| numbers
        rows.append(torch.softmax(scores, 0) @ V[list(S)])  # an empty sum is 0
    return torch.stack(rows)


@named
def strided_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    stride: int,
) -> Float[Tensor, "b h L dv"]:
    """Merged strided attention in O(L (ℓ + L/ℓ) d): one softmax over A⁽¹⁾ ∪ A⁽²⁾, any L."""
    return sparse_attention(Q, K, V, patterns.strided(stride=stride))


def relay(i: int, j: int, stride: int) -> int:
    """The token m that carries j to i: j ∈ A⁽¹⁾ₘ in the first layer, m ∈ A⁽²⁾ᵢ in the second.

    i − j = a·ℓ + r with 0 ≤ r < ℓ gives m = j + r: r steps along the row, then a down the column.
    """
    _arguments.integer("j", j, 0, i)
    _arguments.integer("stride", stride, 1)
    return j + (i - j) % stride


def longest_row(L: int, stride: int) -> int:
    """Keys of the last query over both factors, min(ℓ, L−1) + 1 + ⌊(L−1)/ℓ⌋ + 1."""
    _arguments.integer("L", L, 1)
    _arguments.integer("stride", stride, 1)
    return min(stride, L - 1) + 1 + (L - 1) // stride + 1


def pairs(L: int, stride: int) -> int:
    """|A⁽¹⁾| + |A⁽²⁾| in closed form: the work of the two layers together, in query–key pairs."""
    _arguments.integer("L", L, 1)
    _arguments.integer("stride", stride, 1)
    w = min(stride, L - 1)
    whole, rest = divmod(L, stride)
    row = (w + 1) * L - w * (w + 1) // 2
    return row + stride * whole * (whole + 1) // 2 + rest * (whole + 1)


@named
def best_stride(L: int) -> int:
    """The stride with the shortest longest row (the smallest, if several): close to √L."""
    return min(range(1, L + 1), key=lambda stride: longest_row(L, stride))
