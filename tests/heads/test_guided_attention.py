"""Guided heads: targets by hand, floors against gradient descent, who is pushed, the schedule."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz import BERT, GPT, patterns
from tfviz.heads.guided_attention import (
    PATTERNS,
    floors,
    guidance,
    guided_loss,
    strength,
    targets,
)
from tfviz.models.use import watched

close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)
L = 5

GOLDEN = {
    "same": "10000 01000 00100 00010 00001",
    "next": "01000 00100 00010 00001 00000",
    "previous": "00000 10000 01000 00100 00010",
    "first": "10000 10000 10000 10000 10000",
}


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_targets_by_hand(pattern: str) -> None:
    rows = ["".join(str(int(x)) for x in row) for row in targets(pattern, L)]
    assert " ".join(rows) == GOLDEN[pattern]


def test_the_loss_by_hand() -> None:
    """Two tokens and "previous": row 0 is asked for nothing, row 1 for key 0."""
    A = torch.tensor([[0.5, 0.5], [0.75, 0.25]]).double()
    T = targets("previous", 2).double()
    close(guided_loss(A, T), torch.tensor((0.25 + 0.25 + 0.0625 + 0.0625) / 4).double())
    close(floors(T), torch.tensor([0.5, 0.0]).double())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_is_zero_where_the_map_is_the_target(pattern: str) -> None:
    T = targets(pattern, L).double()
    A = T.clone()
    A[T.sum(-1) == 0] = 1 / L
    close(guided_loss(A, T) * L, floors(T).mean())
    assert bool((floors(T) == 0).all()) == (pattern in ("same", "first"))
    shifted = A.roll(1, 1)
    assert guided_loss(shifted, T) > guided_loss(A, T)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("mask", [None, patterns.causal(), patterns.band(radius=1)], ids=str)
def test_floors_are_what_descent_reaches(pattern: str, mask: Any) -> None:
    """Nothing that a softmax over the visible keys can do goes below them, and all can be met."""
    T = targets(pattern, L).double()
    visible = torch.ones(L, L, dtype=torch.bool) if mask is None else mask.mask(L)
    scores = drawn(L, L).requires_grad_()
    optimiser = torch.optim.Adam([scores], 0.5)
    for _ in range(100):
        A = scores.masked_fill(~visible, -math.inf).softmax(-1)
        rows = (A - T).square().sum(-1)
        assert bool((rows.detach() >= floors(T, visible) - 1e-12).all())
        optimiser.zero_grad()
        rows.sum().backward()
        optimiser.step()
    torch.testing.assert_close(rows.detach(), floors(T, visible), atol=5e-3, rtol=0)


def test_floors_of_a_causal_map_by_hand() -> None:
    """Query i sees i + 1 keys; "next" asks for one that none of them sees."""
    T = targets("next", 4)
    close(floors(T, patterns.causal().mask(4)), torch.tensor([2.0, 1.5, 1 + 1 / 3, 0.25]))
    close(floors(targets("previous", 4), patterns.causal().mask(4)), torch.tensor([1.0, 0, 0, 0]))


# --- of a model -----------------------------------------------------------------------------------


def model(**more: Any) -> BERT:
    torch.manual_seed(0)
    return BERT(11, 12, 4, 2, **more).double()


def tokens() -> Tensor:
    return torch.randint(11, (3, L), generator=torch.Generator().manual_seed(1))


def test_of_a_model_it_is_the_sum_over_layers_and_patterns() -> None:
    bert, heads = model(), {"next": [0], "first": [2, 3]}
    with watched(bert) as attentions:
        bert(tokens())
        wanted = torch.zeros((), dtype=torch.float64)
        for attend in attentions.values():
            assert attend.seen is not None and attend.seen.A is not None
            for pattern, chosen in heads.items():
                off = attend.seen.A[:, chosen] - targets(pattern, L)
                wanted = wanted + off.square().sum() / (3 * len(chosen) * L * L)
        close(guidance(bert, heads), wanted)


def test_only_guided_heads_are_pushed() -> None:
    bert = model()
    with watched(bert) as attentions:
        bert(tokens())
        last: Any = list(attentions.values())[-1]
        (gradient,) = torch.autograd.grad(guidance(bert, {"next": [1]}), last.W_qkv.weight)
    queries, keys, of_values = gradient.split(12)
    for pushed in (queries, keys):
        by_head = pushed.unflatten(0, (4, 3)).abs().amax((1, 2))
        assert (by_head > 1e-9).tolist() == [False, True, False, False]
    assert not of_values.any()


def test_a_head_takes_its_pattern_on() -> None:
    from tfviz.position.learned_pe import Learned

    bert = model(positions=Learned(L, 12))
    optimiser = torch.optim.Adam(bert.parameters(), 0.02)
    for _ in range(150):
        with watched(bert):
            bert(tokens())
            loss = guidance(bert, {"previous": [0]})
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    floor = 2 * floors(targets("previous", L)).sum() / L**2
    assert floor <= loss < floor + 0.005


@pytest.mark.parametrize(("step", "wanted"), [(0, 8), (3, 8), (4, 8), (6, 4), (8, 0)])
def test_the_schedule_by_hand(step: int, wanted: float) -> None:
    assert strength(step, steps=8, hold=4, alpha=8.0) == wanted


def test_bad_input_is_named() -> None:
    refused("pattern = 'last' … same, next, previous, first", targets, "last", 4)
    ranges(partial(targets, "same"), L=(4, 1))
    ranges(strength, step=(4, 0, 8), steps=(8,), hold=(4, 0, 8), alpha=(100.0, 0.0))
    refused("more than one key", floors, torch.ones(3, 3))
    refused("more than one key", floors, torch.eye(3) / 2)
    refused("mask has shape (2, 2), T (3, 3)", floors, torch.eye(3), torch.ones(2, 2).bool())
    refused(
        "row without keys", floors, torch.eye(2), torch.eye(2).bool() & torch.zeros(2, 2).bool()
    )
    refused("A has shape (4, 4), T (3, 3)", guided_loss, torch.eye(4), torch.eye(3))
    bert, gpt = model(), GPT(11, 12, 4, 1).double()
    refused("nobody watches", guidance, bert, {"next": [0]})
    with watched(bert), watched(gpt):
        bert(tokens())
        gpt(tokens())
        refused("guides nobody", guidance, bert, {})
        refused("head = 4", guidance, bert, {"next": [4]})
        refused("pattern = 'next' asks for keys … never sees", guidance, gpt, {"next": [0]})
        assert guidance(gpt, {"previous": [0]}) > 0


CASE = Case(
    mutants=[
        ("the next token before", '{"same": 0, "next": 1', '{"same": 0, "next": -1'),
        ("the last in place of the first", "torch.eye(L)[:1]", "torch.eye(L)[-1:]"),
        ("floors of a row that sees all", "1 / keys.to(T)", "1 / len(T)"),
        ("a key in vain costs nothing", "wanted + 1 / keys", "1 / keys + 0 * wanted"),
        ("sums in place of means", "(A - T).square().mean()", "(A - T).square().sum()"),
        ("every head is guided", "A[:, list(chosen)], T", "A, T"),
        ("it never falls", "alpha if step < hold else", "alpha if step < steps else"),
    ],
)
