"""Collaborative heads: shared features, their limits, and what becomes of a trained layer."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, streamed
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz import BERT, GPT, attention, patterns
from tfviz.basics.cache_cost import kept_bytes
from tfviz.basics.multi_head_attention import head_matrices, multi_head_definition
from tfviz.heads import collaborative_heads as ch
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
D, H, D_H = 16, 4, 4


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def layer(**more: Any) -> Any:
    """A layer with biases that are not 0."""
    attend = MultiHeadAttention(D, H, **more).double()
    for x in attend.parameters():
        x.data.normal_()
    return attend


# --- the layer ------------------------------------------------------------------------------------


def test_two_heads_that_share_two_features_by_hand() -> None:
    """Tokens are their features: (1, 0) and (0, ln 3). Head 0 takes both as they are, head 1 only
    the second, with −1. Divided by ln 3, token 1 has the scores 0 and ln 3, and 0 and −ln 3."""
    X = torch.tensor([[1.0, 0.0], [0.0, math.log(3)]], dtype=torch.float64)
    one = torch.eye(2, dtype=torch.float64)
    m = torch.tensor([[1.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    scale = math.log(3)
    A = ch.collaborative_definition(X, one, one, m, one.expand(2, 2, 2), None, scale)[1]
    close(A[0, 1], torch.tensor([1 / 4, 3 / 4]).double())
    close(A[1, 1], torch.tensor([3 / 4, 1 / 4]).double())
    close(A[1, 0], torch.tensor([1 / 2, 1 / 2]).double())
    content = torch.tensor([[0.0, 0.0], [0.0, 2 * math.log(3)]], dtype=torch.float64)
    A = ch.collaborative_definition(X, one, one, m, one.expand(2, 2, 2), content, scale)[1]
    close(A[1, 1], torch.tensor([1 / 4, 3 / 4]).double())  # −ln 3 + 2 ln 3 is ln 3


def test_blocks_are_multi_head_attention() -> None:
    attend = layer()
    for bias in (attend.W_qkv.bias, attend.W_o.bias):
        bias.data.zero_()
    W_q, W_k, W_v, W_o = head_matrices(attend)
    X = drawn(2, 7, D)
    Q, K = (W.transpose(0, 1).flatten(1) for W in (W_q, W_k))
    m = ch.blocks(H, D).double()
    out, A = ch.collaborative_definition(X, Q, K, m, W_v, pattern=patterns.causal())
    wanted = multi_head_definition(X, X, X, W_q, W_k, W_v, W_o, patterns.causal())
    close((out.transpose(-3, -2).flatten(-2) @ W_o, A), wanted)


@pytest.mark.parametrize("content", [False, True])
def test_all_ones_make_all_maps_equal_but_for_the_content_bias(content: bool) -> None:
    attend = MultiHeadAttention(
        D, H, **ch.collaborative(D, H, 6, content=content, mixing=torch.ones(H, 6))
    ).double()
    attend.watched = True
    attend(drawn(2, 7, D))
    A: Any = attend.seen and attend.seen.A
    assert torch.allclose(A, A[:, :1].expand_as(A)) != content


@torch.no_grad()
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("d_k", [1, 6, 24])
def test_a_model_computes_the_definition(d_k: int, content: bool) -> None:
    model = GPT(11, D, H, 2, **ch.collaborative(D, H, d_k, content=content)).double()
    t = torch.randint(11, (2, 9))
    close(streamed(model, t, [4, 1, 3, 1]), model(t))
    attend: Any = model.stack.blocks[0].attend
    p = attend.project
    p.W_v.bias.zero_()
    W_v = p.W_v.weight.T.unflatten(1, (H, D_H)).transpose(0, 1)
    w = p.content.weight if content else None
    X = drawn(2, 9, D)
    heads = ch.collaborative_definition(
        X, p.W_q.weight.T, p.W_k.weight.T, p.m, W_v, w, None, patterns.causal()
    )[0]
    close(attend(X), attend.W_o(heads.transpose(1, 2).flatten(2)))
    counted = sum(x.numel() for n, x in p.named_parameters() if "W_v" not in n)
    assert counted == ch.parameters(D, H, d_k, content)


@torch.no_grad()
def test_a_cache_keeps_shared_keys_once() -> None:
    model, cache = GPT(11, D, H, 2, **ch.collaborative(D, H, 6)), dict[Any, Any]()
    model(torch.randint(11, (1, 5)), cache)
    assert kept_bytes(cache) == 2 * 5 * (6 + H + D) * 4  # keys, content bias, values


def test_the_memory_of_another_sequence_and_gradients() -> None:
    attend = MultiHeadAttention(D, H, **ch.collaborative(D, H, 6)).double()
    X, memory = drawn(2, 5, D), drawn(2, 8, D)
    cache = dict[Any, Any]()
    whole = attend(X, memory)
    close(torch.cat([attend(x, memory, None, cache) for x in X.split(2, 1)], 1), whole)
    whole.square().sum().backward()
    assert all(x.grad is not None and x.grad.abs().sum() > 0 for x in attend.parameters())


# --- factors --------------------------------------------------------------------------------------


def error(factors: ch.Factors, T: Tensor) -> float:
    return float((factors.product() - T).norm() / T.norm())


def test_parafac_finds_features_that_heads_share_and_the_svd_cannot_share() -> None:
    """Four heads of rank 3 that use the same three features: rank 3 in all, 12 for the SVD."""
    planted = ch.Factors(drawn(D, 3), drawn(H, 3), drawn(D, 3))
    T = planted.product()
    assert min(error(ch.parafac(T, 3, seed, steps=500), T) for seed in range(3)) < 1e-2
    assert error(ch.svd(T, 3), T) > 0.3 and error(ch.svd(T, 12), T) < 1e-10
    assert ch.svd(T, 12).m.sum(0).equal(torch.ones(12).double())  # each feature has one head


def test_the_svd_drops_the_smallest_singular_values_of_all_heads() -> None:
    T = ch.products(layer()).detach()
    S = torch.linalg.svdvals(T).flatten().sort(descending=True)[0]
    for d_k in (1, 5, 12):
        lost = float((S[d_k:] ** 2).sum().sqrt() / T.norm())
        assert math.isclose(error(ch.svd(T, d_k), T), lost, rel_tol=1e-9)
    assert ch.svd(T, H * D + 3).W_q.shape == (D, H * D + 3) and error(ch.svd(T, H * D), T) < 1e-10


def test_parafac_gets_closer_with_features_and_with_steps() -> None:
    T = ch.products(layer()).detach()
    errors = [error(ch.parafac(T, d_k), T) for d_k in (1, 4, 8, 12)]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.5
    assert error(ch.parafac(T, 8, steps=1), T) > error(ch.parafac(T, 8), T)
    assert not ch.parafac(T, 8, seed=1).m.equal(ch.parafac(T, 8).m)
    close(ch.parafac(T, 8), ch.parafac(T, 8))


def test_parity_with_tensorly() -> None:
    """The package of the authors' code: from its random start, the same error within a hair."""
    tl = pytest.importorskip("tensorly")
    parafac = pytest.importorskip("tensorly.decomposition").parafac
    tl.set_backend("pytorch")
    T = ch.products(layer()).detach()
    ours, theirs = [], []
    for seed in range(5):
        ours.append(error(ch.parafac(T, 8, seed), T))
        axes = T.permute(1, 0, 2)  # queries, heads, keys, as theirs
        weights, found = parafac(axes, 8, init="random", tol=1e-6, random_state=seed)
        assert (weights == 1).all()
        theirs.append(error(ch.Factors(*found), T))
    assert abs(sum(ours) - sum(theirs)) / 5 < 0.02


def test_balanced_factors_are_the_same_product_with_the_strongest_feature_first() -> None:
    factors = ch.Factors(drawn(D, 5), drawn(H, 5), drawn(D, 5))
    even = factors.balanced()
    close(even.product(), factors.product())
    close(even.W_q.norm(dim=0), torch.ones(5).double())
    close(even.W_k.norm(dim=0), torch.ones(5).double())
    sizes = even.m.norm(dim=0)
    assert (sizes.diff() < 0).all()


# --- conversion -----------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("decompose", [ch.parafac, ch.svd])
def test_with_as_many_features_as_ever_nothing_is_lost(decompose: ch.Decompose) -> None:
    """Biases of queries, which become a content bias, and of keys, which fall away, included."""
    model = GPT(11, D, H, 2, positions=Learned(9, D)).double()
    for name, x in model.named_parameters():
        if "bias" in name:
            x.normal_()
    t = torch.randint(11, (2, 9))
    same = ch.convert(model, D, decompose)
    close(same(t), model(t))
    assert any(hasattr(x, "W_qkv") for x in model.modules())  # the model itself is left alone
    for module in same.modules():
        if isinstance(module, ch.Shared):
            assert module.content is not None
            module.content.weight.zero_()
    assert (same(t) - model(t)).abs().max() > 1e-3


@torch.no_grad()
def test_a_converted_layer_has_the_product_of_its_factors() -> None:
    """In the place of W_q W_kᵀ, and everything else as it was, the scale too."""
    attend = layer(pattern=patterns.causal())
    attend.W_qkv.bias[:D] = 0
    small: Any = ch.convert(nn.Sequential(attend), 6, ch.svd)[0]
    X = drawn(2, 7, D)
    T = ch.svd(ch.products(attend), 6).product()
    scores = X[:, None] @ T @ X[:, None].mT / math.sqrt(D_H)
    A = scores.masked_fill(~patterns.causal().mask(7), -math.inf).softmax(-1)
    V = attend.project(X, None)[2]
    close(small(X), attend.W_o((A @ V).transpose(1, 2).flatten(2)))
    assert small.W_o.weight.equal(attend.W_o.weight) and small.h == H


def test_a_converted_model_learns() -> None:
    small = ch.convert(BERT(11, D, H, 1), 5)
    small(torch.randint(11, (2, 6))).square().sum().backward()
    found = {n: p.grad for n, p in small.named_parameters() if "project" in n}
    assert len(found) == 6 and all(g is not None and g.abs().sum() > 0 for g in found.values())


def test_parameters_of_a_layer() -> None:
    assert ch.parameters(768, 12, 192, content=False) == 2 * 768 * 192 + 12 * 192
    assert ch.parameters(768, 12, 192) - ch.parameters(768, 12, 192, content=False) == 768 * 12
    ranges(ch.parameters, d=(16, 1), h=(4, 1), d_k=(6, 1))


def test_bad_input_is_named() -> None:
    refused("h = 4, d_k = 6; h must divide d_k", ch.blocks, 4, 6)
    refused("d = 16, h = 3; h must divide d", ch.Shared, 16, 3, 6)
    refused(
        "mixing has shape (2, 6); give (4, 6)",
        partial(ch.Shared, mixing=torch.ones(2, 6)),
        16,
        4,
        6,
    )
    ranges(partial(ch.Shared, d=16), h=(4, 1), d_k=(6, 1))
    ranges(partial(ch.Shared, h=1, d_k=6), d=(16, 1))
    ranges(partial(ch.parafac, drawn(H, D, D)), d_k=(3, 1), seed=(0, 0), steps=(2, 1))
    for decompose in (ch.parafac, ch.svd):
        refused("T has shape (16, 16); give", decompose, drawn(D, D), 3)
        refused("d_k = 0", decompose, drawn(H, D, D), 0)
    of_no_kind("Linear has no attention", ch.convert, nn.Linear(2, 2), 1)
    of_no_kind(
        "GPT has no attention, or one with a core", ch.convert, GPT(11, D, H, 1, core=Rope), 4
    )
    of_no_kind("has no W_qkv with as many", ch.convert, GPT(11, D, H, 1, h_kv=2), 4)
    refused("d_k = 0", ch.convert, GPT(11, D, H, 1), 0)


def defined(
    core: ch.SharedKeys, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask)


CASE = Case(
    ch.SharedKeys,
    defined,
    mutants=[
        (
            "features that no head weighs",
            "self.W_q(X)[:, None] * self.m[:, None]",
            "self.W_q(X)[:, None].expand(-1, self.h, -1, -1)",
        ),
        (
            "a bias that reaches every head",
            "own = torch.eye(self.h)",
            "own = torch.ones(self.h, self.h)",
        ),
        (
            "divided by the width of a key",
            "return math.sqrt(K.shape[-1]) / self.scale * Q",
            "return Q",
        ),
        ("a scale that changes", "shared.scale = math.sqrt(d_head)", "pass"),
        (
            "the smallest singular values",
            "S.flatten().argsort(descending=True",
            "S.flatten().argsort(descending=False",
        ),
        (
            "a step that forgets the heads",
            'W_k = _least_squares(torch.einsum("iqk,qr,ir->kr", T, W_q, m), W_q, m)',
            "pass",
        ),
        (
            "biases of keys in the place of those of queries",
            "bias[: attend.widths[0]]",
            "bias[attend.widths[0] : 2 * attend.widths[0]]",
        ),
        ("the model itself is converted", "model = copy.deepcopy(model)", "model = model"),
        (
            "no content bias is counted",
            'd_k", d_k, 1) + (d * h if content else 0)',
            'd_k", d_k, 1)',
        ),
    ],
)
