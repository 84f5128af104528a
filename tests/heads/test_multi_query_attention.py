"""Multi-query attention: one head of keys and values, through definition, model and cache."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, patterns
from tfviz.basics.cache_cost import kept_bytes
from tfviz.basics.multi_head_attention import head_matrices, multi_head_definition
from tfviz.heads import multi_query_attention as mqa
from tfviz.models.blocks import MultiHeadAttention

close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)
D, H, D_H = 16, 4, 4


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def weights(d: int = D, h: int = H, d_h: int = D_H) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return drawn(h, d, d_h), drawn(d, d_h), drawn(d, d_h), drawn(h * d_h, d)


def test_two_heads_and_two_tokens_by_hand() -> None:
    """Tokens 0 and ln 3 are keys as they are, and have the values 0 and 4. Head 0 asks with the
    token itself times 1 / ln 3, head 1 with its negative: token 1 weighs the keys 1 : 3, and
    3 : 1."""
    X = torch.tensor([[0.0, 0.0], [math.log(3), 4.0]], dtype=torch.float64)
    one = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    W_q = torch.stack([one, -one]) / math.log(3)
    out, A = mqa.multi_query_definition(X, W_q, one, one.flip(0), torch.eye(2).double())
    close(A[:, 0], torch.full((2, 2), 0.5).double())
    close(A[:, 1], torch.tensor([[0.25, 0.75], [0.75, 0.25]]).double())
    close(out[1], torch.tensor([3.0, 1.0]).double())


def test_it_is_multi_head_attention_with_tied_keys_and_values() -> None:
    X, (W_q, W_k, W_v, W_o) = drawn(2, 7, D), weights()
    for pattern in (None, patterns.causal()):
        got = mqa.multi_query_definition(X, W_q, W_k, W_v, W_o, pattern)
        W_ks, W_vs = W_k.expand(H, D, D_H), W_v.expand(H, D, D_H)
        close(got, multi_head_definition(X, X, X, W_q, W_ks, W_vs, W_o, pattern))
    assert (got[1][:, 0] - got[1][:, 1]).abs().max() > 0.1  # each head has a map of its own


def test_a_model_with_one_head_of_keys_computes_it() -> None:
    attend = MultiHeadAttention(D, H, h_kv=1, pattern=patterns.causal()).double()
    for bias in (attend.W_qkv.bias, attend.W_o.bias):
        bias.data.zero_()
    W_q, W_k, W_v, W_o = head_matrices(attend)
    X = drawn(2, 9, D)
    wanted = mqa.multi_query_definition(X, W_q, W_k[0], W_v[0], W_o, patterns.causal())[0]
    close(attend(X), wanted)


@torch.no_grad()
def test_the_cache_of_a_model_is_h_times_smaller() -> None:
    t = torch.randint(11, (2, 9))
    held = {}
    for h_kv in (H, 1):
        model, cache = GPT(11, D, H, 3, h_kv=h_kv), dict[Any, Any]()
        model(t, cache)
        held[h_kv] = kept_bytes(cache)
    assert held[1] == 2 * 2 * 9 * 3 * D_H * 4 and held[H] == H * held[1]


@pytest.mark.parametrize(("d", "h"), [(16, 4), (12, 3), (8, 1)])
def test_parameters_saved_are_those_of_a_layer(d: int, h: int) -> None:
    def count(h_kv: int) -> int:
        attend = MultiHeadAttention(d, h, h_kv=h_kv)
        return sum(x.numel() for x in (attend.W_qkv.weight, attend.W_o.weight))

    assert count(h) - count(1) == mqa.parameters_saved(d, d // h)


def test_a_wider_feed_forward_gives_them_back() -> None:
    """The paper goes from 4,096 to 5,440 (section 4.1): 18 attentions in 12 layers of 1,024."""
    assert mqa.matched_d_ff(1024, 128, 4096, attentions=18, layers=12) == 5440
    few, many = GPT(11, D, H, 2, h_kv=1, d_ff=76), GPT(11, D, H, 2, d_ff=64)
    assert mqa.matched_d_ff(D, D_H, 64) == 76
    of_matrices = [sum(x.numel() for x in m.parameters() if x.dim() == 2) for m in (few, many)]
    assert of_matrices[0] == of_matrices[1]


@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_x_transformers(causal: bool) -> None:
    theirs = pytest.importorskip("x_transformers").Attention
    theirs = theirs(D, heads=H, dim_head=D_H, one_kv_head=True, causal=causal, flash=True).double()
    X = drawn(2, 9, D)
    W_q = theirs.to_q.weight.T.unflatten(1, (H, D_H)).transpose(0, 1)
    W_k, W_v, W_o = (x.weight.T for x in (theirs.to_k, theirs.to_v, theirs.to_out))
    pattern = patterns.causal() if causal else None
    got = mqa.multi_query_definition(X, W_q, W_k, W_v, W_o, pattern)[0]
    close(got, theirs(X)[0] if isinstance(theirs(X), tuple) else theirs(X))


def test_bad_input_is_named() -> None:
    X, (W_q, W_k, W_v, W_o) = drawn(5, D), weights()
    call = mqa.multi_query_definition
    refused("W_q has shape (16, 4) … (h, d, d_h)", call, X, W_q[0], W_k, W_v, W_o)
    refused("W_k has shape (4, 16, 4) … give W_k as (d, d_h)", call, X, W_q, W_q, W_v, W_o)
    refused("W_v has shape (15, 4) … give W_v as (d, d_v)", call, X, W_q, W_k, W_v[1:], W_o)
    refused("W_o has 12 rows … make 16 columns", call, X, W_q, W_k, W_v, W_o[:12])
    ranges(mqa.parameters_saved, d=(16,), d_h=(4, 1, 16))
    ranges(
        mqa.matched_d_ff,
        d=(16,),
        d_h=(4, 1, 16),
        d_ff=(64, 1),
        attentions=(1, 1),
        layers=(1, 1),
    )


CASE = Case(
    mutants=[
        (
            "keys of the first head's queries",
            "K, V = X @ W_k, X @ W_v",
            "K, V = X @ W_q[0], X @ W_v",
        ),
        (
            "heads that are summed",
            "torch.cat(heads, -1) @ W_o",
            "sum(heads) @ W_o[: W_v.shape[-1]]",
        ),
        ("only keys are saved", "return 2 * _arguments", "return _arguments"),
        ("layers that save nothing together", "/ (2 * d * layers)", "/ (2 * d)"),
    ],
)
