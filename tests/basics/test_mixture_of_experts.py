"""A mixture of experts: each token keeps the probabilities of its k likeliest experts."""

from __future__ import annotations

import torch
from refusals import of_no_kind, refused

from tfviz.basics.mixture_of_experts import routed


def test_it_keeps_the_likeliest_and_their_probabilities() -> None:
    p = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    wanted = torch.tensor([[0.0, 0.0, 0.3, 0.4], [0.4, 0.3, 0.0, 0.0]])
    torch.testing.assert_close(routed(p, 2), wanted)


def test_with_all_experts_nothing_is_lost() -> None:
    p = torch.randn(2, 5, 6).softmax(-1)
    assert torch.equal(routed(p, 6), p)
    assert ((routed(p, 1) > 0).sum(-1) == 1).all()


def test_as_many_experts_as_there_are_may_be_chosen() -> None:
    p = torch.full((2, 3), 1 / 3)
    refused("k = 4", routed, p, 4)
    refused("k = 0", routed, p, 0)
    of_no_kind("p is a list", routed, [0.5, 0.5], 1)
