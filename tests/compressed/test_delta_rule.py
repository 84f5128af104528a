"""Linear recurrences: what a sum, a gate and the delta rule give back."""

from __future__ import annotations

import pytest
import torch
from refusals import of_no_kind, ranges, refused

from tfviz.compressed.delta_rule import read_back


def test_without_gate_and_overwriting_it_is_linear_attention() -> None:
    keys = torch.randn(7, 3, dtype=torch.float64)
    torch.testing.assert_close(read_back(keys, 1, 0), (keys @ keys.T).tril())


@pytest.mark.parametrize("kept", [0.25, 0.8])
def test_a_gate_lets_a_value_fade_with_its_age(kept: float) -> None:
    keys = torch.randn(7, 3, dtype=torch.float64)
    age = (torch.arange(7)[:, None] - torch.arange(7)).clamp(min=0)
    torch.testing.assert_close(read_back(keys, kept, 0), (keys @ keys.T * kept**age).tril())


def test_the_delta_rule_is_the_formula_with_its_matrices() -> None:
    """S_t = g (I − β kᵀ k) S_{t−1} + kᵀ v, written with matrices."""
    keys, state = torch.randn(6, 4, dtype=torch.float64) / 2, torch.zeros(4, 6).double()
    rows = []
    for t, k in enumerate(keys):
        k = k[None]
        state = 0.9 * (torch.eye(4) - 0.6 * k.T @ k) @ state + k.T @ torch.eye(6).double()[t][None]
        rows.append((k @ state)[0])
    torch.testing.assert_close(read_back(keys, 0.9, 0.6), torch.stack(rows))


def test_of_a_key_of_length_one_it_gives_back_the_last_value_alone() -> None:
    keys = torch.eye(2).repeat(3, 1)
    assert torch.equal(read_back(keys, 1, 1), torch.eye(6))


def test_other_numbers_are_refused() -> None:
    keys = torch.ones(3, 2)
    ranges(
        lambda kept, overwritten: read_back(keys, kept, overwritten),
        kept=(0.5, 0.0, 1.0),
        overwritten=(0.5, 0.0, 1.0),
    )
    refused("keys (3,)", read_back, torch.ones(3), 1, 0)
    of_no_kind("keys is a list", read_back, [[1.0]], 1, 0)
