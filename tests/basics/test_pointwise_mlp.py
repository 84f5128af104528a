"""The feed-forward network: by hand, row by row, as a convolution and a memory; what it costs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.basics.pointwise_mlp import (
    SwiGLU,
    block_flops,
    block_weights,
    feed_forward,
    gated_units,
    gelu,
    memory_lookup,
    swiglu,
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


def gates(d: int = 4, d_ff: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(5)
    sizes = (d, d_ff), (d, d_ff), (d_ff, d)
    W_1, W_3, W_2 = (torch.randn(*size, generator=rng, dtype=torch.float64) for size in sizes)
    return W_1, W_3, W_2


def test_a_gated_network_by_hand() -> None:
    # One unit: the gate is the first number, and what passes is the second; silu(1) = 1/(1 + 1/e).
    W_1, W_3 = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]])
    W_2 = torch.tensor([[2.0, -1.0]])
    X = torch.tensor([[1.0, 3.0], [0.0, 3.0], [-30.0, 3.0]])
    open_ = 3 / (1 + math.exp(-1))
    wanted = torch.tensor([[2 * open_, -open_], [0.0, 0.0], [0.0, 0.0]])
    close(swiglu(X, W_1, W_3, W_2), wanted, atol=1e-6, rtol=0)


def test_a_gated_network_unit_by_unit() -> None:
    (W_1, W_3, W_2), X = gates(), torch.randn(3, 4, dtype=torch.float64)
    wanted = torch.zeros_like(X)
    for i, x in enumerate(X):
        for u in range(6):
            gate, passes = (x @ W_1[:, u]).item(), x @ W_3[:, u]
            wanted[i] += gate / (1 + math.exp(-gate)) * passes * W_2[u]
    close(swiglu(X, W_1, W_3, W_2), wanted)


def test_the_trained_gated_network_is_the_formula() -> None:
    module = SwiGLU(4)
    assert {name: tuple(W.shape) for name, W in module.named_parameters()} == {
        "W_1.weight": (10, 4),
        "W_3.weight": (10, 4),
        "W_2.weight": (4, 10),
    }
    X = torch.randn(2, 5, 4)
    close(module(X), swiglu(X, *(W.weight.T for W in (module.W_1, module.W_3, module.W_2))))
    assert SwiGLU(4, 7).W_2.weight.shape == (4, 7)


@torch.no_grad()
def test_parity_with_hugging_face_llama() -> None:
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    config = LlamaConfig(hidden_size=16, intermediate_size=40, num_attention_heads=4)
    theirs, ours = LlamaMLP(config), SwiGLU(16, 40)
    for mine, other in (("W_1", "gate_proj"), ("W_3", "up_proj"), ("W_2", "down_proj")):
        getattr(ours, mine).weight.copy_(getattr(theirs, other).weight)
    X = torch.randn(2, 9, 16)
    close(ours(X), theirs(X), atol=1e-6, rtol=1e-6)


def test_three_matrices_have_no_more_weights_than_two() -> None:
    for d in (1, 3, 32, 85, 768, 4096):
        units = gated_units(d)
        assert 3 * d * units <= 8 * d * d < 3 * d * (units + 1)
        found = block_weights(d, gated=True)["feed-forward"]
        assert found == sum(W.numel() for W in SwiGLU(d).parameters()) == 3 * d * units
    assert math.ceil(gated_units(4096) / 256) * 256 == 11_008  # Llama 7B


def test_flops_of_a_gated_network_are_counted() -> None:
    for L, d, d_ff in ((8, 16, None), (32, 8, 24)):
        found = block_flops(L, d, d_ff, gated=True)
        assert found["feed-forward"] == flops(SwiGLU(d, d_ff), torch.randn(1, L, d))
        usual = block_flops(L, d, d_ff)
        assert {x: found[x] for x in ("projections", "scores")} == {
            x: usual[x] for x in ("projections", "scores")
        }


def test_an_open_gate_makes_it_a_product_of_its_input_with_itself() -> None:
    """Far from 0, twice the row is four times the answer; a usual network's answer doubles."""
    (W_1, W_3, W_2), x = gates(), 1e3 * torch.randn(4, dtype=torch.float64)
    close(swiglu(2 * x, W_1, W_3, W_2), 4 * swiglu(x, W_1, W_3, W_2), rtol=1e-6, atol=0)
    zero = torch.zeros(6).double(), torch.zeros(4).double()
    usual = partial(feed_forward, W_1=W_1, b_1=zero[0], W_2=W_2, b_2=zero[1])
    close(usual(2 * x), 2 * usual(x))


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
    ranges(block_weights, d=(4, 1), d_ff=(8, 1))


def test_bad_input_of_a_gated_network_is_named() -> None:
    (W_1, W_3, W_2), X = gates(), torch.randn(5, 4, dtype=torch.float64)
    refused("W_1 has shape (6, 4) … 4 numbers in a row of X", swiglu, X, W_1.T, W_3, W_2)
    refused("W_3 has shape (4, 5) … must be (4, 6)", swiglu, X, W_1, W_3[:, 1:], W_2)
    refused("W_2 has shape (4, 6) … must be (6, 4)", swiglu, X, W_1, W_3, W_2.T)
    refused("X of shape (5, 3)", SwiGLU(4), torch.randn(5, 3))
    of_no_kind("X is a list", SwiGLU(4), [1.0])
    ranges(SwiGLU, d=(4, 1), d_ff=(8, 1))
    ranges(gated_units, d=(4, 1))


def test_a_lookup_names_shapes_that_do_not_fit() -> None:
    x, K, b_1, V = torch.randn(4), torch.randn(6, 4), torch.randn(6), torch.randn(6, 4)
    for wrong in ((x[None], K, b_1, V), (x, K.T, b_1, V), (x, K, b_1[1:], V), (x, K, b_1, V[1:])):
        refused("x has shape … K … b_1 … V", memory_lookup, *wrong, torch.randn(4))


CASE = Case(
    mutants=[
        ("a gate that is added", "F.silu(X @ W_1) * (X @ W_3)", "F.silu(X @ W_1) + (X @ W_3)"),
        ("a gate of its own", "(F.silu(X @ W_1) * (X @ W_3))", "(F.silu(X @ W_1) * (X @ W_1))"),
        (
            "the gate on the other side",
            "self.W_2(F.silu(self.W_1(X)) * self.W_3(X))",
            "self.W_2(self.W_1(X) * F.silu(self.W_3(X)))",
        ),
        ("a sigmoid for silu", "F.silu(self.W_1(X))", "F.sigmoid(self.W_1(X))"),
        (
            "more weights than before",
            '8 * _arguments.integer("d", d, 1) // 3',
            '4 * _arguments.integer("d", d, 1)',
        ),
        ("two matrices where there are three", "(2 + gated) * d", "2 * d"),
    ],
)
