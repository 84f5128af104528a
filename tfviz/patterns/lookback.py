"""How far back a pattern looks, for every length at once: read off its formula.

Of the keys that come no later than the query i, a sliding window sees the last ℓ + 1, attention
sinks see the first ones as well, and a causal pattern sees all. What no later query will see need
not be kept (`tfviz.past`). The answer may be too large, where a formula says less than it could,
and is never too small.

>>> from tfviz import patterns
>>> lookback(patterns.sliding_window(lookback=2))
Span(last=3, first=0)
>>> near = patterns.sliding_window(lookback=2) | patterns.global_tokens(count=4)
>>> lookback(patterns.causal() & near)
Span(last=3, first=4)
>>> print(lookback(patterns.causal()))
None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import sympy as sp

from tfviz.patterns.pattern import Pattern, PerHead, Table

__all__ = ["Span", "lookback", "never_revised"]


class Span(NamedTuple):
    """Keys up to the query, i − last + 1 … i, and those from 0 on, 0 … first − 1."""

    last: int
    first: int = 0


@lru_cache(maxsize=256)
def lookback(pattern: Pattern) -> Span | None:
    """All keys j ≤ i that a query i may see, of any text; None if they may be anywhere before it.

    A pattern that differs by head has the widest span of its heads.
    """
    return _each_head(pattern, _span, _widest)


@lru_cache(maxsize=256)
def never_revised(pattern: Pattern) -> bool:
    """Whether its formula shows that no query sees a key behind it, and that what a query sees does
    not change as the text grows: what a cache needs."""
    return _each_head(
        pattern, lambda condition: _is_causal(condition) and not _asks_for_length(condition), all
    )


def _each_head(
    pattern: Pattern, answer: Callable[[Any], Any], joined: Callable[[Iterable[Any]], Any]
) -> Any:
    """The answer for the condition of a pattern; for one that differs by head, of all parts."""
    if isinstance(pattern, Table):  # its condition is as long as its mask, and for one length
        return answer(sp.Symbol("unknown"))
    if isinstance(pattern, PerHead):
        return joined([_each_head(part, answer, joined) for part in pattern.parts])
    try:
        condition, values, *_ = pattern._symbolic
    except ValueError:  # a combination of patterns that differ by head
        return answer(sp.Symbol("unknown"))
    numbers = {x: values[x.name] for x in condition.free_symbols if _is_number(values, x.name)}
    return answer(condition.subs(numbers))


def _is_number(values: dict[str, Any], name: str) -> bool:
    return isinstance(values.get(name), int)


def _widest(spans: Iterable[Span | None]) -> Span | None:
    found = list(spans)
    if None in found:
        return None
    return Span(*(max(numbers) for numbers in zip(*found, strict=True)))


def _span(condition: Any) -> Span | None:
    """Where the keys j ≤ i lie for which a condition on i and j may hold."""
    if condition == sp.false:
        return Span(0)
    if isinstance(condition, sp.Or):
        return _widest(map(_span, condition.args))
    if isinstance(condition, sp.And):
        known = [span for span in map(_span, condition.args) if span is not None]
        return min(known, key=sum, default=None)
    if isinstance(condition, sp.Eq):
        return _of_equal_blocks(condition)
    at_least = _not_negative(condition)
    return None if at_least is None else _of_bound(at_least)


def _not_negative(condition: Any) -> Any:
    """The g of a condition that says g ≥ 0 about whole numbers, or None."""
    if not isinstance(condition, sp.core.relational._Inequality):
        return None
    larger, smaller = condition.gts, condition.lts
    strict = isinstance(condition, sp.StrictGreaterThan | sp.StrictLessThan)
    return larger - smaller - (1 if strict else 0)


def _of_bound(g: Any) -> Span | None:
    """Where g ≥ 0 can hold, for a g that is linear in i and j but for ⌊i/b⌋, ⌊j/b⌋, |i − j|."""
    i, j = (next((x for x in g.free_symbols if x.name == n), sp.Symbol(n)) for n in "ij")
    for distance in g.atoms(sp.Abs):
        g = g.subs(distance, i - j) if distance in (sp.Abs(i - j), sp.Abs(j - i)) else g
    g = sp.expand(g)
    for floor in g.atoms(sp.floor):  # no smaller than before: it may hold for more keys
        of, b = sp.fraction(sp.together(floor.args[0]))
        if of not in (i, j) or not b.is_Integer:
            return None
        grows = g.coeff(floor).is_positive
        g = sp.expand(g.subs(floor, of / b if grows else (of - b + 1) / b))
    a, c = g.coeff(i), g.coeff(j)
    k = sp.expand(g - a * i - c * j)
    if not (a.is_Rational and c.is_Rational and k.is_Rational):
        return None
    if c > 0 and a == -c:  # j ≥ i − k/c
        return Span(max(0, int(sp.floor(k / c)) + 1))
    if a <= 0 and c <= 0 and a + c < 0:  # j ≤ i, so −(a + c) j ≤ k
        return Span(0, max(0, int(sp.floor(k / -(a + c))) + 1))
    return None


def _of_equal_blocks(condition: Any) -> Span | None:
    """⌊i/b⌋ = ⌊j/b⌋: b keys at the most."""
    sides = [sp.fraction(sp.together(x.args[0])) for x in condition.args if x.func is sp.floor]
    if len(sides) != 2 or {str(of) for of, _ in sides} != {"i", "j"}:
        return None
    (_, b), (_, other) = sides
    return Span(int(b)) if b == other and b.is_Integer else None


def _is_causal(condition: Any) -> bool:
    """Whether a condition shows that it holds for no j > i."""
    if isinstance(condition, sp.And | sp.Or):
        holds = any if isinstance(condition, sp.And) else all
        return holds(map(_is_causal, condition.args))
    at_least = _not_negative(condition)
    if at_least is None:
        return bool(condition == sp.false)
    i, j = sp.symbols("i j")
    plain = at_least.subs({x: sp.Symbol(x.name) for x in at_least.free_symbols})
    return bool((i - j - plain).is_nonnegative or i - j == plain)


def _asks_for_length(condition: Any) -> bool:
    return any(x.name not in ("i", "j") for x in condition.free_symbols)
