"""Skips: the identity at zero, I + J, the sum over paths, and what deep attention loses without."""

from __future__ import annotations

import math

import pytest
import torch
from refusals import refused
from torch import nn
from torch.func import jacrev

from tfviz.basics.layer_norm_pre_post import pre_norm, pre_norm_no_skip
from tfviz.basics.residual_connection import (
    Residual,
    paths,
    paths_literally,
    row_spread,
    skip,
    stream,
)
from tfviz.models.blocks import MultiHeadAttention

close = torch.testing.assert_close


def slope(f: object, x: torch.Tensor) -> torch.Tensor:
    """∂f_c/∂x_r in row r, column c."""
    return jacrev(f)(x).T  # type: ignore[arg-type]


def test_golden_numbers() -> None:
    X = torch.tensor([[1.0, -2.0], [0.0, 3.0]])
    close(skip(X, lambda X: 10 * X), torch.tensor([[11.0, -22.0], [0.0, 33.0]]))
    states = stream(X, [torch.zeros_like, torch.ones_like, torch.neg])
    close(states, [X, X, X + 1, torch.zeros(2, 2)])


def test_a_module_of_zeros_is_the_identity_and_the_module_is_the_function() -> None:
    X, F = torch.randn(3, 4), nn.Linear(4, 4)
    close(Residual(F)(X), X + F(X))
    nn.init.zeros_(F.weight), nn.init.zeros_(F.bias)
    assert torch.equal(Residual(F)(X), X)


def test_the_jacobian_is_identity_plus_that_of_the_module() -> None:
    F, x = (
        nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 4)).double(),
        torch.randn(4).double(),
    )
    J = slope(F, x)
    close(slope(lambda x: skip(x, F), x), torch.eye(4).double() + J)
    with pytest.raises(AssertionError):
        close(slope(lambda x: skip(x, F), x), J)


def test_the_jacobian_of_a_stack_is_the_sum_over_all_paths() -> None:
    Fs = [nn.Sequential(nn.Linear(3, 3), nn.Tanh()).double() for _ in range(4)]
    x = torch.randn(3, dtype=torch.float64)
    states = stream(x, Fs)
    J = [slope(F, state) for F, state in zip(Fs, states[:-1], strict=True)]
    whole = slope(lambda x: stream(x, Fs)[-1], x)
    close(sum(paths(J)), whole)
    close(paths(J), paths_literally(J))
    close(paths(J)[0], torch.eye(3).double())
    close(paths(J)[4], J[0] @ J[1] @ J[2] @ J[3])
    with pytest.raises(AssertionError):  # the other order of the product
        close(sum(paths(J[::-1])), whole)


def test_paths_are_counted_by_binomials() -> None:
    ones = [torch.ones(1, 1, dtype=torch.float64)] * 6
    assert [int(P) for P in paths(ones)] == [math.comb(6, k) for k in range(7)]
    assert sum(int(P) for P in paths(ones)) == 2**6


def test_the_map_itself_is_a_sum_over_paths_only_if_it_is_linear() -> None:
    x = torch.randn(3, dtype=torch.float64)
    A, B = torch.randn(2, 3, 3, dtype=torch.float64)
    close(stream(x, [lambda x: x @ A, lambda x: x @ B])[-1], x @ sum(paths([A, B])))
    tanh = stream(x, [lambda x: (x @ A).tanh(), lambda x: (x @ B).tanh()])[-1]
    expanded = x + (x @ A).tanh() + (x @ B).tanh() + ((x @ A).tanh() @ B).tanh()
    assert not torch.allclose(tanh, expanded, atol=1e-3)


def test_row_spread_is_zero_for_equal_rows_and_one_for_opposite_ones() -> None:
    close(row_spread(torch.ones(4, 3)), torch.tensor(0.0))
    close(row_spread(torch.tensor([[1.0, 2.0], [-1.0, -2.0]])), torch.tensor(1.0))
    assert row_spread(torch.randn(2, 5, 3)).shape == (2,)


def test_deep_attention_without_skips_forgets_which_word_is_which() -> None:
    for order, few, many in ((pre_norm_no_skip, 0.0, 0.05), (pre_norm, 0.3, 1.0)):
        torch.manual_seed(0)
        X = torch.randn(1, 16, 32)
        for _ in range(12):
            X = order(X, MultiHeadAttention(32, 4), nn.LayerNorm(32))
        assert few <= row_spread(X.detach()).item() <= many


def test_a_module_that_changes_the_shape_is_named() -> None:
    refused("F makes (2, 5) of (2, 3)", skip, torch.zeros(2, 3), nn.Linear(3, 5))
    refused("F makes (1, 3)", skip, torch.zeros(2, 3), lambda X: X.mean(0, keepdim=True))
