"""Scaled dot-product self-attention: golden numbers, others' code, symmetries, and the root."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case, Function, agree_with_gradients, plain
from refusals import ranges, refused
from three import Three, three
from torch import Tensor, nn

from tfviz import attention, patterns
from tfviz.basics.scaled_dot_product_attention import (
    SelfAttention,
    row_entropy,
    self_attention,
    softmax_slope,
)
from tfviz.cores import Dense

close = torch.testing.assert_close


def case(seed: int = 0, L: int = 6, d: int = 5, dk: int = 4, dv: int = 3) -> tuple[Tensor, Three]:
    rng = torch.Generator().manual_seed(seed)
    X = torch.randn(L, d, generator=rng, dtype=torch.float64)
    return X, three(torch.randn(d, n, generator=rng, dtype=X.dtype) for n in (dk, dk, dv))


def definition(X, W_q, W_k, W_v, sets, root=True):  # type: ignore[no-untyped-def]
    """One pair after the other, for key sets S_i."""
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    A = torch.zeros(len(X), len(X), dtype=X.dtype)
    for i, S in enumerate(sets):
        loud = {j: math.exp(Q[i] @ K[j] / (math.sqrt(len(Q[i])) if root else 1.0)) for j in S}
        for j in S:
            A[i, j] = loud[j] / sum(loud.values())
    return A @ V, A


def test_golden_numbers() -> None:
    # d_k = 4, identity projections: q_0 k_1 = 2 ln 3, halved by √4 gives weights 1 : 3.
    w = math.sqrt(2 * math.log(3))
    X = torch.tensor([[w, 0.0, 0.0, 0.0], [w, 0.0, 0.0, 0.0]], dtype=torch.float64)
    W_k = torch.diag(torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    X[0, 1] = X[1, 2] = 1.0  # the rows differ outside of what is compared
    W_q = torch.zeros(4, 4, dtype=torch.float64)
    W_q[0, 2] = 2 * math.log(3) / w  # every row asks for feature 2, which only row 1 has
    W_v = torch.eye(4, dtype=torch.float64)[:, 1:3]
    out, A = self_attention(X, W_q, W_k, W_v)
    expected = torch.tensor([[0.25, 0.75], [0.25, 0.75]], dtype=torch.float64)
    close(A, expected)
    close(out, expected)


def test_equals_the_definition_for_every_kind_of_set() -> None:
    X, W = case()
    for pattern in (
        patterns.full(),
        patterns.causal(),
        patterns.band(radius=1),
        patterns.causal() & patterns.dilated(radius=3, dilation=2),
    ):
        close(self_attention(X, *W, pattern), definition(X, *W, pattern.key_sets(6)))
    close(self_attention(X, *W), definition(X, *W, [range(6)] * 6))


def test_mutants_are_found() -> None:
    X, W = case()
    out, A = self_attention(X, *W, patterns.causal())
    sets = patterns.causal().key_sets(6)
    swapped = [[i for i in range(6) if j in sets[i]] for j in range(6)]  # i and j exchanged
    assert (definition(X, *W, swapped)[0] - out).abs().max() > 0.01
    assert (definition(X, *W, sets, root=False)[1] - A).abs().max() > 0.01  # √d missing
    scores = (X @ W[0]) @ (X @ W[1]).T
    e1 = scores.exp() / (2 * scores.exp().sum(-1, keepdim=True))  # erratum E1, √4 outside
    close(e1.sum(-1), torch.full((6,), 0.5, dtype=torch.float64))
    assert (e1 - self_attention(X, *W)[1]).abs().max() > 0.01


def test_parity_with_pytorch() -> None:
    X, W = case(L=9, d=8, dk=8, dv=8)
    X, W = X.float(), three(w.float() for w in W)
    Q, K, V = (X @ w for w in W)
    for causal in (False, True):
        out, A = self_attention(X, *W, patterns.causal() if causal else None)
        close(out, F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=causal)[0])
        layer = nn.MultiheadAttention(8, 1, bias=False, batch_first=True)
        with torch.no_grad():
            layer.in_proj_weight.copy_(torch.cat([w.T for w in W]))
            layer.out_proj.weight.copy_(torch.eye(8))
        forbidden = torch.ones(9, 9, dtype=torch.bool).triu(1) if causal else None
        with torch.no_grad():
            theirs, weights = layer(X[None], X[None], X[None], attn_mask=forbidden)
        close((out, A), (theirs[0], weights[0]))


def test_gradients_match_pytorch() -> None:
    X, W = case()
    leaves = [x.requires_grad_() for x in (X, *W)]
    theirs = F.scaled_dot_product_attention(*three((X @ w)[None] for w in W))[0]
    agree_with_gradients(self_attention(X, *W)[0], theirs, leaves)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.permutations(range(6)))
def test_equivariant_not_invariant(seed: int, order: list[int]) -> None:
    X, W = case(seed)
    p = torch.tensor(order)
    out, A = self_attention(X, *W)
    shuffled, A_shuffled = self_attention(X[p], *W)
    close(shuffled, out[p])
    close(A_shuffled, A[p][:, p])
    if order != sorted(order):
        assert (shuffled - out).abs().max() > 1e-6


def test_limits() -> None:
    X, W = case()
    V = X @ W[2]
    close(self_attention(X, *W, patterns.band(radius=0))[0], V)
    close(self_attention(X, 0 * W[0], W[1], W[2])[0], V.mean(0).expand(6, 3))
    running = V.cumsum(0) / torch.arange(1, 7, dtype=V.dtype)[:, None]
    close(self_attention(X, 0 * W[0], W[1], W[2], patterns.causal())[0], running)


def test_a_later_token_changes_no_earlier_output() -> None:
    X, W = case()
    later = X.clone()
    later[4] += 1
    before, after = (self_attention(x, *W, patterns.causal())[0] for x in (X, later))
    assert torch.equal(before[:4], after[:4])
    assert (before[4:] - after[4:]).abs().amin() > 0


def test_masked_entries_and_rows_are_exactly_zero() -> None:
    X, W = case()
    allowed = torch.rand(6, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    allowed[2] = False
    out, A = self_attention(X, *W, allowed)
    assert (A[~allowed] == 0).all()
    assert torch.equal(out[2], torch.zeros(3, dtype=torch.float64))
    others = allowed.any(-1)
    close(A[others].sum(-1), torch.ones(int(others.sum()), dtype=torch.float64))


def test_module() -> None:
    module = SelfAttention(5, 4, 3).double()
    X = case()[0]
    close(module(X), self_attention(X, module.W_q, module.W_k, module.W_v)[0])
    close(module(X.expand(2, 6, 5))[1], module(X))
    causal = module(X, patterns.causal())
    close(causal, definition(X, *three(w.detach() for w in module.parameters()),
                             patterns.causal().key_sets(6))[0])  # fmt: skip
    causal.sum().backward()
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in module.parameters())


def test_module_starts_with_unit_variance() -> None:
    module = SelfAttention(256, 64, 64)
    X = torch.randn(500, 256)
    for W in module.parameters():
        assert abs((X @ W).var().item() - 1) < 0.1


def test_variance_of_a_score_is_d_k() -> None:
    rng = torch.Generator().manual_seed(0)
    for d_k in (4, 64, 256):
        q, k = (torch.randn(20_000, d_k, generator=rng) for _ in range(2))
        assert abs((q * k).sum(-1).var().item() / d_k - 1) < 0.05


def test_errors_name_the_matrix() -> None:
    X, (W_q, W_k, W_v) = case()
    refused("W_k has shape (3, 4) … (5, width)", self_attention, X, W_q, W_k[:3], W_v)
    refused("width 3 … width 4", self_attention, X, W_q[:, :3], W_k, W_v)
    ranges(SelfAttention, d=(4, 1), d_k=(3, 1), d_v=(4, 1))


# --- why there is a root -------------------------------------------------------------------------


def test_entropy_by_hand() -> None:
    A = torch.tensor([[0.25] * 4, [0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    close(row_entropy(A), torch.tensor([math.log(4), 0.0, math.log(2)]))


def test_slope_is_the_norm_of_the_jacobian() -> None:
    for size in (0.1, 1.0, 5.0, 60.0):
        scores = size * torch.randn(7, dtype=torch.float64)
        jacobian = torch.func.jacrev(lambda s: s.softmax(0))(scores)
        close(softmax_slope(scores.softmax(0)), jacobian.norm(), atol=1e-9, rtol=1e-6)
    # two equal weights: every entry of the Jacobian is ±1/4, so the norm is 1/2
    close(softmax_slope(torch.tensor([0.5, 0.5])), torch.tensor(0.5))
    close(softmax_slope(torch.tensor([1.0, 0.0, 0.0])), torch.tensor(0.0))


def test_without_the_root_rows_go_deaf() -> None:
    rng = torch.Generator().manual_seed(0)
    slopes = {}
    for d_k in (16, 512):
        Q, K = torch.randn(300, 1, d_k, generator=rng), torch.randn(300, 64, d_k, generator=rng)
        for name, factor in (("with", 1.0), ("without", d_k**0.5)):
            A = attention(factor * Q, K, K)[1][:, 0]
            slopes[name, d_k] = softmax_slope(A)
    assert abs(slopes["with", 512].median() / slopes["with", 16].median() - 1) < 0.1
    assert slopes["without", 512].median() < slopes["with", 512].median() / 20
    # … while the mean only falls by half: few rows answer, but violently
    assert 0.3 < slopes["without", 512].mean() / slopes["with", 512].mean() < 0.8


# --- what it brings to the laws and the mutants ---------------------------------------------------


def row_by_row(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    rows = []
    for q in Q.unbind(2):
        weights = (q.unsqueeze(2) @ K.mT / Q.shape[-1] ** 0.5).exp()
        rows.append((weights @ V / weights.sum(-1, keepdim=True)).squeeze(2))
    return torch.stack(rows, 2)


CASE = Case(
    Dense,
    plain,
    functions={
        "attention": Function(
            attention, row_by_row, masks={"pattern": torch.ones(24, 24, dtype=torch.bool).tril()}
        )
    },
)
