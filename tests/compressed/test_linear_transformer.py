"""Linear attention: the order of two products, the running sum, and what a state can hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    D,
    Function,
    agree_with_gradients,
    qkv,
    work_grows_no_faster,
)
from refusals import of_no_kind, ranges, refused
from streams import (
    CAUSAL,
    it_refuses_other_texts,
    it_writes_and_resumes_with_one_size,
    parts_of_a_long_text_go_on,
    small_gpt,
)
from three import three
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map, patterns
from tfviz.compressed import linear_transformer as lin
from tfviz.cores import Where
from tfviz.models.use import attention_weights


def test_three_tokens_by_hand() -> None:
    """Keys 0, 1, −ln 2 have the features 1, 2, ½; the query 3 has 4, which cancels."""
    K = torch.tensor([0.0, 1.0, -math.log(2)])[None, None, :, None]
    Q, V = torch.full((1, 1, 3, 1), 3.0), torch.tensor([7.0, 14.0, 28.0])[None, None, :, None]
    out, A = lin.linear_definition(Q, K, V)
    assert torch.allclose(A[0, 0, 0], torch.tensor([2.0, 4.0, 1.0]) / 7)
    assert torch.allclose(out[0, 0, :, 0], torch.tensor(14.0))
    causal = lin.linear_attention(Q, K, V, causal=True)
    assert torch.allclose(causal[0, 0, :, 0], torch.tensor([7.0, 35 / 3, 14.0]))


def in_loops(Q: Tensor, K: Tensor, V: Tensor, causal: bool) -> Tensor:
    """Equations 4 and 9 of the paper, a token at a time, with its feature map."""

    def phi(x: Tensor) -> Tensor:
        return F.elu(x) + 1

    rows = []
    for i in range(len(Q)):
        seen = range(i + 1 if causal else len(K))
        shares = torch.stack([phi(Q[i]) @ phi(K[j]) for j in seen])
        rows.append(shares @ V[: len(seen)] / shares.sum())
    return torch.stack(rows)


def as_an_rnn(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Section 3.4: s and z, updated by one token after the other."""
    s, z, rows = torch.zeros(Q.shape[1], V.shape[1]).to(Q), torch.zeros(Q.shape[1]).to(Q), []
    for q, k, v in zip(Q, K, V, strict=True):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        s, z = s + torch.outer(k, v), z + k
        rows.append(q @ s / (q @ z))
    return torch.stack(rows)


@pytest.mark.parametrize("length", [1, 9, lin.CHUNK, lin.CHUNK + 1, 3 * lin.CHUNK])
def test_the_equations_in_loops(length: int) -> None:
    Q, K, V = (x[:, :1, :, :3] for x in qkv(length))
    for causal in (False, True):
        got = lin.linear_attention(Q, K, V, causal)[1, 0]
        torch.testing.assert_close(got, in_loops(Q[1, 0], K[1, 0], V[1, 0], causal))
    torch.testing.assert_close(got, as_an_rnn(Q[1, 0], K[1, 0], V[1, 0]))


@pytest.mark.parametrize("length", [5, 64, 200])
def test_gradients_of_the_masked_definition(length: int) -> None:
    leaves = three(x[:, :2].requires_grad_() for x in qkv(length))
    mask = patterns.causal().mask(length)
    wanted = lin.linear_definition(*leaves, mask)[0]
    agree_with_gradients(lin.linear_attention(*leaves, causal=True), wanted, leaves)


@pytest.mark.parametrize("phi", [lin.positive, torch.exp], ids=["usual", "own"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_text_of_several_stretches_is_answered_as_one(
    causal: bool, phi: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gradients, with padding, and for other lengths of queries than of keys."""
    monkeypatch.setattr(lin, "STRETCH", 6)
    Q, K, V = (x.requires_grad_() for x in qkv(20))
    mask = patterns.causal().mask(20) if causal else None
    out = lin.linear_attention(Q, K, V, causal, phi)
    agree_with_gradients(out, lin.linear_definition(Q, K, V, mask, phi)[0], (Q, K, V))
    there = torch.ones(2, 20, dtype=torch.bool)
    there[1, 13:] = False
    seen = there[:, None, None] if mask is None else there[:, None, None] & mask
    where = replace(CAUSAL if causal else Where(), attention_mask=there)
    out = lin.LinearAttention(phi)(Q, K, V, where)[0]
    agree_with_gradients(out, lin.linear_definition(Q, K, V, seen, phi)[0], (Q, K, V))
    if not causal:
        few = lin.linear_attention(Q[:, :, :7], K, V, phi=phi)
        torch.testing.assert_close(few, lin.linear_definition(Q[:, :, :7], K, V, phi=phi)[0])


def test_second_derivatives_are_those_of_the_definition() -> None:
    Q, K, V = (x[:, :, :5].requires_grad_() for x in qkv(7))
    ways = []
    for out in (lin.linear_attention(Q, K, V), lin.linear_definition(Q, K, V)[0]):
        first = torch.autograd.grad(out.square().sum(), (Q, K, V), create_graph=True)
        total = torch.stack([x.square().sum() for x in first]).sum()
        ways.append(torch.autograd.grad(total, (Q, K, V)))
    for a, b in zip(*ways, strict=True):
        torch.testing.assert_close(a, b)


def gpt() -> GPT:
    return small_gpt(lin.LinearAttention)


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    parts_of_a_long_text_go_on(lin.LinearAttention)
    # layers, heads, features, values and the sum
    it_writes_and_resumes_with_one_size(gpt, 2 * 2 * 8 * 9)


def test_rows_are_shares_that_softmax_does_not_have() -> None:
    """Non-negative rows that sum to one, of a matrix whose rank is at most the features: it is not
    an approximation of the softmax."""
    Q, K, V = qkv(24)
    A = implied_map(lin.LinearAttention(), Q, K, V)
    assert (A >= 0).all()
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    assert (torch.linalg.matrix_rank(A) == D).all()
    exact = attention(Q, K, V)[1]
    assert torch.linalg.matrix_rank(exact).min() == 24
    assert (exact - A).abs().max() > 0.1


def test_one_feature_alone_weighs_all_queries_alike() -> None:
    Q, K, V = (x[..., :1] for x in qkv())
    A = implied_map(lin.LinearAttention(), Q, K, V)
    torch.testing.assert_close(A, A[:, :, :1].expand_as(A))


def test_a_feature_map_of_ones_is_the_mean() -> None:
    X = qkv()
    ones = lin.LinearAttention(phi=lambda x: torch.ones_like(x[..., :1]))
    torch.testing.assert_close(ones(*X, Where())[0][:, :, 0], X[2].mean(2))


def test_two_orders_give_the_exact_kernel_of_squares() -> None:
    """φ(x) = x ⊗ x has d² features, and φ(q) φ(k)ᵀ = (q kᵀ)²."""
    Q, K, V = qkv()
    core = lin.LinearAttention(phi=lambda x: (x[..., :, None] * x[..., None, :]).flatten(-2))
    squares = (Q @ K.mT) ** 2
    wanted = squares / squares.sum(-1, keepdim=True) @ V
    torch.testing.assert_close(core(Q, K, V, Where())[0], wanted)


@pytest.mark.parametrize("pairs", [1, D, D + 1, 4 * D])
def test_a_state_holds_as_many_pairs_as_it_has_features(pairs: int) -> None:
    """With orthonormal features all pairs come back; with one pair more they cannot."""
    state = torch.eye(D, dtype=torch.float64)
    keys = state.repeat(4, 1)[:pairs]
    values = torch.randn(pairs, D, dtype=torch.float64)
    X = three(x[None, None] for x in (keys, keys, values))
    back = lin.linear_attention(*X, phi=torch.nn.Identity())[0, 0]
    assert torch.allclose(back, values) == (pairs <= D)


# --- numbers at their ends -----------------------------------------------------------------------


def test_features_do_not_round_to_zero() -> None:
    x = torch.tensor([-30.0, -1.0, 0.0, 2.5])
    assert (F.elu(x) + 1)[0] == 0 < lin.positive(x)[0]
    torch.testing.assert_close(lin.positive(x), F.elu(x) + 1)


def test_where_nothing_is_left_the_answer_is_zero() -> None:
    Q, K, V = (x.float().requires_grad_() for x in qkv())
    out = lin.linear_attention(Q, K - 1e4, V)
    out.sum().backward()
    assert (out == 0).all()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (Q, K, V))


# --- the code of others ---------------------------------------------------------------------------


def fast_transformers(Q: Tensor, K: Tensor, V: Tensor, causal: bool, eps: float = 1e-6) -> Tensor:
    """`LinearAttention` and `CausalLinearAttention` of the authors, (n, l, h, d); the kernel in C++
    that multiplies below the diagonal is written as a mask."""
    Q, K, V = (x.transpose(1, 2) for x in (Q, K, V))
    Q, K = F.elu(Q) + 1, F.elu(K) + 1
    if causal:
        Z = 1 / (torch.einsum("nlhi,nlhi->nlh", Q, K.cumsum(1)) + eps)
        pairs = torch.einsum("nlhd,nshd->nhls", Q, K).tril()
        return (torch.einsum("nhls,nshm->nlhm", pairs, V) * Z[:, :, :, None]).transpose(1, 2)
    KV = torch.einsum("nshd,nshm->nhmd", K, V)
    Z = 1 / (torch.einsum("nlhd,nhd->nlh", Q, K.sum(dim=1)) + eps)
    return torch.einsum("nlhd,nhmd,nlh->nlhm", Q, KV, Z).transpose(1, 2)


@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_the_authors_code(causal: bool) -> None:
    """And the one difference: their rows sum to slightly less than one."""
    X = qkv(100)
    theirs = fast_transformers(*X, causal)
    ours = partial(lin.linear_attention, *X, causal)
    torch.testing.assert_close(ours(eps=1e-6), theirs, atol=1e-12, rtol=1e-12)
    assert 1e-12 < (ours() - theirs).abs().max() < 1e-5
    core = lin.LinearAttention(eps=1e-6)
    sums = implied_map(core, *X, CAUSAL if causal else Where()).sum(-1)
    assert (1 - sums).min() > 0 and (1 - sums).max() < 1e-5


def test_parity_with_the_package_linear_attention_transformer() -> None:
    """Its features are exponentials, its causal attention divides as ours does. In buckets of more
    than one token a query does not meet its own bucket. Its other attention is no division at all:
    a softmax over features of q, one over tokens of k, and rows that sum to 1/√d."""
    theirs = pytest.importorskip("linear_attention_transformer.linear_attention_transformer")
    Q, K, V = qkv(12)
    got = theirs.causal_linear_attn(Q, K, V, bucket_size=1)
    torch.testing.assert_close(got, lin.linear_attention(Q, K, V, causal=True, phi=torch.exp))
    first, rest = theirs.causal_linear_attn(Q, K, V, bucket_size=4).split([4, 8], 2)
    assert (first == 0).all() and (rest != 0).any()
    sums = theirs.linear_attn(Q, K, torch.ones_like(V))
    torch.testing.assert_close(sums, torch.full_like(sums, D**-0.5))


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal: bool) -> None:
    """With gradients too, up to 16,384 tokens; the core as well as the function."""

    def attend(L: int) -> Callable[..., Tensor]:
        return partial(lin.linear_attention, causal=causal)

    def core(L: int) -> Callable[..., Tensor]:
        where = CAUSAL if causal else Where()
        return lambda *X: lin.LinearAttention()(*X, where)[0]

    work_grows_no_faster(attend, 1.05)
    work_grows_no_faster(core, 1.05)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    refused("9 queries and 8 keys", lin.linear_attention, Q, K[:, :, 1:], V[:, :, 1:], causal=True)
    of_no_kind("phi = 'elu'; give a function of a tensor", lin.LinearAttention, "elu")
    ranges(lin.LinearAttention, eps=(1e-6, 0.0, 1.0))
    it_refuses_other_texts(lin.LinearAttention())
    where = Where(attention_mask=torch.ones(3, Q.shape[2], dtype=torch.bool))
    refused("attention_mask has 3 rows, Q 2", lin.LinearAttention(), Q, K, V, where)


def test_a_model_shows_its_weights_and_an_encoder_takes_it() -> None:
    maps = attention_weights(gpt(), torch.zeros(1, 6).long())
    for A in maps.values():
        torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
        assert (A.triu(1) == 0).all()
    assert BERT(11, 16, 2, 2, core=lin.LinearAttention)(torch.zeros(1, 6).long()).isfinite().all()


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_added_to_the_denominator_is_in_the_gradients_too(causal: bool) -> None:
    leaves = three(x.requires_grad_() for x in qkv(20))
    mask = patterns.causal().mask(20) if causal else None
    out = lin.linear_attention(*leaves, causal, eps=0.5)
    agree_with_gradients(out, lin.linear_definition(*leaves, mask, eps=0.5)[0], leaves)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def of_all(causal: bool) -> Function:
    def defined(Q: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        mask = patterns.causal().mask(Q.shape[2]) if causal else None
        return lin.linear_definition(Q, K, V, mask)

    return Function(partial(lin.linear_attention, causal=causal), defined)


CASE = Case(
    lin.LinearAttention,
    lambda core, Q, K, V, mask: lin.linear_definition(Q, K, V, mask),
    forgets=True,
    functions={"linear attention": of_all(False), "causal linear attention": of_all(True)},
    mutants=[
        ("gradients without eps", "f @ state[..., -1:], ctx.eps)", "f @ state[..., -1:], 0.0)"),
        ("a state that includes the chunk itself", "states[:, :, :-1]", "states[:, :, 1:]"),
        ("pairs of a chunk with the future", "(q @ k.mT).tril_() @ v", "(q @ k.mT) @ v"),
        ("features that may be negative", "(x - above).exp() + above", "x + 1"),
        ("stretches that do not go on", "q), k, v, state)", "q), k, v, None)"),
        (
            "a sum over the last stretch alone",
            "sum(k.mT @ v for k, v in written)",
            "[k.mT @ v for k, v in written][-1]",
        ),
        ("a state that forgets what came before", "if state is None else state", "if L else state"),
        ("answers that nobody divides", "(total + eps).masked_fill(total == 0, torch.inf)", "1.0"),
        ("padding that is written down", "k.masked_fill(~keys.mT, 0.0)", "k"),
        ("a slope that grows", "dsums @ state.mT, f.clamp_(max=1)", "dsums @ state.mT, f"),
        ("padding that learns", "f = _features(k, real)", "f = _features(k)"),
        ("a last stretch that alone learns", "dstate += f.mT", "dstate = f.mT"),
    ],
)
