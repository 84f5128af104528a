"""The Gaussian Transformer: the M by hand, the limits of b and w, and the core of the guide."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from laws import Case, D, H, qkv
from refusals import ranges, refused
from test_guide import case_of_the_guide
from torch import Tensor

from tfviz import attention, patterns
from tfviz.cores import Dense, Where
from tfviz.formula import Formula
from tfviz.models.gpt import GPT
from tfviz.priors import gaussian_transformer as room

CAUSAL = Where(patterns.causal())
close = torch.testing.assert_close


def test_the_curve_by_hand() -> None:
    """w = 1/2, b = −1: at distance 1 |1/2 − 1| = 1/2, at 2 |2 − 1| = 1, at 3 |9/2 − 1| = 7/2."""
    got = room.beside(3, torch.arange(7), w=0.5, b=-1.0)
    assert got.tolist() == [-3.5, -1, -0.5, -1, -0.5, -1, -3.5]


def test_weights_by_hand() -> None:
    """Three equal scores, w = 1, b = −1: the middle query loses 1 at itself and 0 on each side."""
    Q = torch.zeros(1, 1, 3, 2, dtype=torch.float64)
    A = room.gaussian_definition(Q, Q, Q, None, 1.0, -1.0)[1][0, 0]
    e = math.exp(-1)
    assert A[1].tolist() == pytest.approx([1 / (2 + e), e / (2 + e), 1 / (2 + e)])
    assert A[0].tolist() == pytest.approx(
        [x / (1 + e + e**3) for x in (e, 1, e**3)]
    )  # itself |−1|, beside it 0, two places on |4 − 1|


def test_without_b_it_is_a_bell_of_variance_one_over_two_w() -> None:
    i, w = torch.arange(201, dtype=torch.float64), 0.02
    weights = room.beside(100, i, w=w, b=0.0).softmax(0)
    assert (weights * i).sum().item() == pytest.approx(100)
    assert (weights * (i - 100) ** 2).sum().item() == pytest.approx(1 / (2 * w), rel=1e-3)


def test_with_b_its_top_is_beside_the_query() -> None:
    w, b = 0.25, -4.0
    distance = room.best_distance(w, b)
    assert distance == 4
    G = room.beside(10, torch.arange(21), w=w, b=b)
    assert G[[6, 14]].tolist() == [0, 0] and G.max() == 0
    assert G[10] == b and (G.argmin() == 0) and G.equal(G.flip(0))


def test_without_w_nothing_changes() -> None:
    Q, K, V = qkv()
    out = room.gaussian_definition(Q, K, V, None, 0.0, -3.0)[0]
    close(out, attention(Q, K, V)[0])


def test_it_depends_on_the_distance_alone() -> None:
    i = torch.arange(9)
    G = room.beside(i[:, None], i, w=0.3, b=-0.7)
    assert G.equal(G.T) and G[1:, 1:].equal(G[:-1, :-1])


def test_the_formula_has_latex_javascript_and_a_score_mod() -> None:
    formula = Formula(room.beside, reals=frozenset({"w", "b"}))
    assert formula.parameters == ["w", "b"] and "Math.abs" in formula.javascript()
    mod = formula.score_mod(w=0.5, b=-1.0)
    assert float(mod(2.0, 0, 0, torch.tensor(4), torch.tensor(2))) == 1.0


def test_each_head_learns_within_the_ranges() -> None:
    torch.manual_seed(0)
    core = room.Gaussian(H, w=0.3, b=-0.6)
    close(core.w, torch.full((H,), 0.3))
    close(core.b, torch.full((H,), -0.6))
    assert sum(x.numel() for x in core.parameters()) == 2 * H
    for step in (-40.0, 40.0):
        with torch.no_grad():
            core.omega.fill_(step)
            core.beta.fill_(step)
        assert (core.w >= 0).all() and (core.b <= 0).all()
    core.omega.data.fill_(0.0)
    core.beta.data.fill_(0.0)
    Q, K, V = (x.float() for x in qkv())
    core(Q, K, V, CAUSAL)[0].square().sum().backward()
    assert core.omega.grad is not None and (core.omega.grad != 0).all()
    assert core.beta.grad is not None and (core.beta.grad != 0).all()


def test_flat_numbers_leave_attention_as_it_is() -> None:
    Q, K, V = (x.float() for x in qkv())
    core = room.Gaussian(H)
    core.omega.data.fill_(-100.0)
    close(core(Q, K, V, CAUSAL)[0], Dense()(Q, K, V, CAUSAL)[0])


def test_the_core_of_the_guide_is_this_one_with_fixed_numbers() -> None:
    """docs/walk.md follows such a mechanism from its formula to its section."""
    Q, K, V = qkv()
    guide: Any = case_of_the_guide().make
    theirs = guide()
    ours = room.Gaussian(H, theirs.w, theirs.b).double()
    for pattern in (patterns.causal(), patterns.full()):
        close(
            theirs(Q, K, V, Where(pattern))[0],
            ours(Q, K, V, Where(pattern))[0],
            atol=1e-6,
            rtol=1e-6,
        )


def test_a_gpt_takes_it_and_learns_its_numbers() -> None:
    model = GPT(11, 16, 2, 2, core=room.Gaussian)
    model(torch.zeros(1, 6).long()).sum().backward()
    learned = [x for name, x in model.named_parameters() if name.endswith(("omega", "beta"))]
    assert len(learned) == 4 and all(x.grad is not None for x in learned)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    ranges(room.Gaussian, h=(2, 1))
    refused("w = 0.0 is out of range", room.Gaussian, 2, 0)
    refused("b = 0.5 is out of range", room.Gaussian, 2, 0.1, 0.5)
    refused("w = 0.0 is out of range", room.best_distance, 0.0, -1.0)
    refused("b = 1.0 is out of range", room.best_distance, 1.0, 1.0)
    refused("for 2 heads, Q has 4; give", room.Gaussian(2), Q, K, V, CAUSAL)
    refused("leave cross-attention", room.Gaussian(H), Q, K, V, Where(crosses=True))


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Pair by pair."""
    L = Q.shape[2]
    w, b = core.w, core.b
    G = torch.stack([-(w * (i - j) ** 2 + b).abs() for i in range(L) for j in range(L)], -1)
    s = Q @ K.mT / D**0.5 + G.view(H, L, L)
    some = mask.any(-1, keepdim=True)
    A = s.masked_fill(~mask, -math.inf).masked_fill(~some, 0.0).softmax(-1) * some
    return A @ V, A


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_distances_far_along_a_text_are_exact_in_half_precision(kind: torch.dtype) -> None:
    """bfloat16 cannot tell place 513 from 512, and float16 has no 300²: distances are those of
    whole numbers."""
    core = room.Gaussian(2)
    half, exact = (
        core.bias(X, X) for X in (torch.zeros(1, 2, 600, 4, dtype=kind), torch.zeros(1, 2, 600, 4))
    )
    torch.testing.assert_close(half.float(), exact, atol=1e-3, rtol=0.01)


CASE = Case(
    lambda: room.Gaussian(H),
    defined,
    mutants=[
        (
            "distances in the type of Q",
            "return beside(i, j, w=w, b=b)",
            "return beside(i.to(Q.dtype), j.to(Q.dtype), w=w, b=b)",
        ),
        ("a Gaussian without its square", "(i - j) ** 2 + b)", "abs(i - j) + b)"),
        ("a negative score that lifts", "return -abs(w", "return (w"),
        ("b that lifts the query", "return -F.softplus(self.beta)", "return F.softplus(self.beta)"),
        ("w that may be negative", "return F.softplus(self.omega)", "return self.omega"),
    ],
)
