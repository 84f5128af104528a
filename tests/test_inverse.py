"""The inverse search: what it finds is what it says, and nobody beats the bound."""

from __future__ import annotations

import pytest
import torch

from tfviz import patterns as P
from tfviz.explorers import SparseLab
from tfviz.patterns.inverse import sizes

RESTS_ON = ("tfviz/explorers/sparse/**",)

BUDGETS = [(16, 6, 2, True), (16, 5, 2, False), (20, 8, 3, True)]


@pytest.mark.parametrize(("L", "keys", "hops", "causal"), BUDGETS)
def test_the_lab_judges_what_is_found_as_met(L: int, keys: int, hops: int, causal: bool) -> None:
    """By goal_report, which judges the exercises; and by the library's reach and cost."""
    found = P.search(L, keys, hops, causal=causal, block=4)
    assert found.front and set(found.front) <= set(found.found)
    for one in found.front:
        goal = {"L": L, "causal": causal, "max_hops": hops, "max_keys": keys}
        stack = "AB" if len(one.stack) > 1 else "A"
        lab = SparseLab(one.stack[0], one.stack[-1], L=L, stack=stack, goal=goal)
        report = lab.goal_report()
        assert report, report.message
        assert (report.numbers["keys"], report.numbers["hops"]) == (one.keys, one.hops)
        assert one.blocks == max(p.cost(L, block=4).blocks for p in one.stack)


def test_the_front_is_what_nothing_beats() -> None:
    found = P.search(16, causal=True, block=4)
    beaten = lambda f: any(  # noqa: E731
        g.numbers != f.numbers and all(x <= y for x, y in zip(g.numbers, f.numbers, strict=True))
        for g in found.found
    )
    assert found.front == tuple(f for f in found.found if not beaten(f))
    assert len({f.numbers for f in found.found}) == len(found.found) > len(found.front)
    few, short = found.best(), found.best("hops")
    assert few is not None and short is not None
    assert few.keys == min(f.keys for f in found.found) < short.keys and short.hops == 1
    assert found.within(4, 2) == P.search(16, 4, 2, causal=True, block=4)


def test_edges_from_chance_are_counted() -> None:
    found = P.search(16, 8, 4, block=4)
    mixed = [f for f in found.found if f.random and len(f.stack) == 1 and f.stack[0].parts]
    for one in mixed:
        drawn = "random_keys", "random_blocks"
        sure = [p for p in one.stack[0].parts if isinstance(p, P.Leaf) and p.name not in drawn]
        rest = torch.zeros(16, 16, dtype=torch.bool)
        for part in sure:
            rest |= part.mask(16)
        assert one.random == int((one.stack[0].mask(16) & ~rest).sum())
    assert mixed


def test_sixty_four_tokens_in_two_hops_take_eight_keys() -> None:
    """The fold of the Sparse Transformer: 7 other tokens and oneself are the least."""
    best = P.search(64, 12, 2, causal=True).best()
    assert best is not None and (best.keys, best.hops) == (8, 2)
    assert P.impossible(64, 6, 2) and not P.impossible(64, 7, 2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_of_all_patterns_none_beats_the_bound(keys: int, causal: bool) -> None:
    """Every pattern of up to five tokens with so many other keys in a row: all were tried."""
    for L in range(2, 6):
        least = P.least_hops(L, keys, causal)
        assert least is not None and P.impossible(L, keys, least) is None
        assert least == 1 or keys < L - 1
    assert P.least_hops(5, 1, causal) == 4 and P.impossible(5, 1, 2) and not P.impossible(5, 1, 3)


def test_sizes() -> None:
    assert sizes(20) == [1, 2, 3, 4, 6, 8, 12, 16]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: P.search(1), "L = 1"),
        (lambda: P.search(513), "L = 513"),
        (lambda: P.search(16, 0), "keys = 0"),
        (lambda: P.search(16, hops=2.5), "hops = 2.5"),  # type: ignore[arg-type]
        (lambda: P.search(16, block=17), "block = 17"),
        (lambda: P.search(16, block=4).best("price"), "prefer = 'price'; choose one of keys"),
        (lambda: P.impossible(0, 1, 1), "L = 0"),
        (lambda: P.least_hops(9, 4), "choose smaller numbers"),
    ],
)
def test_bad_input(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((ValueError, TypeError), match=words.replace("(", r"\(")):
        call()


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/patterns/inverse.py": [
        (
            "search: a random part's pairs count as certain",
            "sure = bits & torch.tensor([p.name not in RANDOM for p in alone])[:, None, None]",
            "sure = bits.clone()",
        ),
        (
            "search: two in turn are two together",
            "known = spread(masks[n % 2], known) | known",
            "known = spread(masks.any(0), known) | known",
        ),
    ],
}
