"""Differential attention: a map minus a share of another, and where that share begins."""

from __future__ import annotations

import torch
from refusals import of_no_kind, ranges, refused

from tfviz.heads.differential_attention import difference, start_of_lambda


def test_the_share_begins_small_and_grows_with_the_depth() -> None:
    assert abs(start_of_lambda(0) - 0.2) < 1e-12  # 0.8 − 0.6
    assert abs(start_of_lambda(1) - 0.355509) < 1e-6  # 0.8 − 0.6 / e^0.3
    ranges(lambda n: start_of_lambda(n), n=(3, 0))


def test_what_both_maps_share_cancels() -> None:
    noise = torch.rand(2, 4, 4, dtype=torch.float64)
    wanted = torch.zeros(2, 4, 4, dtype=torch.float64)
    wanted[..., 2] = 0.5
    torch.testing.assert_close(difference(noise + wanted, noise, 1.0), wanted)
    rows = difference(noise.softmax(-1), (2 * noise).softmax(-1), 0.3).sum(-1)
    torch.testing.assert_close(rows, torch.full_like(rows, 0.7))


def test_other_shapes_are_refused() -> None:
    refused("first (2, 3) and second (3, 3)", difference, torch.ones(2, 3), torch.ones(3, 3), 0.5)
    refused("share = nan", difference, torch.ones(2, 2), torch.ones(2, 2), float("nan"))
    of_no_kind("second is a list", difference, torch.ones(2, 2), [], 0.5)
