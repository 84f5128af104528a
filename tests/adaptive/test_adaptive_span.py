"""Adaptive span: the mask, what z learns from, and that only the span is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from laws import (
    Case,
    Function,
    H,
    agree_with_gradients,
    distance,
    work_grows_no_faster,
)
from refusals import of_no_kind, ranges, refused
from three import qkv
from torch import Tensor, nn

from tfviz import attention
from tfviz.adaptive import adaptive_span as span
from tfviz.cores import Where
from tfviz.measure import elements_produced, flops
from tfviz.models.gpt import GPT
from tfviz.patterns import causal, sliding_window

close = torch.testing.assert_close


def of_heads(*z: float) -> Tensor:
    return torch.tensor(z, dtype=torch.float64)[:, None].requires_grad_()


def test_the_mask_is_one_then_a_ramp_then_zero() -> None:
    x, z = torch.arange(40.0), torch.tensor(11.3)
    m = span.ramp(x, z, R=5)
    assert (m[x <= z] == 1).all() and (m[x >= z + 5] == 0).all() and (m.diff() <= 0).all()
    close(m[12:17], torch.tensor([(16.3 - n) / 5 for n in range(12, 17)]))
    close(span.log_ramp(x, z, 5).exp(), m)


@pytest.mark.parametrize("L", [9, 64, 150])
def test_blocks_are_the_definition_with_gradients(L: int) -> None:
    leaves = qkv(L)
    for z in (of_heads(0.0, 5.3, 90.0), (torch.rand(2, 3, L).double() * 40).requires_grad_()):
        wanted, A = span.span_definition(*leaves, z, 7.5)
        got = span.span_attention(*leaves, z, 7.5)
        agree_with_gradients(got, wanted, [*leaves, z])
        close(A.sum(-1), torch.ones_like(A[..., 0]))


def test_masking_before_or_after_the_softmax_is_the_same() -> None:
    Q, K, V = qkv(20)
    z = of_heads(2.5, 0.0, 11.0)
    x = torch.arange(20)[:, None] - torch.arange(20)
    before = attention(Q, K, V, causal(), bias=span.log_ramp(x.abs(), z[..., None], 4.0))
    for a, b in zip(before, span.span_definition(Q, K, V, z, 4.0), strict=True):
        close(a, b)


def test_a_long_span_is_causal_attention_and_a_steep_ramp_a_window() -> None:
    Q, K, V = qkv()
    close(span.span_attention(Q, K, V, of_heads(149, 149, 200), 1), attention(Q, K, V, causal())[0])
    window = attention(Q, K, V, sliding_window(lookback=7))[0]
    close(span.span_attention(Q, K, V, of_heads(7, 7, 7), 1), window)


def test_only_keys_in_the_ramp_move_z() -> None:
    """What comes from each key alone: the derivative by its own mask."""
    Q, K, V = (x.detach() for x in qkv(40, h=1))
    z, R = torch.tensor(9.5, dtype=torch.float64, requires_grad=True), 6.0
    x = 39 - torch.arange(40)
    each = [torch.autograd.grad(m, z, retain_graph=True)[0] for m in span.ramp(x, z, R)]
    assert [n for n, g in zip(x.tolist(), each, strict=True) if g] == list(range(15, 9, -1))
    for beyond in (torch.arange(24), torch.arange(30, 40)):  # outside of it: their values may be
        other = V.clone()  # anything, z feels only what they change in the output
        other[..., beyond, :] += 1.0
        rows = [span.span_definition(Q, K, v, z.view(1, 1), R)[0][..., -1, :] for v in (V, other)]
        grads = [torch.autograd.grad(row.sum(), z, retain_graph=True)[0] for row in rows]
        assert grads[0].equal(grads[1]) == (beyond[0] == 0)
    step = span.span_definition(Q, K, V, torch.tensor([[9.5]]).double().requires_grad_(), 1e-9)
    assert step[0].isfinite().all()


def test_parity_with_the_authors_formula() -> None:
    """facebookresearch/adaptive-span, typed by hand: a window of S keys, the newest last; their
    mask is built from linspace(1 − S, 0), so the newest key counts as x = 0. Their query does not
    see itself; here its own key is the newest."""
    S, R, (Q, K, V) = 32, 8.0, qkv(60, h=1)
    share = torch.tensor(0.21, dtype=torch.float64)
    template = torch.linspace(1 - S, 0, steps=S, dtype=torch.float64)
    mask = ((template + share * S) / R + 1).clamp(0, 1)
    rows = []
    for i in range(S - 1, 60):
        near = slice(i - S + 1, i + 1)
        s = (Q[:, 0, i, None] * K[:, 0, near]).sum(-1) / math.sqrt(6)
        a = s.softmax(-1) * mask
        a = a / (a.sum(-1, keepdim=True) + 1e-8)
        rows.append((a.unsqueeze(-1) * V[:, 0, near]).sum(1))
    got = span.span_attention(Q, K, V, (share * S).view(1, 1), R)[:, 0, S - 1 :]
    close(got, torch.stack(rows, 1), atol=1e-6, rtol=1e-6)


def test_work_grows_with_the_length_and_falls_with_the_span() -> None:
    attend = partial(span.span_attention, z=torch.tensor([[20.0], [40.0]]).requires_grad_(), R=16)
    work_grows_no_faster(lambda L: attend, 1.2, leaves=lambda L: 3 * [(1, 2, L, 16)])
    X, long, short = torch.randn(3, 1, 4, 4096, 16), 4096.0, 32.0
    z = {n: torch.tensor([[long]] * n + [[short]] * (4 - n)) for n in (0, 1, 4)}
    counted = {n: flops(span.span_attention, *X, z[n], 32) for n in z}
    assert counted[1] == pytest.approx(counted[4] / 4 + counted[0] * 3 / 4)  # head by head
    assert counted[0] < counted[4] / 25
    made = [elements_produced(span.span_attention, *X, z[n], 32) for n in (0, 4)]
    assert made[0] < made[1] / 20


def test_spans_are_learned_priced_and_kept_between_zero_and_S() -> None:
    core = span.AdaptiveSpan(3, S=40, R=8, start=10).double()
    Q, K, V = qkv(30)
    out, _ = core(Q, K, V, Where(causal()))
    close(out, span.span_definition(Q, K, V, of_heads(10, 10, 10), 8)[0])
    core.share.data += torch.tensor([[-1.0], [0.0], [2.0]])
    close(core.spans(Q).flatten().detach(), torch.tensor([0.0, 10, 40]).double())
    core.spans(Q).sum().backward()
    assert core.share.grad is not None and (core.share.grad == 40).all()  # at the ends too
    model = GPT(7, 12, 3, 2, core=lambda: span.AdaptiveSpan(3, 40, 8, start=10))
    model(torch.arange(7)[None])
    close(span.price(model), torch.tensor(20.0))


def test_second_derivatives_are_right() -> None:
    """Where spans learn, by products; where they are fixed, behind torch's kernel."""
    Q, K = (x[:, :, :80] for x in qkv(80, h=2)[:2])
    z = of_heads(5.5, 9.25)

    def twice(attend: Callable[..., Tensor], z: Tensor) -> list[Tensor]:
        grads = torch.autograd.grad(attend(z).square().sum(), [Q, K], create_graph=True)
        size = torch.stack([g.square().sum() for g in grads]).sum()
        return list(torch.autograd.grad(size, [Q, K]))

    blocks = partial(span.span_attention, Q, K, K, R=4.0)
    definition = lambda z: span.span_definition(Q, K, K, z, 4.0)[0]  # noqa: E731
    for spans in (z, z.detach()):
        for a, b in zip(twice(blocks, spans), twice(definition, spans), strict=True):
            close(a, b)


def test_bad_input_is_named() -> None:
    leaves, z = qkv(8), of_heads(1, 2, 3)
    attend = partial(span.span_attention, *leaves)
    refused("z has shape (2, 1); give (3, 1), or (2, 3, 8)", attend, of_heads(1, 2), 4)
    refused("z holds -3; a span cannot be negative", attend, of_heads(1, 2, -3), 4)
    refused("R = 0 is a step", attend, z, 0)
    refused("spans of 2 heads, Q has 3", span.AdaptiveSpan(2, 40, 8), *leaves, Where(causal()))
    refused("no core of this model has spans", span.price, nn.Linear(2, 2))
    for x in (math.nan, math.inf):
        refused("z holds NaN or infinity", attend, of_heads(1, x, 3), 4)
        refused("z holds NaN or infinity", span.span_definition, *leaves, of_heads(1, x, 3), 4)
    of_no_kind("z is a ndarray", attend, z.detach().numpy(), 4)
    of_no_kind("z is a str", attend, "2", 4)
    of_no_kind("Q is a ndarray", span.span_attention, leaves[0].detach().numpy(), *leaves[1:], z, 4)
    refused("S = 0 lets no head look back", span.AdaptiveSpan, 2, 0.0, 1.0)
    ranges(span.AdaptiveSpan, h=(3, 1), S=(40.0,), R=(8.0,), start=(5.0, 0.0, 40.0))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def spanned(
    core: span.Span, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The mask after the softmax, and each row divided by its sum."""
    m = span.ramp(distance(Q.shape[2]).abs(), core.spans(Q)[..., None], core.R)
    A = attention(Q, K, V, mask)[1] * m
    A = A / A.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


Z = torch.linspace(0, 4, 3, dtype=torch.float64)[:, None]


CASE = Case(
    lambda: span.AdaptiveSpan(H, S=6, R=12),
    spanned,
    functions={
        "adaptive span": Function(
            lambda Q, K, V: span.span_attention(Q, K, V, Z.to(Q), 2.0),
            lambda Q, K, V: span.span_definition(Q, K, V, Z.to(Q), 2.0),
            length=150,
        )
    },
    mutants=[
        (
            "a span whose rows are not summed to one again",
            "A = A / A.sum(-1, keepdim=True)",
            "A = A * 1",
        ),
        (
            "a ramp that begins one key early",
            "return ((R + z - x) / R)",
            "return ((R + z - x - 1) / R)",
        ),
    ],
)
