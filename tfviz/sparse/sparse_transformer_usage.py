"""Three ways to use factorised attention: interleaved, merged, one head each.

Child, Gray, Radford, Sutskever 2019 (arXiv 1904.10509), section 5.1. With p factors A⁽¹⁾ … A⁽ᵖ⁾

    interleaved   Attend(X, A⁽¹⁺⁽ⁿ ᵐᵒᵈ ᵖ⁾⁾) Wᵒ    layer n = 0, 1, … uses one factor, they take turns
    merged        Attend(X, ⋃ₘ A⁽ᵐ⁾) Wᵒ           every head of every layer uses their union
    per head      concat(Attend(X, A⁽¹⁾), …) Wᵒ    heads of one layer use different factors

Each function returns one pattern per layer, which is all that the choice amounts to; the layer
itself, `MultiHeadAttention(d, h, core=Sparse, pattern=…)`, does not know which of the three it
serves. Papers number layers and factors from 1 or from both; here layers count from 0, so that the
first layer uses A⁽¹⁾.

>>> interleaved((patterns.causal(), patterns.full()), 3)
[causal(), full(), causal()]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.patterns import Pattern

__all__ = ["by_head", "interleaved", "merged"]


@named
def interleaved(factors: Sequence[Pattern], layers: int) -> list[Pattern]:
    """One pattern per layer: the factors take turns, the first one in layer 0."""
    _check(factors, layers)
    return [factors[n % len(factors)] for n in range(layers)]


@named
def merged(factors: Sequence[Pattern], layers: int) -> list[Pattern]:
    """One pattern per layer: every layer uses the union of the factors, under one softmax."""
    _check(factors, layers)
    return [reduce(or_, factors)] * layers


@named
def by_head(factors: Sequence[Pattern], layers: int, heads: int) -> list[Pattern]:
    """One pattern per layer: head m uses factor m mod p, each under its own softmax."""
    _check(factors, layers)
    _arguments.integer("heads", heads, len(factors))
    return [patterns.per_head(*(factors[m % len(factors)] for m in range(heads)))] * layers


def _check(factors: Sequence[Pattern], layers: int) -> None:
    if not factors:
        raise ValueError("factors is empty; give at least one pattern")
    _arguments.integer("layers", layers, 1)
