"""The three usages: which pattern goes where, what each reaches and costs, and the layer."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from refusals import ranges, refused

from tfviz import patterns
from tfviz.cores import Sparse
from tfviz.models.blocks import MultiHeadAttention
from tfviz.sparse import sparse_transformer_fixed as fixed
from tfviz.sparse import sparse_transformer_strided as strided
from tfviz.sparse import sparse_transformer_usage as usage

STRIDED, FIXED = strided.factors(8), fixed.factors(8)


def test_interleaved_starts_with_the_first_factor() -> None:
    a, b = STRIDED
    assert usage.interleaved(STRIDED, 5) == [a, b, a, b, a]  # A⁽¹⁺⁽ⁿ ᵐᵒᵈ ᵖ⁾⁾, n = 0, 1, …
    three = strided.radix_factors(4, 3)
    assert usage.interleaved(three, 4) == [*three, three[0]]


def test_merged_is_the_union_and_the_named_pattern() -> None:
    for factors, named in (
        (STRIDED, patterns.strided(stride=8)),
        (FIXED, patterns.fixed(block=8, summary=1)),
    ):
        layers = usage.merged(factors, 3)
        assert len(layers) == 3
        assert all(torch.equal(layer.mask(50), named.mask(50)) for layer in layers)
        both = factors[0].mask(50) | factors[1].mask(50)
        assert torch.equal(layers[0].mask(50), both)
        assert both.sum() <= factors[0].mask(50).sum() + factors[1].mask(50).sum()


def test_by_head_alternates_over_heads() -> None:
    (layer,) = usage.by_head(STRIDED, 1, heads=3)
    a, b = (factor.mask(20) for factor in STRIDED)
    assert torch.equal(layer.mask(20), torch.stack([a, b, a]))


@pytest.mark.parametrize("factors", [STRIDED, FIXED], ids=["strided", "fixed"])
def test_every_usage_reaches_all_in_two_layers_and_not_in_one(factors: tuple) -> None:
    for layers in (
        usage.interleaved(factors, 2),
        usage.merged(factors, 2),
        usage.by_head(factors, 2, heads=2),
    ):
        assert patterns.reach(layers, 64, layers=2).unreachable == 0
        assert patterns.reach(layers, 64, layers=1).unreachable > 0


def test_merged_needs_no_residual_interleaved_fixed_does() -> None:
    merged, turns = usage.merged(FIXED, 2), usage.interleaved(FIXED, 2)
    causal = torch.ones(64, 64, dtype=torch.bool).tril()
    for layers, everything in ((merged, True), (turns, False)):
        after = patterns.reach(layers, 64, layers=2, residual=False).by_layer[-1]
        assert torch.equal(after, causal) == everything


def layer_with(pattern: patterns.Pattern, h: int = 4) -> MultiHeadAttention:
    return MultiHeadAttention(12, h, core=Sparse, pattern=pattern)


def heads_by_loop(layer: MultiHeadAttention, X: torch.Tensor) -> torch.Tensor:
    """The layer by `attend`, head by head, from its own weights."""
    h, L = layer.h, X.shape[1]
    sets = [
        [row.nonzero().flatten().tolist() for row in mask]
        for mask in layer.pattern.mask(L).expand(h, L, L)
    ]
    Q, K, V = (Y.unflatten(-1, (h, -1)) for Y in layer.W_qkv(X).chunk(3, -1))  # (b, L, h, d_head)
    heads = [
        [strided.attend(Q[b, :, m], K[b, :, m], V[b, :, m], sets[m]) for m in range(h)]
        for b in range(len(X))
    ]
    return layer.W_o(torch.stack([torch.cat(found, -1) for found in heads]))


@pytest.mark.parametrize(
    "pattern",
    [STRIDED[0], FIXED[1], usage.merged(STRIDED, 1)[0], usage.by_head(FIXED, 1, heads=4)[0]],
    ids=["window", "summary (empty rows)", "merged", "per head"],
)
def test_one_layer_serves_all_three_head_by_head(pattern: patterns.Pattern) -> None:
    layer = layer_with(pattern).double()
    for L in (11, 20):  # a second length must not meet the first one's mask
        X = torch.randn(2, L, 12, dtype=torch.float64)
        torch.testing.assert_close(layer(X), heads_by_loop(layer, X))


def test_two_softmaxes_are_not_one() -> None:
    """Merged and per head connect the same tokens and compute different outputs."""
    merged = layer_with(usage.merged(STRIDED, 1)[0], h=2)
    heads = layer_with(usage.by_head(STRIDED, 1, heads=2)[0], h=2)
    heads.load_state_dict(merged.state_dict())
    X = torch.randn(1, 30, 12)
    assert not torch.allclose(merged(X), heads(X), atol=1e-3)


def test_bad_input_is_named() -> None:
    refused("factors is empty", usage.merged, [], 2)
    ranges(partial(usage.interleaved, STRIDED), layers=(2, 1))
    ranges(partial(usage.by_head, STRIDED, 1), heads=(4, 2))  # one would drop the second factor
    layer = layer_with(usage.by_head(STRIDED, 1, heads=2)[0])
    refused("has 2 heads, Q has shape (1, 4, 8, 3)", layer, torch.randn(1, 8, 12))
