"""DA-Transformer: the curve by hand, what the clip leaves, limits. No other code is known to us."""

from __future__ import annotations

import math

import pytest
import torch
from laws import Case, Function, H, distance
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.formula import Formula
from tfviz.longer_context.da_transformer import DA, curve, da_attention, da_scores, rescale
from tfviz.models.gpt import GPT
from tfviz.patterns import causal, full

close = torch.testing.assert_close


def float64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_the_curve_by_hand() -> None:
    n = float64(0, 1, 2)
    close(rescale(n, math.log(3), 0.0), float64(1, 1.5, 1.8))  # 2 / (1 + 3⁻ⁿ)
    close(rescale(n, -math.log(3), 0.0), float64(1, 0.5, 0.2))
    close(rescale(n, -math.log(3), math.log(9)), float64(1, 10 / 28, 10 / 82))


@pytest.mark.parametrize("alpha", [-2.0, -0.1, 0.0, 0.1, 2.0])
@pytest.mark.parametrize("beta", [-5.0, 0.0, 4.0])
def test_the_curve_in_general(alpha: float, beta: float) -> None:
    n = torch.arange(200, dtype=torch.float64)
    f = rescale(n, alpha, beta)
    close(f, (1 + math.exp(beta)) / (1 + (beta - alpha * n).exp()))
    close(f, curve(0 * n, n, alpha=alpha, beta=float64(beta)[0]))
    assert f[0] == 1 and (f.diff() * alpha >= 0).all() and (f >= 0).all()
    end = {-1: 0.0, 0: 1.0, 1: 1 + math.exp(beta)}[(alpha > 0) - (alpha < 0)]
    close(rescale(float64(1e6), alpha, beta), float64(end))


def test_the_curve_is_a_formula_and_does_not_overflow() -> None:
    assert "Math.exp" in Formula(curve, reals=frozenset({"alpha", "beta"})).javascript()
    beta = torch.tensor(0.0, requires_grad=True)
    far = rescale(torch.tensor([0.0, 1e6]), -3.0, beta)
    far.sum().backward()
    assert far.tolist() == [1.0, 0.0] and beta.grad is not None and beta.grad.isfinite()


def test_three_tokens_by_hand() -> None:
    # q · k is 2, −2 and 4 before the root of 4; α, β so that f(1) = 1/2 and f(2) = 1/5.
    Q = torch.zeros(3, 4).double()
    Q[2, 0] = 1
    K = torch.tensor([[2.0, 0, 0, 0], [-2, 0, 0, 0], [4, 0, 0, 0]]).double()
    scores = da_scores(Q, K, float64(-math.log(3))[0], float64(0.0)[0])
    close(scores[2], float64(2 / 2 / 5, 0, 4 / 2))
    _, A = da_attention(Q, K, K, float64(-math.log(3))[0], float64(0.0)[0], causal())
    loud = float64(0.2, 0.0, 2.0).exp()
    close(A[2], loud / loud.sum())
    assert A[2, 1] > 0.1  # clipped, and still heard


def test_what_the_clip_leaves() -> None:
    """A key may be as unwelcome or as far as it likes: it keeps 1 part of 1 + … + e^s."""
    Q, K = torch.zeros(1, 4).double(), torch.zeros(40, 4).double()
    Q[0, 0] = K[-1, 0] = 4.0
    K[:-1, 0] = -1000.0
    _, A = da_attention(Q, K, K, float64(-50.0)[0], float64(0.0)[0])
    lead = math.exp(16 / 2)
    close(A[0, :-1], float64(1 / (lead + 39)).expand(39))


def test_alpha_0_is_clipped_attention_and_not_the_plain_one() -> None:
    Q, K, V = torch.randn(3, 2, 4, 7, 6, dtype=torch.float64)
    zero = torch.zeros(4).double()
    for beta in (zero, zero + 3):
        out, A = da_attention(Q, K, V, zero, beta, causal())
        clipped = (Q @ K.mT).clamp(min=0) / 6**0.5
        wanted = clipped.masked_fill(~causal().mask(7), -math.inf).softmax(-1)
        close((out, A), (wanted @ V, wanted))
        assert not torch.allclose(A, attention(Q, K, V, causal())[1])


def test_the_sign_of_alpha_chooses_near_or_far() -> None:
    X = torch.ones(30, 4).double()
    for alpha, sign in ((-0.3, 1), (0.3, -1)):
        _, A = da_attention(X, X, X, float64(alpha)[0], float64(1.0)[0], causal())
        assert (sign * A[-1].diff() > 0).all()


def test_both_sides_are_alike_and_only_distance_counts() -> None:
    Q = torch.ones(6, 4).double()
    S = da_scores(Q, Q, float64(-0.7)[0], float64(0.5)[0])
    close(S, S.T)
    close(S[1:, 1:], S[:-1, :-1])
    close(da_scores(Q[:2], Q, float64(-0.7)[0], float64(0.5)[0]), S[4:])  # after four kept keys


def test_two_numbers_a_head_and_both_learn() -> None:
    core = DA(3)
    assert sum(p.numel() for p in core.parameters()) == 6
    core.alpha.data.fill_(-0.1)
    X = torch.randn(3, 2, 3, 9, 4)
    for pattern in (causal(), full()):
        core(*X, Where(pattern))[0].square().sum().backward()
    for p in core.parameters():
        assert p.grad is not None and (p.grad != 0).all()
    fresh = DA(3)  # at α = 0 the curve is 1 for every β, but α has somewhere to go
    loss = fresh(*X, Where(causal()))[0].square().sum()
    of_alpha, of_beta = torch.autograd.grad(loss, (fresh.alpha, fresh.beta))
    assert (of_alpha != 0).all() and (of_beta == 0).all()
    assert GPT(9, 12, 3, 2, core=DA)(torch.tensor([[1, 2, 3]])).isfinite().all()


def test_large_scores_in_half_precision_stay_finite() -> None:
    Q, K, V = (300 * torch.randn(2, 5, 4).half() for _ in range(3))
    alpha, beta = torch.randn(2), torch.randn(2)
    out, A = da_attention(Q, K, V, alpha, beta, causal())
    assert out.dtype == A.dtype == torch.float16
    Q, K, V = Q.double(), K.double(), V.double()
    exact = da_attention(Q, K, V, alpha.double(), beta.double(), causal())[0]
    torch.testing.assert_close(out.double(), exact, atol=1.0, rtol=0.01)


def test_errors_say_what_to_do() -> None:
    ranges(DA, h=(3, 1))
    X = torch.randn(3, 1, 2, 5, 4)
    refused("α is for 3 heads, Q has 2; give DA them", DA(3), *X, Where(causal()))
    two = torch.zeros(2)
    for wrong in (two.numpy(), "0.5", 0.5, None):
        kind = type(wrong).__name__
        of_no_kind(f"alpha is a {kind}; give a tensor", da_attention, *X, wrong, two)
        of_no_kind(f"beta is a {kind}; give a tensor", da_attention, *X, two, wrong)
    of_no_kind("Q is a ndarray", da_attention, X[0].numpy(), *X[1:], two, two)
    refused("beta has shape (3,) … 2 heads; give one", da_attention, *X, two, torch.zeros(3))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_the_formula(
    core: DA, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The paper's formula, and a softmax by hand."""
    alpha, beta = core.alpha[:, None, None], core.beta[:, None, None]
    f = (1 + beta.exp()) / (1 + (beta - alpha * distance(Q.shape[2]).abs()).exp())
    loud = ((Q @ K.mT).clamp(min=0) * f / Q.shape[-1] ** 0.5).exp() * mask
    A = loud / loud.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


ALPHA, BETA = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)


def by_the_curve(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    i, j = torch.arange(Q.shape[2])[:, None], torch.arange(Q.shape[2])
    f = curve(i, j, alpha=ALPHA.to(Q)[:, None, None], beta=BETA.to(Q)[:, None, None])
    return ((Q @ K.mT).relu() * f / Q.shape[-1] ** 0.5).softmax(-1) @ V


CASE = Case(
    lambda: DA(H),
    by_the_formula,
    functions={
        "DA": Function(lambda Q, K, V: da_attention(Q, K, V, ALPHA.to(Q), BETA.to(Q)), by_the_curve)
    },
    mutants=[
        (
            "DA without its clip",
            "    return s.relu() * rescale",
            "    return s * rescale",
        ),
        (
            "DA's curve does not begin at 1",
            "(F.softplus(beta) - F.softplus(beta - alpha * n)).exp()",
            "(-F.softplus(beta - alpha * n)).exp()",
        ),
    ],
)
