"""Talking heads: mixtures of scores and of weights by hand, in models, beside x-transformers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, H, agree_with_gradients, qkv, streamed
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, attention, patterns
from tfviz.cores import Dense, Where
from tfviz.heads import talking_heads as th
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import maps, watched

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
D = 16


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


# --- by hand --------------------------------------------------------------------------------------


def test_a_head_that_negates_another_by_hand() -> None:
    """One head of queries and keys has the scores 0 and ln 3. The second softmax head takes them
    with −1, so its weights are 3/4 and 1/4 where the first has 1/4 and 3/4. The values are weighed
    by the first less the second: −1/2 and 1/2, which sum to zero."""
    Q = torch.ones(1, 1, 1, dtype=torch.float64)
    K = torch.tensor([[[0.0], [math.log(3)]]], dtype=torch.float64)
    V = torch.tensor([[[2.0], [6.0]]], dtype=torch.float64)
    P_l, P_w = torch.tensor([[1.0, -1.0]]).double(), torch.tensor([[1.0], [-1.0]]).double()
    out, U = th.talking_definition(Q, K, V, P_l, P_w)
    close(U, torch.tensor([[[-0.5, 0.5]]]).double())
    close(out, torch.tensor([[[2.0]]]).double())


def test_identities_are_multi_head_attention() -> None:
    Q, K, V = qkv()
    one = torch.eye(H, dtype=torch.float64)
    for mask in (None, patterns.causal().mask(9)):
        close(th.talking_definition(Q, K, V, one, one, mask), attention(Q, K, V, mask))
    close(th.Talking(H).double()(Q, K, V, Where())[0], Dense()(Q, K, V, Where())[0])


def test_rows_sum_to_the_columns_of_the_second_matrix_and_may_be_negative() -> None:
    Q, K, V = qkv()
    core = th.Talking(H).double()
    core.P_w.data = drawn(H, H)
    U = core(Q, K, V, Where(patterns.causal(), need_weights=True))[1]
    assert U is not None and (U < 0).any()
    close(U.sum(-1), core.P_w.sum(0)[:, None].expand(2, H, 9))
    assert (U.triu(1) == 0).all()


@pytest.mark.parametrize(("h_k", "h", "h_v"), [(1, 3, 2), (3, 2, 5), (2, 7, 1), (4, 4, 4)])
def test_any_three_numbers_of_heads(h_k: int, h: int, h_v: int) -> None:
    """With a mask for each head of the softmax, too, and shared keys where they divide."""
    core = th.Talking(h, h_k, h_v).double()
    core.P_l.data, core.P_w.data = drawn(h_k, h), drawn(h, h_v)
    Q, K, V = (drawn(2, n, 9, 4).requires_grad_() for n in (h_k, h_k, h_v))
    own = patterns.per_head(*(patterns.sliding_window(lookback=n) for n in range(h)))
    leaves = [Q, K, V, core.P_l, core.P_w]
    for pattern in (patterns.causal(), own):
        for asked in (False, True):
            out, U = core(Q, K, V, Where(pattern, need_weights=asked))
            wanted, maps_ = th.talking_definition(Q, K, V, core.P_l, core.P_w, pattern.mask(9))
            agree_with_gradients(out, wanted, leaves)
            close(U, maps_)
    shared = core(Q, K[:, :1], V[:, :1], Where())[0]
    close(shared, core(Q, K[:, :1].expand_as(K), V[:, :1].expand_as(V), Where())[0])


# --- in a model -----------------------------------------------------------------------------------


@torch.no_grad()
def test_a_model_has_the_three_numbers_streams_and_shows_its_maps() -> None:
    model = GPT(11, D, 4, 2, **th.talking(D, h_k=2, h=8, h_v=3, d_k=5, d_v=7)).double()
    t = torch.randint(11, (2, 9))
    close(streamed(model, t, [4, 1, 3, 1]), model(t))
    with watched(model):
        model(t)
        assert [A.shape for A in maps(model).values()] == 2 * [(2, 3, 9, 9)]
    attend: Any = model.stack.blocks[0].attend
    X = drawn(2, 9, D)
    Q, K, V = attend.project(X, None)
    assert (Q.shape, V.shape) == ((2, 2, 9, 5), (2, 3, 9, 7))
    core = attend.core
    heads = th.talking_definition(Q, K, V, core.P_l, core.P_w, patterns.causal().mask(9))[0]
    close(attend(X), heads.transpose(1, 2).flatten(2) @ attend.join.weight.T)


def test_as_many_heads_as_ever_need_nothing_but_the_core() -> None:
    """It starts as the model without it, and both matrices learn."""
    t = torch.randint(11, (2, 9))
    torch.manual_seed(1)
    plain = GPT(11, D, H, 2)
    talks = GPT(11, D, H, 2, core=th.Talking)
    talks.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(talks(t), plain(t), atol=1e-5, rtol=1e-5)
    talks(t).square().sum().backward()
    found = {n: p.grad for n, p in talks.named_parameters() if "P_" in n}
    assert len(found) == 4 and all(g is not None and g.abs().sum() > 0 for g in found.values())


def test_the_memory_of_another_sequence() -> None:
    attend = MultiHeadAttention(D, 4, **th.talking(D, 2, 6, 3, d_k=4, d_v=4)).double()
    X, memory = drawn(2, 5, D), drawn(2, 8, D)
    Q, _, _ = attend.project(X, None)
    _, K, V = attend.project(memory, None)
    core: Any = attend.core
    heads = th.talking_definition(Q, K, V, core.P_l, core.P_w)[0]
    close(attend(X, memory), attend.join(heads, X))


def test_operations_of_the_mixtures() -> None:
    assert th.extra_flops(10, 2, 4, 3) == 2 * 100 * (2 * 4 + 4 * 3)
    ranges(th.extra_flops, L=(10, 1), h_k=(2, 1), h=(4, 1), h_v=(3, 1))


# --- the code of others ---------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_x_transformers_which_adds_the_mixture(causal: bool) -> None:
    """Their scores are J + mix(J): the paper's form with P_l + I, and not with P_l."""
    package = pytest.importorskip("x_transformers")
    theirs = package.Attention(
        D, heads=4, dim_head=4, causal=causal, pre_talking_heads=True, post_talking_heads=True
    ).double()
    attend = theirs.attend
    for conv in (attend.pre_softmax_talking_heads, attend.post_softmax_talking_heads):
        assert conv.weight[:, :, 0, 0].equal(torch.eye(4).double())  # both begin at I
        conv.weight.normal_()
    X = drawn(2, 9, D)
    out = theirs(X)
    wanted = out[0] if isinstance(out, tuple) else out
    Q, K, V = (
        (X @ W.weight.T).unflatten(-1, (4, 4)).transpose(1, 2)
        for W in (theirs.to_q, theirs.to_k, theirs.to_v)
    )
    P_l = attend.pre_softmax_talking_heads.weight[:, :, 0, 0].T
    P_w = attend.post_softmax_talking_heads.weight[:, :, 0, 0].T
    mask = patterns.causal().mask(9) if causal else None

    def ours(P: Tensor) -> Tensor:
        heads = th.talking_definition(Q, K, V, P, P_w, mask)[0]
        return heads.transpose(1, 2).flatten(2) @ theirs.to_out.weight.T

    torch.testing.assert_close(ours(th.residual(P_l)), wanted, atol=1e-6, rtol=1e-6)
    assert (ours(P_l) - wanted).abs().max() > 0.01


# --- bad input, laws and mutants ------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    one = torch.eye(H, dtype=torch.float64)
    call = th.talking_definition
    refused("P_l has shape (4,); give (h_k, h)", call, Q, K, V, one[0], one)
    refused("P_w has shape (4,); give (h, h_v)", call, Q, K, V, one, one[0])
    refused("P_l is (3, 4) … 4 heads of queries … (4, h)", call, Q, K, V, one[:3], one)
    refused("P_w (3, 4) … with one h", call, Q, K, V, one, one[:3])
    refused("P_w (4, 3) … and (h, 4)", call, Q, K, V, one, one[:, :3])
    refused("P has shape (4, 3) … give (h, h)", th.residual, one[:, :3])
    refused("Q has 4 heads, the core 3; … `talking`", th.Talking(3), Q.float(), K, V, Where())
    refused("V has 4 heads, the core 6", th.Talking(4, h_v=6), Q.float(), K, V, Where())
    ranges(th.Talking, h=(4, 1), h_k=(3, 1), h_v=(2, 1))
    sizes = {name: (4, 1) for name in ("d", "h_k", "h", "h_v", "d_k", "d_v")}
    ranges(th.talking, **sizes)


def defined(
    core: th.Talking, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return th.talking_definition(Q, K, V, core.P_l, core.P_w, mask)


CASE = Case(
    lambda: th.Talking(H),
    defined,
    shares_sum_to_one=False,
    mutants=[
        ("a matrix the other way round", "P.T[:, :, None", "P[:, :, None"),
        ("weights that do not talk", "_filled(mixed(A, self.P_w), max(self.heads))", "A"),
        ("scores that do not talk", "return mixed(s[:, : len(self.P_l)], self.P_l)", "return s"),
        (
            "the mixture is added",
            "return mixed(s[:, : len(self.P_l)], self.P_l)",
            "return s + mixed(s[:, : len(self.P_l)], self.P_l)",
        ),
        ("a residual that is none", "return P + torch.eye(len(P)).to(P)", "return P"),
        ("random where the identity is due", "if rows == columns else", "if False else"),
        ("a matrix that is not counted", "h * (h_k + h_v)", "h * h_k"),
        ("empty heads that stay", "return out[:, :h_v], None", "return out, None"),
    ],
)
