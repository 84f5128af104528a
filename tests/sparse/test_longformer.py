"""Longformer: hand-typed masks, definition = windows with gradients, limits, parity, bad input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from golden import drawn
from laws import Case, Function, agree_with_gradients, work_grows_no_faster
from refusals import refused
from three import three
from torch import Tensor

from tfviz import attention
from tfviz.sparse import longformer as lf

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

PLAIN = """
    1 1 . 1 .
    1 1 1 1 .
    . 1 1 1 .
    1 1 1 1 1
    . . . 1 1
"""
GAP_2 = """
    1 . 1 1 .
    . 1 . 1 .
    1 . 1 1 1
    1 1 1 1 1
    . . 1 1 1
"""


def made(h: int = 2, L: int = 23, d: int = 4, **told: Any) -> tuple[lf.QKV, lf.QKV]:
    torch.manual_seed(0)
    options: dict[str, Any] = {"dtype": torch.float64, "requires_grad": True} | told
    six = [torch.randn(2, h, L, d, **options) for _ in range(6)]
    return (six[0], six[1], six[2]), (six[3], six[4], six[5])


def test_masks_are_the_hand_typed_ones() -> None:
    found = lf.mask(5, radius=1, tokens=[3], gaps=[1, 2])
    assert found[0].equal(drawn(PLAIN)) and found[1].equal(drawn(GAP_2))


@pytest.mark.parametrize("L", [23, 300])
@pytest.mark.parametrize(
    ("radius", "tokens", "gaps"),
    [(3, [0, 9], [1, 2]), (0, [5], [1]), (4, [], [3, 1]), (2, [22, 0, 22], [2, 2])],
)
def test_windows_do_what_the_definition_does(
    L: int, radius: int, tokens: list[int], gaps: list[int]
) -> None:
    local, far = made(L=L)
    wanted, A = lf.longformer_definition(local, far, radius, tokens, gaps)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    got = lf.longformer_attention(local, far, radius, tokens, gaps)
    leaves = [*local, *far] if tokens else list(local)
    agree_with_gradients(got, wanted, leaves)


def test_limits() -> None:
    local, far = made()
    full = attention(*local)[0]
    torch.testing.assert_close(lf.longformer_attention(local, far, 22), full)
    everyone = lf.longformer_attention(local, far, 1, range(23))
    torch.testing.assert_close(everyone, attention(*far)[0])
    same = lf.longformer_attention(local, local, 22, [0, 7])  # as the projections begin
    torch.testing.assert_close(same, full)


def test_a_key_in_window_and_globals_counts_once() -> None:
    local, far = made(L=9)
    twice = local[0] @ local[1].mT / 2
    weights = twice.exp() * lf.mask(9, 2)[0]
    weights[..., 4] += twice.exp()[..., 4]  # a mutant: added, wherever it is
    wrong = (weights / weights.sum(-1, keepdim=True)) @ local[2]
    right = lf.longformer_attention(local, far, 2, [4])
    other = [i for i in range(9) if abs(i - 4) > 2]
    torch.testing.assert_close(right[:, :, other], wrong[:, :, other])
    assert not torch.allclose(right[:, :, 3], wrong[:, :, 3], atol=1e-3)


def test_reach_is_what_the_masks_reach() -> None:
    radii, gaps = [1, 2, 2], [1, 2, 3]
    steps = torch.eye(64, dtype=torch.int)
    for radius, gap in zip(radii, gaps, strict=True):
        steps = (lf.window(radius, gap).mask(64).int() @ steps > 0).int()
    farthest = 32 - int(steps[32].nonzero().min())
    assert farthest == lf.reach(radii, gaps) == 11
    assert lf.reach([4, 4]) == 8


def test_work_grows_with_the_length() -> None:
    def attend(*x: Tensor) -> Tensor:
        return lf.longformer_attention(three(x[:3]), three(x[3:]), 32, range(4))

    leaves = lambda L: 6 * [(1, 1, L, 16)]  # noqa: E731
    work_grows_no_faster(lambda L: attend, 1.2, leaves=leaves, work=(4096, 16384))


@pytest.mark.parametrize("tokens", [[], [0, 13]])
def test_parity_with_hugging_face(tokens: list[int]) -> None:
    """Their w is even and divides L, G may differ in a batch, nothing is dilated; else the same."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    torch.manual_seed(0)
    config = LongformerConfig(hidden_size=12, num_attention_heads=3, attention_window=[8])
    theirs = LongformerSelfAttention(config, layer_id=0).double().eval()
    X = torch.randn(2, 24, 12, dtype=torch.float64)
    mask = torch.zeros(2, 24)
    mask[:, tokens] = 10000
    with torch.no_grad():
        wanted = theirs(
            X,
            attention_mask=mask,
            is_index_masked=mask < 0,
            is_index_global_attn=mask > 0,
            is_global_attn=bool(tokens),
        )[0]
    names = ("query", "key", "value")
    local, far = (
        three(
            getattr(theirs, name + kind)(X).detach().unflatten(-1, (3, 4)).transpose(1, 2)
            for name in names
        )
        for kind in ("", "_global")
    )
    got = lf.longformer_attention(local, far, 4, tokens)
    torch.testing.assert_close(got.transpose(1, 2).flatten(2), wanted, atol=1e-6, rtol=1e-5)
    if tokens:  # one set of projections for all would not be theirs
        one = lf.longformer_attention(local, local, 4, tokens)
        assert not torch.allclose(one, got, atol=1e-3)


def test_gradients_can_be_differentiated_with_global_tokens_too() -> None:
    local, far = made()
    ways = (
        lf.longformer_attention(local, far, 2, [0, 9]),
        lf.longformer_definition(local, far, 2, [0, 9])[0],
    )
    given = [local[0], far[0]]
    both = [torch.autograd.grad(out.sin().sum(), given, create_graph=True) for out in ways]
    first = [torch.cat(grads, 2) for grads in both]
    agree_with_gradients(first[0], first[1], [*local, *far])


def test_bad_input_is_named() -> None:
    local, far = made()
    attend = partial(lf.longformer_attention, local)
    refused("tokens = 23", attend, far, 2, [23])
    refused("gaps = (1, 2, 3) for 2 heads", attend, far, 2, gaps=[1, 2, 3])
    refused("radius = -1", attend, far, -1)
    refused("2 gaps for 1 radii", lf.reach, [4], [1, 2])
    refused("project all tokens with both", attend, tuple(x[:, :1] for x in far), 2)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def with_one_projection(way: Callable[..., Any]) -> Callable[..., Any]:
    return lambda Q, K, V: way((Q, K, V), (Q, K, V), 2, [0])


CASE = Case(
    functions={
        "Longformer": Function(
            with_one_projection(lf.longformer_attention),
            with_one_projection(lf.longformer_definition),
        )
    },
    mutants=[
        (
            "a global key in the window counted twice",
            "    outside = ~near.holds(torch.arange(L)[:, None], keys, L)\n",
            "    outside = torch.ones(L, len(tokens), dtype=torch.bool)\n",
        ),
        (
            "global tokens that read with the ordinary keys",
            "far[0].index_select(2, rows), *far[1:]",
            "far[0].index_select(2, rows), *local[1:]",
        ),
    ],
)
