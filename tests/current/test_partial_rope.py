"""Partial rotary positions: which pairs turn, how fast, and what those that do not can tell."""

from __future__ import annotations

from functools import partial
from typing import Any

import laws
import pytest
import torch
from laws import Case
from refusals import refused
from torch import Tensor

from tfviz.current.partial_rope import partial_speeds, proportional_speeds
from tfviz.dense_attention import attention
from tfviz.position import rope
from tfviz.position.rope import Rope, halves_order

BOTH = (partial_speeds, proportional_speeds)


@pytest.mark.parametrize("speeds", BOTH)
def test_all_turns_as_rope_and_nothing_as_no_positions(speeds: Any) -> None:
    assert speeds(16, 1.0).equal(rope.speeds(16)) and speeds(16, 1.0, 5e5).equal(
        rope.speeds(16, 5e5)
    )
    assert speeds(16, 0.0).equal(torch.zeros(8).double())


@pytest.mark.parametrize("speeds", BOTH)
def test_as_many_pairs_turn_as_asked_and_the_first_of_them(speeds: Any) -> None:
    for n in range(9):
        found = speeds(16, n / 8)
        assert (found[:n] > 0).all() and not found[n:].any() and found.diff().le(0).all()


def test_by_hand_the_two_ladders_differ() -> None:
    """The slowest clock that runs, of 64 numbers a quarter of which turn: pair 7 of 8."""
    whole, own, fastest = (
        f(64, p)[n].item()
        for f, p, n in (
            (partial_speeds, 1.0, 31),
            (partial_speeds, 0.25, 7),
            (proportional_speeds, 0.25, 7),
        )
    )
    assert whole == pytest.approx(10_000 ** (-31 / 32)) == pytest.approx(1.33e-4, rel=0.01)
    assert own == pytest.approx(10_000 ** (-7 / 8)) == pytest.approx(3.16e-4, rel=0.01)
    assert fastest == pytest.approx(10_000 ** (-7 / 32)) == pytest.approx(0.133, rel=0.01)


@pytest.mark.parametrize("speeds", BOTH)
def test_what_stands_still_is_blind_to_distance(speeds: Any) -> None:
    """A score whose query lives in the numbers that stand still is the same at any distance; of
    one in those that turn it is not, and both know nothing but the distance."""
    core = Rope(16, speeds=partial(speeds, p=0.5))
    q, k = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64).unbind()

    def score(q: Tensor, i: int, j: int) -> float:
        turned = (core.turn_to(x, torch.tensor([at])) for x, at in ((q, i), (k, j)))
        return float((next(turned) * next(turned)).sum())

    still, turning = (
        torch.cat(x, -1)
        for x in ((torch.zeros(1, 1, 1, 8), q[..., 8:]), (q[..., :8], torch.zeros(1, 1, 1, 8)))
    )
    assert score(still, 900, 3) == pytest.approx(score(still, 3, 3))
    assert score(turning, 900, 3) != pytest.approx(score(turning, 3, 3), rel=1e-3)
    assert score(q, 907, 10) == pytest.approx(score(q, 900, 3))


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0])
def test_partial_is_that_of_transformers(p: float) -> None:
    """GPT-NeoX, whose pairs stand half a ladder apart: number m and number m + p d/2."""
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    config = neox.GPTNeoXConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": p},
    )
    rotary = neox.GPTNeoXRotaryEmbedding(config)
    Q, K = torch.randn(2, 1, 2, 40, 16).unbind()
    n = round(16 * p)
    order = torch.cat([halves_order(n), torch.arange(n, 16)])
    hands = rotary(Q, torch.arange(40)[None])
    theirs = neox.apply_rotary_pos_emb(Q[..., order], K[..., order], *hands)
    core = Rope(16, speeds=partial_speeds(16, p, 500.0))
    for x, right in zip((Q, K), theirs, strict=True):
        torch.testing.assert_close(core.turn(x, 0)[..., order], right)


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0])
def test_proportional_is_that_of_transformers(p: float) -> None:
    made = pytest.importorskip("transformers.modeling_rope_utils")
    config = pytest.importorskip("transformers").LlamaConfig(
        hidden_size=64,
        num_attention_heads=1,
        head_dim=64,
        rope_parameters={
            **{"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": p},
            "factor": 1.0,
        },
    )
    theirs, factor = made.ROPE_INIT_FUNCTIONS["proportional"](config, device="cpu")
    assert factor == 1.0
    torch.testing.assert_close(proportional_speeds(64, p, 1e6).float(), theirs)


@pytest.mark.parametrize("speeds", BOTH)
def test_bad_input_is_named(speeds: Any) -> None:
    refused("p = 0.3 of d_head = 8 numbers are 1.2 pairs; give … a multiple of 1/4", speeds, 8, 0.3)
    refused("of d_head = 7 numbers … give an even d_head", speeds, 7, 1.0)
    refused("p = 1.5", speeds, 8, 1.5)
    refused("d_head = 0", speeds, 0, 0.5)
    refused("base = 0.5", speeds, 8, 0.5, base=0.5)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_hand(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    """Each pair (2m, 2m + 1) turned by its angle, as a complex number."""

    def turned(X: Tensor) -> Tensor:
        angle = torch.arange(X.shape[-2])[:, None] * core.speeds.to(X)
        pairs = torch.view_as_complex(X.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)

    return attention(turned(Q), turned(K), V, mask)


CASE = Case(
    lambda: Rope(laws.D, speeds=partial(partial_speeds, p=0.5)),
    by_hand,
    variants={
        "proportional": Case(
            lambda: Rope(laws.D, speeds=partial(proportional_speeds, p=0.5)), by_hand
        )
    },
    mutants=[
        ("the whole head's ladder", "speeds(2 * n, base) if n", "speeds(d_head, base)[:n] if n"),
        ("the slowest clocks run", "(speeds(d_head, base)[:n]", "(speeds(d_head, base)[-n:]"),
        (
            "the last numbers turn",
            "F.pad(turning, (0, d_head // 2 - len(turning)))",
            "F.pad(turning, (d_head // 2 - len(turning), 0))",
        ),
        ("numbers for pairs", "d_head, 2) // 2\n", "d_head, 2)\n"),
    ],
)
