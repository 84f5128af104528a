"""Low rank plus band: its two parts, the limits in which it is attention, and who reads whom."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from laws import CAUSAL, OPEN, Case, D, H, L, agree_with_gradients, qkv
from refusals import ranges, refused
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map
from tfviz import patterns as P
from tfviz.compressed.lowrank_plus_band import (
    LowRankPlusBand,
    low_rank_and_band,
    lowrank_band_definition,
)
from tfviz.cores import Where


def made(r: int, w: int, gate: float = 0.0) -> LowRankPlusBand:
    core = LowRankPlusBand(D, H, r, w).double()
    core.gate.data.fill_(gate)
    return core


def test_three_tokens_by_hand() -> None:
    """Queries and keys 0, ln 2, 0, narrow ones the same, g = ½, a band of one to either side.

    Query 1 weighs 1 : 2 ** ln 2 : 1 in both parts; queries 0 and 2 weigh evenly, the near part
    over two keys.
    """
    X = torch.tensor([0.0, math.log(2), 0.0], dtype=torch.float64)[:, None]
    one = torch.ones(1, 1, dtype=torch.float64)
    x = 2 ** math.log(2)
    top, middle = 1 / (2 + x), x / (2 + x)
    edge = [1 / 6 + 1 / 4, 1 / 6 + 1 / 4, 1 / 6]
    wanted = torch.tensor([edge, [top, middle, top], edge[::-1]], dtype=torch.float64)
    A = lowrank_band_definition(X, X, X, one, one, torch.tensor(0.5), 1)[1]
    torch.testing.assert_close(A, wanted)


@pytest.mark.parametrize("r", [1, 2, 5])
def test_the_far_scores_have_rank_r_and_its_softmax_more(r: int) -> None:
    Q, K, _ = qkv()
    core = made(r, 0, gate=math.inf)  # the far part alone
    scores = (Q @ core.W_q) @ (K @ core.W_k).mT
    assert (torch.linalg.matrix_rank(scores) == r).all()
    A = implied_map(core, Q, K, Q)
    torch.testing.assert_close(A, (scores / r**0.5).softmax(-1))
    assert (torch.linalg.matrix_rank(A) > r).all()


def test_a_band_over_everything_is_attention() -> None:
    leaves = Q, K, V = tuple(x.requires_grad_() for x in qkv())
    core = made(3, L - 1, gate=-math.inf)
    agree_with_gradients(core(Q, K, V, Where())[0], attention(Q, K, V)[0], leaves)
    narrower = made(3, L - 2, gate=-math.inf)(Q, K, V, Where())[0]
    assert (narrower - attention(Q, K, V)[0]).abs().max() > 0.01


def test_full_width_and_no_band_is_attention() -> None:
    leaves = Q, K, V = tuple(x.requires_grad_() for x in qkv())
    core = made(D, 0, gate=math.inf)
    core.W_q.data, core.W_k.data = (torch.eye(D).double().expand(H, D, D) for _ in range(2))
    agree_with_gradients(core(Q, K, V, Where())[0], attention(Q, K, V)[0], leaves)


def test_the_near_part_reads_w_tokens_to_either_side() -> None:
    A = implied_map(made(2, 2, gate=-math.inf), *qkv())
    i = torch.arange(L)
    assert ((A > 0) == ((i[:, None] - i).abs() <= 2)).all()


def test_the_share_of_each_head_is_its_own() -> None:
    Q, K, V = qkv()
    core = made(2, 1)
    core.gate.data = torch.tensor([-math.inf, 0.0, 1.0, math.inf], dtype=torch.float64)
    far, near = (implied_map(made_like(core, gate), Q, K, V) for gate in (math.inf, -math.inf))
    g = torch.tensor([0, 0.5, 1 / (1 + math.exp(-1)), 1], dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(implied_map(core, Q, K, V), g * far + (1 - g) * near)


def made_like(core: LowRankPlusBand, gate: float) -> LowRankPlusBand:
    other = made(core.W_q.shape[-1], core.w, gate)
    other.W_q, other.W_k = core.W_q, core.W_k
    return other


def test_a_query_without_a_key_in_the_band_has_its_far_share_only() -> None:
    """A pattern that allows a token only what is two or more before it, and a band of one."""
    far_only = P.causal() & ~P.band(radius=1)
    A = implied_map(made(2, 1, gate=1.0), *qkv(), Where(far_only))
    g = 1 / (1 + math.exp(-1))
    wanted = torch.tensor([0, 0] + [g] * (L - 2), dtype=torch.float64)
    torch.testing.assert_close(A.sum(-1), wanted.expand(2, H, L))


def test_a_sum_of_both_kinds_is_taken_apart() -> None:
    """A smooth matrix of rank 1 and a diagonal: rank 2 alone misses much, rank 1 alone too."""
    smooth = torch.linspace(1, 2, 12, dtype=torch.float64)
    A = smooth[:, None] * smooth / 20 + torch.eye(12)
    R, B = low_rank_and_band(A, 1, 0, rounds=200)
    torch.testing.assert_close(R, smooth[:, None] * smooth / 20, atol=1e-6, rtol=0)
    torch.testing.assert_close(B, torch.eye(12).double(), atol=1e-6, rtol=0)
    alone = low_rank_and_band(A, 2, -1)[0]
    assert (A - alone).norm() / A.norm() > 0.5


def test_the_fit_misses_only_what_is_outside_of_the_band_and_never_more_by_another_round() -> None:
    A = torch.randn(3, 9, 9, dtype=torch.float64).softmax(-1)
    i = torch.arange(9)
    band = (i[:, None] - i).abs() <= 1
    missed = []
    for rounds in (1, 2, 5, 20):
        R, B = low_rank_and_band(A, 2, 1, rounds)
        assert (torch.linalg.matrix_rank(R) == 2).all() and not B[:, ~band].any()
        torch.testing.assert_close((R + B)[:, band], A[:, band])
        missed.append((A - R - B).norm().item())
    assert missed == sorted(missed, reverse=True) and missed[-1] < missed[0]
    best = low_rank_and_band(A, 2, -1, 1)[0]
    rest = torch.linalg.svdvals(A)[:, 2:].square().sum(-1)
    torch.testing.assert_close((A - best).square().sum((-2, -1)), rest)


def test_models_take_it() -> None:
    make = partial(LowRankPlusBand, r=2, w=1)
    ids = torch.arange(8)[None]
    assert GPT(11, 16, 2, 2, core=make)(ids).isfinite().all()
    assert BERT(11, 16, 2, 2, core=make)(ids).isfinite().all()


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    ranges(partial(LowRankPlusBand, D, H), r=(3, 1, D), w=(3, 0))
    refused("a band needs distances within one text", made(2, 1), Q, K, V, Where(crosses=True))
    fit = low_rank_and_band
    ranges(lambda r=1, w=1, rounds=2: fit(torch.eye(4), r, w, rounds), r=(2, 0, 4), w=(1, -1))
    refused("Q has 3 heads, the core 4", made(2, 1), Q[:, :3], K[:, :3], V[:, :3], Where())


def test_the_first_guess_for_the_band_is_the_mean_of_the_row() -> None:
    """So rows that are even outside of a band are found at once, and not after many rounds."""
    A = torch.tensor([[5.0, 1.0, 1.0], [2.0, -7.0, 2.0], [3.0, 3.0, 0.0]], dtype=torch.float64)
    R, B = low_rank_and_band(A, 1, 0, rounds=1)
    rows = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)[:, None].expand(3, 3)
    torch.testing.assert_close(R, rows)
    torch.testing.assert_close(B, (A - rows) * torch.eye(3, dtype=torch.float64))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: LowRankPlusBand, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    g = core.gate.sigmoid()
    return lowrank_band_definition(Q, K, V, core.W_q, core.W_k, g, core.w, mask)


CASE = Case(
    lambda: LowRankPlusBand(D, H, 3, 3),
    defined,
    patterns=CAUSAL + OPEN,
    mutants=[
        ("a first guess of 0", "R = mean.expand_as(A)", "R = 0 * mean.expand_as(A)"),
        (
            "low rank and band, each with the other's share",
            "out = g * far + (1 - g) * near",
            "out = g * near + (1 - g) * far",
        ),
        (
            "low rank plus a band of twice the width",
            "band(radius=self.w)",
            "band(radius=2 * self.w)",
        ),
        (
            "low rank whose keys are narrowed like queries",
            "(K, self.W_k)",
            "(K, self.W_q)",
        ),
        (
            "a fit that fills the band with zeros",
            "torch.where(band, R, A)",
            "A.masked_fill(band, 0)",
        ),
    ],
)
