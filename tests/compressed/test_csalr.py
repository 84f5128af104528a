"""CSALR: the identity that makes the inverse exist, and the E without which the rows are halved."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, L, agree_with_gradients, qkv, work_grows_no_faster
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map
from tfviz.compressed import csalr
from tfviz.compressed.nystromformer import landmarks, nystrom_definition
from tfviz.cores import Where


def test_two_landmarks_by_hand() -> None:
    """Keys and queries 0, 0, ln 3, ln 3 on one axis and 0 on the other: M and its inverse by hand.

    M = [[½, ½], [x, 1 − x]] with x = 1/(1 + 3^ln 3); (M + I)⁻¹ = [[2 − x, −½], [−x, 3/2]]/(3 − 2x).
    """
    X = torch.tensor([0.0, 0.0, math.log(3), math.log(3)], dtype=torch.float64)[:, None]
    x = 1 / (1 + 3 ** math.log(3))
    inverse = torch.tensor([[2 - x, -0.5], [-x, 1.5]], dtype=torch.float64) / (3 - 2 * x)
    looks = torch.tensor([[0.5, 0.5], [x, 1 - x]], dtype=torch.float64)
    spread = torch.tensor([[0.25] * 4, [x / 2, x / 2, (1 - x) / 2, (1 - x) / 2]])
    own = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.float64)
    wanted = (looks[[0, 0, 1, 1]] + own) @ inverse @ spread.double()
    torch.testing.assert_close(csalr.csalr_definition(X, X, X, 2)[1], wanted)


@pytest.mark.parametrize("m", [1, 3, 9])
def test_rows_sum_to_one_and_to_a_half_without_e(m: int) -> None:
    Q, K, V = qkv()
    for E, wanted in ((True, 1.0), (False, 0.5)):
        A = csalr.csalr_definition(Q, K, V, m, E)[1]
        torch.testing.assert_close(A.sum(-1), torch.full_like(A[..., 0], wanted))
    assert csalr.csalr_definition(Q, K, V, 3)[1].min() < -0.01


def test_with_all_tokens_as_landmarks_it_is_attention() -> None:
    leaves = Q, K, V = tuple(x.requires_grad_() for x in qkv())
    scale = D**-0.5
    wanted = attention(Q, K, V)[0]
    agree_with_gradients(csalr.csalr_attention(Q, K, V, L, scale=scale), wanted, leaves)
    halved = csalr.csalr_attention(Q, K, V, L, E=False, scale=scale)
    assert (2 * halved - wanted).abs().max() > 0.1  # doubling does not mend it


def test_the_inverse_exists_and_may_be_badly_conditioned() -> None:
    """Scores [[0, z], [z, 0]]: M tends to an exchange of two, whose eigenvalue is −1 (E36)."""
    at = {}
    for z in (0.0, 5.0, 30.0):
        M = torch.tensor([[0, z], [z, 0]], dtype=torch.float64).softmax(-1)
        at[z] = torch.linalg.cond(M + torch.eye(2)).item()
    assert at[0.0] == pytest.approx(2) and round(at[5.0]) == 149
    assert at[30.0] > 1e12


def test_equal_landmarks_do_no_harm() -> None:
    """M without an inverse; M + I has one, and every query gets the mean."""
    X = torch.ones(1, 1, 4, 2)
    out = csalr.csalr_attention(X, X, torch.eye(4)[None, None], 2)
    torch.testing.assert_close(out, torch.full((1, 1, 4, 4), 0.25))


def test_it_is_not_nystrom_attention() -> None:
    Q, K, V = qkv()
    ours, theirs = (
        csalr.csalr_definition(Q, K, V, 3, scale=D**-0.5)[1],
        nystrom_definition(Q, K, V, 3, None)[1],
    )
    assert (ours - theirs).abs().max() > 0.05


def test_parity_with_the_formula_of_the_authors() -> None:
    """`SelfAttn2.forward` of their `reSAnet.py`, one group, a picture of one row: columns are
    queries there, the pooling cell is added to both matrices of landmarks, and nothing is divided
    by √d."""
    Q, K, V = (x.mT for x in qkv())
    pool = partial(torch.nn.functional.avg_pool1d, kernel_size=3, stride=3)
    q, k = (pool(X.flatten(0, 1)).unflatten(0, X.shape[:2]) for X in (Q, K))
    to_all, among, from_all = ((a.mT @ b).softmax(-2) for a, b in ((k, Q), (k, q), (K, q)))
    one = torch.eye(3, dtype=torch.float64)
    cells = one[:, :, None].expand(-1, -1, 3).flatten(1)
    theirs = V @ from_all @ (torch.inverse(among + one) @ (to_all + cells))
    ours = csalr.csalr_attention(*qkv_again(Q, K, V), 3)
    torch.testing.assert_close(ours, theirs.mT)


def qkv_again(*turned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    Q, K, V = (x.mT for x in turned)
    return Q, K, V


def test_a_causal_model_is_refused_and_an_encoder_takes_it() -> None:
    make = partial(csalr.Csalr, m=2)
    refused(
        "each landmark is a mean … CSALR is for encoders",
        GPT(11, 16, 2, 2, core=make),
        torch.zeros(1, 8).long(),
    )
    assert BERT(11, 16, 2, 2, core=make)(torch.zeros(1, 8).long()).isfinite().all()


def test_a_later_token_changes_an_earlier_answer() -> None:
    Q, K, V = qkv()
    A = implied_map(csalr.Csalr(3), Q, K, V)
    assert A[:, :, 0, 1:].abs().amax() > 0.01
    assert landmarks(K, 3)[:, :, 0].equal(K[:, :, :3].mean(2))


def test_work_grows_with_the_length() -> None:
    work_grows_no_faster(lambda L: partial(csalr.csalr_attention, m=16), 1.1)


def test_bad_input_is_named() -> None:
    X = qkv()
    ranges(csalr.Csalr, m=(3, 1))
    refused("m = 4 landmarks do not divide L = 9", csalr.Csalr(4), *X, Where())
    refused("m = 0", csalr.csalr_attention, *X, 0)
    of_no_kind("K", csalr.csalr_attention, X[0], [1.0], X[2], 3)


def test_landmarks_that_exchange_all_their_weight_are_inverted_as_far_as_they_can_be() -> None:
    """M exchanges two landmarks, and M + I, all ones, has no inverse; its pseudo-inverse is ¼ in
    each place, so that either token gets half of both values."""
    Q = torch.tensor([[[[1e4], [-1e4]]]], dtype=torch.float64)
    V = torch.tensor([[[[2.0], [6.0]]]], dtype=torch.float64)
    out = csalr.csalr_attention(Q, -Q, V, 2)
    torch.testing.assert_close(out, torch.full_like(V, 4.0))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: csalr.Csalr, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return csalr.csalr_definition(Q, K, V, core.m, core.E, core.scale)


ENCODER: dict[str, Any] = {
    "answers": "whole",
    "causal": False,
    "shares_sum_to_one": False,
    "grows": 1.0,
    "sized": lambda n: csalr.Csalr(16),
}

CASE = Case(
    lambda: csalr.Csalr(3),
    defined,
    **ENCODER,
    variants={"without E": Case(lambda: csalr.Csalr(3, E=False, scale=0.5), defined, **ENCODER)},
    functions={
        "csalr": Function(
            lambda Q, K, V: csalr.csalr_attention(Q, K, V, 6),
            lambda Q, K, V: csalr.csalr_definition(Q, K, V, 6),
        )
    },
    mutants=[
        (
            "CSALR that inverts M where M + I has no inverse",
            "torch.linalg.pinv(M + one)",
            "torch.linalg.pinv(M)",
        ),
        (
            "CSALR without its identity",
            "torch.linalg.solve_ex(M + one,",
            "torch.linalg.solve_ex(M,",
        ),
        (
            "CSALR whose stretches take turns",
            "answers.repeat_interleave(Q.shape[2] // m, 2)",
            "answers.repeat(1, 1, Q.shape[2] // m, 1)",
        ),
    ],
)
