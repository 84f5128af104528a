"""The feed-forward network: by hand, row by row, as a convolution and a memory; what it costs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz.basics.pointwise_mlp import (
    block_flops,
    block_weights,
    feed_forward,
    gelu,
    memory_lookup,
)
from tfviz.measure import flops
from tfviz.models.blocks import Block, FeedForward

close = torch.testing.assert_close


def case(d: int = 4, d_ff: int = 6) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sizes = (d, d_ff), (d_ff,), (d_ff, d), (d,)
    W_1, b_1, W_2, b_2 = (torch.randn(*size, dtype=torch.float64) for size in sizes)
    return W_1, b_1, W_2, b_2


def test_golden_numbers() -> None:
    # Two units: one says x − 1 where that is positive, the other −x; both add to the first output.
    W_1, b_1 = torch.tensor([[1.0, -1.0]]), torch.tensor([-1.0, 0.0])
    W_2, b_2 = torch.tensor([[1.0], [2.0]]), torch.tensor([0.5])
    X = torch.tensor([[3.0], [0.5], [-2.0]])
    close(feed_forward(X, W_1, b_1, W_2, b_2), torch.tensor([[2.5], [0.5], [4.5]]))


def test_it_is_the_models_module() -> None:
    for phi in (nn.ReLU(), nn.GELU()):
        module: Any = FeedForward(4, 10, phi)
        X = torch.randn(2, 5, 4)
        W = module.W_1.weight.T, module.W_1.bias, module.W_2.weight.T, module.W_2.bias
        close(module(X), feed_forward(X, *W, phi=phi))


def test_rows_do_not_meet() -> None:
    parts, X = case(), torch.randn(7, 4, dtype=torch.float64)
    Z = feed_forward(X, *parts)
    close(torch.cat([feed_forward(x, *parts) for x in X.split(1)]), Z)
    other = X.clone()
    other[2] += 1
    moved = (feed_forward(other, *parts) - Z).abs().sum(-1) > 1e-9
    assert moved.nonzero().flatten().tolist() == [2]


def test_it_is_a_convolution_of_width_one() -> None:
    (W_1, b_1, W_2, b_2), X = case(), torch.randn(2, 7, 4, dtype=torch.float64)
    hidden = F.relu(F.conv1d(X.mT, W_1.T[..., None], b_1))
    out = F.conv1d(hidden, W_2.T[..., None], b_2).mT
    close(out, feed_forward(X, W_1, b_1, W_2, b_2))


def test_it_is_a_memory() -> None:
    (W_1, b_1, W_2, b_2), x = case(), torch.randn(4, dtype=torch.float64)
    z, a = memory_lookup(x, W_1.T, b_1, W_2, b_2)
    close(z, feed_forward(x, W_1, b_1, W_2, b_2))
    close(a, F.relu(x @ W_1 + b_1))


def test_without_a_nonlinearity_it_is_one_affine_map() -> None:
    (W_1, b_1, W_2, b_2), X = case(), torch.randn(5, 4, dtype=torch.float64)
    straight = feed_forward(X, W_1, b_1, W_2, b_2, phi=lambda H: H)
    close(straight, X @ (W_1 @ W_2) + (b_1 @ W_2 + b_2))
    assert not torch.allclose(feed_forward(X, W_1, b_1, W_2, b_2), straight)


def test_gelu_is_torchs_and_lies_under_the_relu() -> None:
    X = torch.linspace(-8, 8, 401, dtype=torch.float64)
    close(gelu(X), F.gelu(X))
    close(gelu(torch.tensor(1.0)), torch.tensor(0.8413447))  # Φ(1)
    assert (gelu(X) <= F.relu(X) + 1e-12).all() and gelu(X).min() > -0.17
    assert not torch.allclose(gelu(X), F.gelu(X, approximate="tanh"), atol=1e-5)


def test_weights_and_flops_are_those_of_a_block() -> None:
    for L, d, d_ff in ((8, 16, 64), (32, 8, 24)):
        block = Block(d, 2, d_ff=d_ff)
        matrices = {n: p.numel() for n, p in block.named_parameters() if p.ndim == 2}
        feed = sum(size for name, size in matrices.items() if name.startswith("feed"))
        found = block_weights(d, d_ff)
        assert found["feed-forward"] == feed
        assert found["attention"] == sum(matrices.values()) - feed
        mine = block_flops(L, d, d_ff)
        assert flops(block, torch.randn(1, L, d)) == sum(mine.values())


def test_two_thirds_of_the_weights_and_the_crossing_at_4d() -> None:
    found = block_weights(32)
    assert found == {"attention": 4096, "feed-forward": 8192}
    for d in (8, 64):
        at = block_flops(4 * d, d)
        assert at["scores"] == at["feed-forward"] == 2 * at["projections"]
        assert block_flops(4 * d - 1, d)["scores"] < block_flops(4 * d - 1, d)["feed-forward"]


def test_bad_input_is_named() -> None:
    W_1, b_1, W_2, b_2 = case()
    X = torch.randn(5, 4, dtype=torch.float64)
    refused("W_1 has shape (6, 4) … must be (4, 6)", feed_forward, X, W_1.T, b_1, W_2, b_2)
    refused("b_2 has shape (3,)", feed_forward, X, W_1, b_1, W_2, b_2[:3])
    ranges(block_flops, L=(4, 1), d=(4, 1), d_ff=(8, 1))


def test_a_lookup_names_shapes_that_do_not_fit() -> None:
    x, K, b_1, V = torch.randn(4), torch.randn(6, 4), torch.randn(6), torch.randn(6, 4)
    for wrong in ((x[None], K, b_1, V), (x, K.T, b_1, V), (x, K, b_1[1:], V), (x, K, b_1, V[1:])):
        refused("x has shape … K … b_1 … V", memory_lookup, *wrong, torch.randn(4))
