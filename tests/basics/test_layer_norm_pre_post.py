"""Layer normalisation by hand and as torch's; both orders; what goes forwards and comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn
from torch.func import jacrev

from tfviz import patterns
from tfviz.basics.layer_norm_pre_post import (
    RMSNorm,
    layer_norm,
    layer_norm_jacobian,
    no_norm,
    no_norm_no_skip,
    post_norm,
    post_norm_no_skip,
    pre_norm,
    pre_norm_no_skip,
    rms_norm,
    signals,
)
from tfviz.basics.pointwise_mlp import SwiGLU
from tfviz.models.blocks import Block, Stack
from tfviz.position.rope import Rope

close = torch.testing.assert_close


def test_golden_numbers() -> None:
    X = torch.tensor([[1.0, 3.0], [-4.0, 4.0]])
    close(layer_norm(X, eps=0.0), torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))
    gamma, beta = torch.tensor([2.0, 10.0]), torch.tensor([0.0, 1.0])
    close(layer_norm(X, gamma, beta, eps=0.0), torch.tensor([[-2.0, 11.0], [-2.0, 11.0]]))
    close(rms_norm(torch.tensor([3.0, 4.0]), eps=0.0), torch.tensor([3.0, 4.0]) / 12.5**0.5)
    # 1, 2, 3: variance 2/3 if divided by d, 1 if by d − 1
    close(layer_norm(torch.tensor([1.0, 2.0, 3.0]), eps=0.0)[2], torch.tensor(1.5**0.5))


def test_it_is_torchs() -> None:
    X, gamma, beta = torch.randn(3, 5, 7), torch.randn(7), torch.randn(7)
    theirs = torch.nn.functional.layer_norm(X, (7,), gamma, beta, eps=1e-3)
    close(layer_norm(X, gamma, beta, 1e-3), theirs)
    close(rms_norm(X, gamma, 1e-3), torch.nn.functional.rms_norm(X, (7,), gamma, eps=1e-3))
    unbiased = (X - X.mean(-1, keepdim=True)) / (X.var(-1, keepdim=True) + 1e-3).sqrt()
    assert not torch.allclose(gamma * unbiased + beta, theirs, atol=1e-3)
    over_tokens = (X - X.mean(1, keepdim=True)) / X.std(1, keepdim=True, correction=0)
    assert not torch.allclose(over_tokens, layer_norm(X), atol=1e-2)


def test_the_trained_rms_norm_is_torchs() -> None:
    X, gamma = torch.randn(2, 5, 8), torch.randn(8)
    for eps in (1e-5, 0.5):
        ours, theirs = RMSNorm(8, eps), nn.RMSNorm(8, eps)
        close(ours(X), theirs(X))  # γ begins at 1
        theirs.weight.data = gamma
        ours.load_state_dict(theirs.state_dict())
        close(ours(X), theirs(X))
    assert [name for name, _ in RMSNorm(8).named_parameters()] == ["weight"]


def test_rms_norm_forgets_the_factor_and_keeps_the_offset() -> None:
    X = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    Z = rms_norm(X, eps=0.0)
    close(Z, X / 12.5**0.5)
    close(rms_norm(10 * X, eps=0.0), Z)
    close(layer_norm(X + 10, eps=0.0), layer_norm(X, eps=0.0))
    far = rms_norm(X + 10, eps=0.0)
    close(far, (X + 10) / 172.5**0.5)  # 121 + 144 + 169 + 256 = 690 = 4 · 172.5
    assert far.var(correction=0) < 0.03 < Z.var(correction=0)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 9999), st.integers(2, 9), st.floats(0.1, 50), st.floats(-20, 20))
def test_invariants(seed: int, d: int, a: float, b: float) -> None:
    X = torch.randn(3, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    Z = layer_norm(X, eps=0.0)
    close(Z.mean(-1), torch.zeros(3).double(), atol=1e-9, rtol=0)
    close(Z.var(-1, correction=0), torch.ones(3).double())
    close(layer_norm(a * X + b, eps=0.0), Z, atol=1e-6, rtol=1e-6)
    close(layer_norm(-X, eps=0.0), -Z)  # the sign is kept: a > 0 is needed
    close(rms_norm(a * X, eps=0.0), rms_norm(X, eps=0.0))
    close(rms_norm(X - X.mean(-1, keepdim=True), eps=0.0), Z)  # LN is centring, then RMSNorm
    close(layer_norm(Z, eps=0.0), Z)


def test_the_jacobian_is_the_derivative_and_loses_two_directions() -> None:
    x = torch.randn(6, dtype=torch.float64)
    for eps in (0.0, 0.3):
        J = layer_norm_jacobian(x, eps)
        close(J, jacrev(lambda x: layer_norm(x, eps=eps))(x))  # noqa: B023
    J = layer_norm_jacobian(x, 0.0)
    zero = torch.zeros(6, dtype=torch.float64)
    close(torch.ones(6, dtype=torch.float64) @ J, zero, atol=1e-12, rtol=0)
    close(x @ J, zero, atol=1e-12, rtol=0)
    sizes = torch.linalg.svdvals(J)
    sigma = x.var(correction=0).sqrt()
    close(sizes[:4], (1 / sigma).expand(4))
    close(layer_norm_jacobian(2 * x, 0.0), J / 2)


def test_orders_by_hand() -> None:
    X = torch.randn(2, 3, 4)
    F, LN = lambda X: X**2, lambda X: X + 1  # not real ones: so that every place shows
    close(post_norm(X, F, LN), X + X**2 + 1)
    close(pre_norm(X, F, LN), X + (X + 1) ** 2)
    close(no_norm(X, F, LN), X + X**2)
    close(pre_norm_no_skip(X, F, LN), (X + 1) ** 2)
    close(post_norm_no_skip(X, F, LN), X**2 + 1)
    close(no_norm_no_skip(X, F, LN), X**2)


def test_with_a_silent_module_pre_norm_is_the_identity_and_post_norm_is_not() -> None:
    X = torch.randn(2, 3, 4)
    assert torch.equal(pre_norm(X, torch.zeros_like, layer_norm), X)
    close(post_norm(X, torch.zeros_like, layer_norm), layer_norm(X))
    assert not torch.allclose(post_norm(X, torch.zeros_like, layer_norm), X, atol=1e-2)


@pytest.mark.parametrize("order", [pre_norm, post_norm, no_norm, pre_norm_no_skip])
def test_signals_are_those_of_the_stack(order: Any) -> None:
    stack = Stack(3, 8, 2, order)
    X, G = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    found = signals(stack, X, G)
    assert (len(found.stream), len(found.gradient), len(found.weights)) == (4, 4, 3)
    assert all(p.grad is None for p in stack.parameters())
    x = X.clone().requires_grad_()
    out = stack(x)
    (G * out).sum().backward()
    rms = lambda X: X.square().mean().sqrt().item()  # noqa: E731
    assert found.stream[0] == pytest.approx(rms(X))
    assert found.gradient[0] == pytest.approx(rms(x.grad), rel=1e-4)
    W = stack.blocks[1].feed.W_2.weight  # type: ignore[union-attr]
    assert found.weights[1] == pytest.approx(W.grad.norm().item(), rel=1e-4)  # type: ignore[union-attr, operator]


def mean_signals(order: Any, N: int) -> tuple[float, ...]:
    """First and last gradient of W_2, and the stream's last size: means over four seeds."""
    found = []
    for seed in range(4):
        torch.manual_seed(seed)
        s = signals(Stack(N, 32, 2, order), torch.randn(2, 12, 32), torch.randn(2, 12, 32))
        found.append(torch.tensor([s.weights[0], s.weights[-1], s.stream[-1]]))
    return tuple(torch.stack(found).mean(0).tolist())


def test_xiongs_claim_at_the_start() -> None:
    """Of the last layer, pre-norm's gradient shrinks with depth and post-norm's does not."""
    post, pre = ({N: mean_signals(order, N) for N in (2, 16)} for order in (post_norm, pre_norm))
    assert pre[16][1] < 0.75 * pre[2][1]
    assert post[16][1] > 0.85 * post[2][1]
    assert pre[16][2] > 1.3 * pre[2][2]  # because the stream of pre-norm has grown
    assert post[16][2] == pytest.approx(1.0, abs=0.01)


# --- the block of today's models ------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("h_kv", [4, 2])
def test_parity_with_a_layer_of_hugging_face_llama(h_kv: int) -> None:
    """Pre-norm with RMSNorm, rotary positions, grouped heads and SwiGLU, all at once."""
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    d, h, d_head, d_ff, L = 32, 4, 8, 40, 9
    config = LlamaConfig(  # type: ignore[call-arg, unused-ignore]
        hidden_size=d,
        intermediate_size=d_ff,
        num_attention_heads=h,
        num_key_value_heads=h_kv,
        rms_norm_eps=1e-5,
        attn_implementation="eager",
    )
    theirs: Any = LlamaDecoderLayer(config, 0).double()
    ours: Any = Block(
        d,
        h,
        pre_norm,
        core=Rope,
        pattern=patterns.causal(),
        h_kv=h_kv,
        feed=SwiGLU,
        norm=RMSNorm,
        d_ff=d_ff,
    ).double()
    assert isinstance(ours.norms[0], RMSNorm) and isinstance(ours.feed, SwiGLU)

    attend, pairs = theirs.self_attn, torch.arange(d_head).view(2, -1).T.flatten()
    in_pairs = [  # Hugging Face turns (m, m + d_head/2) together, we (2m, 2m + 1)
        x.weight.unflatten(0, (-1, d_head))[:, pairs].flatten(0, 1)
        for x in (attend.q_proj, attend.k_proj)
    ]
    ours.attend.W_qkv.weight.copy_(torch.cat([*in_pairs, attend.v_proj.weight]))
    ours.attend.W_o.weight.copy_(attend.o_proj.weight)
    for bias in (ours.attend.W_qkv.bias, ours.attend.W_o.bias):
        bias.zero_()
    for name, other in (("W_1", "gate_proj"), ("W_3", "up_proj"), ("W_2", "down_proj")):
        ours.feed.get_submodule(name).load_state_dict(getattr(theirs.mlp, other).state_dict())
    norms = theirs.input_layernorm, theirs.post_attention_layernorm
    for mine, norm in zip(ours.norms, norms, strict=True):
        norm.weight.copy_(torch.rand(d) + 0.5)
        mine.load_state_dict(norm.state_dict())

    X = torch.randn(2, L, d, dtype=torch.float64)
    angles = LlamaRotaryEmbedding(config).double()(X, torch.arange(L)[None])
    above = torch.full((L, L), float("-inf")).triu(1)[None, None].double()
    wanted = theirs(X, attention_mask=above, position_embeddings=angles)
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    close(ours(X), wanted, atol=1e-5, rtol=1e-5)


def test_a_stack_of_todays_blocks() -> None:
    stack: Any = Stack(2, 16, 4, feed=SwiGLU, norm=RMSNorm)
    assert isinstance(stack.norm, RMSNorm)
    assert stack.blocks[1].feed.W_3.weight.shape == (42, 16)  # ⌊8 · 16/3⌋
    X = torch.randn(2, 5, 16)
    assert len(signals(stack, X, torch.randn_like(X)).weights) == 2
    assert sum(p.numel() for p in stack.norm.parameters()) == 16
    of_no_kind("feed = SwiGLU takes no phi", Stack, 1, 16, 4, feed=SwiGLU, phi=nn.ReLU)
    of_no_kind("norm = RMSNorm()", Stack, 1, 16, 4, norm=RMSNorm(16))
    assert isinstance(Stack(1, 16, 4, post_norm, norm=RMSNorm).norm, nn.Identity)


def test_bad_input_is_named() -> None:
    X, one, two = torch.zeros(2, 3), torch.ones(3), torch.ones(2)
    for norm in (layer_norm, rms_norm):
        ranges(partial(norm, X), eps=(0.1, 0.0))
    refused("gamma has shape (2, 1) … (3,)", layer_norm, X, two[:, None])
    refused("beta has shape (2,) … (3,)", layer_norm, X, one, two)
    refused("gamma has shape (4,) … (3,)", rms_norm, X, torch.ones(4))
    ranges(RMSNorm, d=(3, 1), eps=(0.1, 0.0))
    refused("X has shape (2, 3); give rows of 4 numbers", RMSNorm(4), X)
    of_no_kind("X is a list", RMSNorm(4), [1.0])


@pytest.mark.parametrize("norm", [layer_norm, rms_norm, RMSNorm(64)])
def test_squares_do_not_overflow_in_half_precision(norm: Callable[[Tensor], Tensor]) -> None:
    X = 1000 * torch.randn(3, 64)
    got = norm(X.half())
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.float(), norm(X.half().float()), atol=2e-3, rtol=2e-3)


CASE = Case(
    mutants=[
        (
            "a mean that is taken off",
            "gamma * X / ((X**2).mean",
            "gamma * (X - X.mean(-1, True)) / ((X**2).mean",
        ),
        (
            "a sum for a mean of squares",
            "((X**2).mean(-1, keepdim=True)",
            "((X**2).sum(-1, keepdim=True)",
        ),
        (
            "a module without its weight",
            "rms_norm(X, self.weight, self.eps)",
            "rms_norm(X, 1.0, self.eps)",
        ),
        (
            "a module with another ε",
            "rms_norm(X, self.weight, self.eps)",
            "rms_norm(X, self.weight)",
        ),
        (
            "a variance divided by d − 1",
            "variance = (centred**2).mean(-1, keepdim=True)",
            "variance = centred.var(-1, keepdim=True)",
        ),
    ],
)
