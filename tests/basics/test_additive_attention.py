"""Additive attention: numbers by hand, the definition in loops, and its bound."""

from __future__ import annotations

import math

import torch
from laws import Case, D
from refusals import ranges, refused
from torch import Tensor

from tfviz.basics.additive_attention import (
    Additive,
    AdditiveAttention,
    additive_scores,
    bahdanau_attention,
)

close = torch.testing.assert_close


def case(seed: int = 0) -> tuple[torch.Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    shapes = ((4, 3), (6, 2), (3, 5), (2, 5), (5,))  # S, H, W_a, U_a, v_a
    return tuple(torch.randn(*s, generator=rng, dtype=torch.float64) for s in shapes)


def definition(S, H, W_a, U_a, v_a):  # type: ignore[no-untyped-def]
    """One pair, one hidden unit after the other."""
    alpha = torch.zeros(len(S), len(H), dtype=S.dtype)
    for i, s in enumerate(S):
        for j, h in enumerate(H):
            hidden = [
                math.tanh(
                    sum(s[a] * W_a[a, m] for a in range(len(s)))
                    + sum(h[b] * U_a[b, m] for b in range(len(h)))
                )
                for m in range(len(v_a))
            ]
            alpha[i, j] = math.exp(sum(hidden[m] * v_a[m] for m in range(len(v_a))))
        alpha[i] /= alpha[i].sum()
    context = torch.stack([sum(alpha[i, j] * H[j] for j in range(len(H))) for i in range(len(S))])
    return context, alpha


def test_golden_numbers() -> None:
    # tanh(artanh ½) = ½ and v = 2 ln 3: scores ln 3 and 0, weights 3/4 and 1/4.
    half = math.atanh(0.5)
    S, H = torch.tensor([[half]]), torch.tensor([[0.0], [-half]])
    one, v = torch.ones(1, 1), torch.tensor([2 * math.log(3)])
    close(additive_scores(S, H, one, one, v), torch.tensor([[math.log(3), 0.0]]))
    c, alpha = bahdanau_attention(S, H, one, one, v)
    close(alpha, torch.tensor([[0.75, 0.25]]))
    close(c, torch.tensor([[-half / 4]]))


def test_equals_the_definition() -> None:
    for seed in range(3):
        close(bahdanau_attention(*case(seed)), definition(*case(seed)))


def test_mutants_differ_from_the_definition() -> None:
    S, H, W_a, U_a, v_a = case()
    _, alpha = definition(S, H, W_a, U_a, v_a)
    linear = ((S @ W_a)[:, None] + (H @ U_a)[None]) @ v_a  # without tanh the query cancels
    close(linear.softmax(-1)[0], linear.softmax(-1)[1])
    for mutant in (linear.softmax(-1), additive_scores(S, H, W_a, U_a, v_a).softmax(0)):
        assert (mutant - alpha).abs().max() > 0.01


def test_limits_and_bound() -> None:
    S, H, W_a, U_a, v_a = case()
    c, alpha = bahdanau_attention(S, H, W_a, U_a, torch.zeros_like(v_a))
    close(c, H.mean(0).expand(4, 2))
    close(alpha, torch.full((4, 6), 1 / 6, dtype=torch.float64))
    for size in (1.0, 1e3, 1e9):
        e = additive_scores(size * S, size * H, W_a, U_a, v_a)
        assert e.abs().max() <= v_a.abs().sum() + 1e-12
    _, alpha = bahdanau_attention(1e9 * S, 1e9 * H, W_a, U_a, v_a)
    ratio = alpha.amax(-1) / alpha.amin(-1)
    assert (ratio <= torch.exp(2 * v_a.abs().sum()) * (1 + 1e-9)).all()


def test_a_dot_product_has_no_such_bound() -> None:
    S, H, *_ = case()
    assert ((1e3 * S[:, :2]) @ (1e3 * H).T).abs().max() > 1e3


def test_rows_and_order_of_the_notes() -> None:
    S, H, W_a, U_a, v_a = case()
    c, alpha = bahdanau_attention(S, H, W_a, U_a, v_a)
    close(alpha.sum(-1), torch.ones(4, dtype=torch.float64))
    p = torch.tensor([3, 5, 0, 1, 4, 2])
    close(bahdanau_attention(S, H[p], W_a, U_a, v_a), (c, alpha[:, p]))


def test_mask() -> None:
    S, H, W_a, U_a, v_a = case()
    allowed = torch.ones(4, 6, dtype=torch.bool)
    allowed[:, 4:] = False
    allowed[1] = False
    c, alpha = bahdanau_attention(S, H, W_a, U_a, v_a, allowed)
    assert (alpha[~allowed] == 0).all()
    assert torch.equal(c[1], torch.zeros(2, dtype=torch.float64))
    close(c[0], bahdanau_attention(S, H[:4], W_a, U_a, v_a)[0][0])


def test_module_is_the_function_and_learns() -> None:
    module = AdditiveAttention(3, 2, 5).double()
    S, H, *_ = case()
    close(module(S, H), definition(S, H, *(w.detach() for w in module.parameters())))
    module(S, H)[0].sum().backward()
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in module.parameters())
    batch = module(S.expand(3, 4, 3), H.expand(3, 6, 2))[0]
    close(batch[2], module(S, H)[0])


def test_errors_name_the_matrix() -> None:
    S, H, W_a, U_a, v_a = case()
    refused("W_a has shape (2, 5) … (3, 5)", additive_scores, S, H, W_a[:2], U_a, v_a)
    refused("U_a has shape (2, 4) … (2, 5)", additive_scores, S, H, W_a, U_a[:, :4], v_a)
    ranges(AdditiveAttention, d_s=(3, 1), d_h=(2, 1), d_a=(5, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def pair_by_pair(
    core: Additive, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """One exponential at a time."""
    e = torch.stack([
        torch.stack([torch.tanh(q @ core.W_a + k @ core.U_a) @ core.v_a for k in K.unbind(2)], -1)
        for q in Q.unbind(2)
    ], 2)  # fmt: skip
    loud = e.exp() * mask
    A = loud / loud.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


CASE = Case(
    lambda: Additive(D, 5),
    pair_by_pair,
)
