"""Reversible layers: inputs come back, gradients are autograd's, memory is flat in depth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from laws import Case
from refusals import of_no_kind, refused
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.measure import saved_bytes
from tfviz.models.blocks import Block, MultiHeadAttention
from tfviz.patterns import causal
from tfviz.sparse import reversible_residual as rev

D = 8


def blocks(n: int, dropout: float = 0.0, dtype: torch.dtype = torch.float64) -> list[Any]:
    torch.manual_seed(1)
    made = []
    for _ in range(n):
        F = nn.Sequential(nn.LayerNorm(D), MultiHeadAttention(D, 2), nn.Dropout(dropout))
        G = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D), nn.Dropout(dropout))
        made.append((F.to(dtype), G.to(dtype)))
    return made


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_twelve_layers_give_their_input_back(dtype: torch.dtype, most: float) -> None:
    X = torch.randn(2, 5, D, dtype=dtype)
    made = blocks(12, dtype=dtype)
    with torch.no_grad():
        found = rev.inverse(*rev.forward(X, X, made), made)
    assert max((x - X).abs().max().item() for x in found) < most


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_those_of_autograd(dropout: float) -> None:
    made = blocks(3, dropout)
    stack = rev.Reversible(made)
    X = torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    wanted_of = [X, *stack.parameters()]

    def plain(X: Tensor) -> Tensor:
        Y1, Y2 = rev.forward(X, X, made)
        return (Y1 + Y2) / 2

    found = []
    for way in (plain, stack):
        torch.manual_seed(3)  # the same dropout
        out = way(X)
        after = torch.get_rng_state()
        found.append([out, *torch.autograd.grad(out.sin().sum(), wanted_of)])
        assert torch.get_rng_state().equal(after)  # what comes next is not touched
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_weights_that_are_shared_or_frozen() -> None:
    (F, G), _ = blocks(2)
    F[1].W_o.weight.requires_grad_(False)
    stack = rev.Reversible([(F, G), (F, G)])
    X = torch.randn(1, 4, D, dtype=torch.float64)
    stack(X).square().sum().backward()
    assert F[1].W_o.weight.grad is None
    got = G[0].weight.grad.clone()
    G.zero_grad()
    Y1, Y2 = rev.forward(X, X, [(F, G), (F, G)])
    ((Y1 + Y2) / 2).square().sum().backward()
    torch.testing.assert_close(got, G[0].weight.grad)


def test_volume_is_kept() -> None:
    made = blocks(2)
    X = torch.randn(2, 1, 2, D, dtype=torch.float64)
    J = torch.autograd.functional.jacobian(lambda X: torch.stack(rev.forward(X[0], X[1], made)), X)
    assert J.view(4 * D, 4 * D).det().item() == pytest.approx(1.0)


def test_memory_is_flat_in_depth() -> None:
    X = torch.randn(1, 16, D, dtype=torch.float64)
    few, many = (saved_bytes(rev.Reversible(blocks(n)), X) for n in (2, 8))
    assert few == many == 2 * X.nbytes
    plain = [saved_bytes(rev.forward, X, X, blocks(n)) for n in (2, 8)]
    assert plain[1] > 3.5 * plain[0] > 3.5 * few


def test_bad_input_is_named() -> None:
    refused("blocks is empty", rev.Reversible, [])
    says = "is no nn.Module: its weights would get no gradient"
    of_no_kind(says, rev.Reversible, [(nn.Linear(4, 4), torch.sin)])


def test_the_closed_form_is_what_autograd_keeps() -> None:
    """Up to the two numbers a row of a norm, and one a head of a fused attention."""
    d, L = 64, 128
    X = torch.randn(1, L, d).mul(1)

    def block() -> tuple[nn.Module, nn.Module]:
        skip = Block(d, 4, pattern=causal())
        return nn.Sequential(skip.norms[0], skip.attend), nn.Sequential(skip.norms[1], skip.feed)

    pairs = [block() for _ in range(4)]

    def kept(X: Tensor) -> Tensor:
        for F, G in pairs:
            X = X + F(X)
            X = X + G(X)
        return X

    def checkpointed(X: Tensor) -> Tensor:
        for F, G in pairs:
            X = checkpoint(lambda X, F=F, G=G: (X + F(X)) + G(X + F(X)), X, use_reentrant=False)
        return X

    X = X.requires_grad_().mul(1)
    size, one = X.nbytes, [saved_bytes(part, X) for part in pairs[0]]
    assert one == [pytest.approx(6 * size, rel=0.02), pytest.approx(10 * size, rel=0.02)]
    wanted = {way: 4 * rev.activations(way, 4, L, d) for way in rev.WAYS}
    assert saved_bytes(kept, X) == pytest.approx(wanted["kept"], rel=0.02)
    assert saved_bytes(checkpointed, X) + sum(one) == pytest.approx(
        wanted["checkpointed"], rel=0.02
    )
    assert saved_bytes(rev.Reversible(pairs), X) + one[1] == pytest.approx(
        wanted["reversible"], rel=0.02
    )
    part = X[:, : L // 4].mul(1)
    assert saved_bytes(pairs[0][1], part) == pytest.approx(10 * size / 4, rel=0.02)
    assert rev.activations("reversible", 9, L, d, 16) == 8 * L * d  # then attention is the larger
    refused("way = 'none'; choose one of kept", rev.activations, "none", 1, 1, 1)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "dropout drawn anew when a reversible layer is made again",
            "torch.set_rng_state(state)",
            "pass",
        ),
        (
            "the gradient of Y1 without that through G",
            "Y2, d1 = Y2 - out, d1 + dX",
            "Y2, d1 = Y2 - out, d1 + 0 * dX",
        ),
    ],
)
