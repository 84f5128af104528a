"""What is read off formulas, against masks of many lengths."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from laws import Case

from tfviz import patterns as P
from tfviz.patterns.lookback import Span, lookback, never_revised
from tfviz.patterns.pattern import Pattern

LENGTHS = (1, 2, 7, 16, 33)


def drawn(rng: random.Random, name: str) -> Pattern:
    """A pattern of this family with random parameters."""
    family, values = P.FAMILIES[name], dict[str, Any]()
    for parameter, domain in family.domains.items():
        if domain.is_list:
            values[parameter] = rng.sample(range(4), 4)
        elif domain.high is None or domain.all_beyond:
            values[parameter] = rng.randint(domain.low, domain.low + 6)
        else:
            values[parameter] = domain.low
    return family(**values)


def masks(pattern: Pattern) -> list[torch.Tensor]:
    """Its masks at the lengths that it takes."""
    found = []
    for L in LENGTHS:
        try:
            found.append(pattern.mask(L))
        except ValueError:
            continue
    assert found, pattern
    return found


def holds(pattern: Pattern, whole: list[torch.Tensor]) -> None:
    """No key j ≤ i lies outside of its span, and what is never revised is not."""
    span = lookback(pattern)
    for mask in whole:
        i, j = (torch.arange(mask.shape[-1]) for _ in "ij")
        i, j = i[:, None], j[None]
        if span is not None:
            near = (j > i - span.last) | (j < span.first) | (j > i)
            assert not (mask & ~near).any(), (pattern, span)
        if never_revised(pattern):
            assert not mask.triu(1).any(), pattern
            L = mask.shape[-1]
            assert all(other[..., :L, :L].equal(mask) for other in whole if other.shape[-1] >= L)


@pytest.mark.parametrize("name", [*P.FAMILIES])
def test_every_family_alone_and_below_the_diagonal(name: str) -> None:
    rng = random.Random(name)
    for _ in range(4):
        pattern = drawn(rng, name)
        for one in (pattern, pattern & P.causal()):
            holds(one, masks(one))


def test_combinations_of_two() -> None:
    rng, names = random.Random(0), [*P.FAMILIES]
    for _ in range(120):
        a, b = (drawn(rng, rng.choice(names)) for _ in "ab")
        for pattern in (a | b, a & b, P.causal() & (a | b), P.causal() & ~a, P.per_head(a, b)):
            try:
                whole = masks(pattern)
            except (AssertionError, ValueError):
                continue  # of no common length
            holds(pattern, whole)


@pytest.mark.parametrize(
    ("pattern", "span"),
    [
        (P.causal(), None),
        (P.full(), None),
        (P.sliding_window(lookback=2), Span(3)),
        (P.band(radius=2) & P.causal(), Span(3)),
        (P.dilated(radius=2, dilation=3), Span(7)),
        (P.own_block(block=4), Span(4)),
        (P.image_1d(block=4, memory=3), Span(7)),
        (P.strided(stride=3), None),
        (P.causal() & P.global_tokens(count=2), Span(0, 2)),
        (P.causal() & (P.sliding_window(lookback=2) | P.global_tokens(count=4)), Span(3, 4)),
        (P.sliding_window(lookback=9) & P.sliding_window(lookback=4), Span(5)),
        (P.sliding_window(lookback=4) & ~P.column(stride=2), Span(5)),
        (P.per_head(P.sliding_window(lookback=2), P.own_block(block=8)), Span(8)),
        (P.per_head(P.sliding_window(lookback=2), P.causal()), None),
        (P.table(torch.ones(4, 4, dtype=torch.bool).tril()), None),
    ],
)
def test_spans_that_are_known(pattern: Pattern, span: Span | None) -> None:
    assert lookback(pattern) == span


def test_what_a_cache_may_take_for_granted() -> None:
    sure = P.causal(), P.strided(stride=3), P.fixed(block=4, summary=1), P.own_block(block=4)
    assert all(map(never_revised, sure))
    others = P.full(), P.band(radius=1), P.random_keys(count=1) & P.causal(), P.block_local(block=4)
    assert not any(map(never_revised, others))


# --- what it brings to the mutants ----------------------------------------------------------------

CASE = Case(
    mutants=[
        ("the narrowest of several", "Span(*(max(numbers)", "Span(*(min(numbers)"),
        ("a window without the query itself", "int(sp.floor(k / c)) + 1", "int(sp.floor(k / c))"),
        ("a floor that is taken for its fraction", "(of - b + 1) / b", "of / b"),
        ("every condition of `or` needs no order", "else all\n", "else any\n"),
    ],
)
