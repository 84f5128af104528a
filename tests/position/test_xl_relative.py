"""Transformer-XL's relative encoding: the shift by hand, the four terms, XLNet's code, limits."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from laws import CAUSAL, B, Case, D, H
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import attention, patterns
from tfviz.measure import largest_storage
from tfviz.models.bert import BERT
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.sinusoidal_pe import sinusoids
from tfviz.position.xl_relative import XL, four_terms, rel_shift, two_sided_shift, xl

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


def layer(h: int = 2, d_head: int = 4, *, bidirectional: bool = True, seed: int = 0) -> XL:
    torch.manual_seed(seed)
    made = XL(h, d_head, bidirectional=bidirectional)
    made.u.data.normal_()
    made.v.data.normal_()
    return made


def queries(L: int = 6, h: int = 2, d_head: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(1, h, L, d_head), torch.randn(1, h, L, d_head)


# --- the shift ------------------------------------------------------------------------------------


def test_golden_shift() -> None:
    # row i holds 10 i + distance, in columns of the distances 3, 2, 1, 0
    B = torch.tensor([[3, 2, 1, 0], [13, 12, 11, 10], [23, 22, 21, 20], [33, 32, 31, 30]])
    shifted = rel_shift(B)
    assert shifted.tril().tolist() == [
        [0, 0, 0, 0],  # query 0: distance 0
        [11, 10, 0, 0],
        [22, 21, 20, 0],
        [33, 32, 31, 30],
    ]
    # above the diagonal: a padded zero, then the row below, from its start
    assert shifted[0].tolist() == [0, 0, 13, 12] and shifted[2].tolist() == [22, 21, 20, 0]


def test_golden_two_sided_shift() -> None:
    # distances 2, 1, 0, −1, −2
    B = torch.tensor([[2, 1, 0, -1, -2]]) + torch.tensor([[0], [10], [20]])
    assert two_sided_shift(B).tolist() == [[0, -1, -2], [11, 10, 9], [22, 21, 20]]


@pytest.mark.parametrize("Lq, Lk", [(1, 1), (1, 7), (5, 5), (3, 8)])
def test_both_shifts_are_the_gather(Lq: int, Lk: int) -> None:
    i, j = torch.arange(Lk - Lq, Lk)[:, None], torch.arange(Lk)
    B = torch.randn(2, 3, Lq, Lk + Lq - 1)
    expected = B.gather(-1, (Lk - 1 - (i - j)).expand(2, 3, Lq, Lk))
    assert two_sided_shift(B).equal(expected)
    past = (j <= i).expand(2, 3, Lq, Lk)
    assert rel_shift(B[..., :Lk])[past].equal(expected[past])


# --- the four terms -------------------------------------------------------------------------------


def test_four_terms_by_loops() -> None:
    XL_, (Q, K) = layer(), queries(4)
    R = XL_.distances(4, 4)
    got = four_terms(Q[0], K[0], R, XL_.u, XL_.v)
    for n in range(2):
        for i in range(4):
            for j in range(4):
                r = sinusoids(torch.tensor([i - j]), 8)[0] @ XL_.W_r[n]
                q, k, u, v = Q[0, n, i], K[0, n, j], XL_.u[n], XL_.v[n]
                close(got[:, n, i, j], torch.stack([q @ k, q @ r, u @ k, v @ r]))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_bias_is_terms_two_to_four(bidirectional: bool) -> None:
    made, (Q, K) = layer(bidirectional=bidirectional), queries()
    two = layer(bidirectional=True)
    terms = four_terms(Q, K, two.distances(6, 6), made.u, made.v)
    expected, seen = terms[1:].sum(0) / 2, torch.ones(6, 6).bool()
    if not bidirectional:
        seen = seen.tril()
    close(made.bias(Q, K)[..., seen], expected[..., seen])


def test_absolute_scores_expand_to_four_terms() -> None:
    """(x_i + p_i) W^q W^kᵀ (x_j + p_j)ᵀ, from which the paper sets out."""
    X, P = torch.randn(5, 8, dtype=torch.float64), sinusoids(torch.arange(5), 8).double()
    W_q, W_k = torch.randn(2, 8, 4, dtype=torch.float64)
    parts = [a @ W_q @ W_k.T @ b.T for a in (X, P) for b in (X, P)]
    torch.testing.assert_close(sum(parts), (X + P) @ W_q @ ((X + P) @ W_k).T)


def test_equal_contents_see_the_distance_only() -> None:
    made = layer()
    q, k = torch.randn(1, 2, 1, 4).expand(1, 2, 9, 4), torch.randn(1, 2, 1, 4).expand(1, 2, 9, 4)
    bias = made.bias(q, k)
    for n in range(-8, 9):
        line = bias.diagonal(n, -2, -1)
        close(line, line[..., :1].expand_as(line))
    assert (bias[..., 0, 1] - bias[..., 1, 0]).abs().min() > 1e-4  # before is not after


def test_limits() -> None:
    made, (Q, K) = layer(), queries()
    made.u.data.zero_()
    made.v.data.zero_()
    made.W_r.data.zero_()
    assert made.bias(Q, K).eq(0).all()
    fresh = XL(2, 4)
    assert fresh.u.eq(0).all() and fresh.v.eq(0).all() and fresh.W_r.std() > 0.1
    made.u.data.normal_()  # W_r = 0, v = 0: one number for each key, no places
    bias = made.bias(Q, K)
    close(bias, bias[..., :1, :].expand_as(bias))


def test_no_vector_for_every_pair() -> None:
    made, (Q, K) = layer(bidirectional=False), queries(128)
    L, d = 128, 4
    assert largest_storage(lambda: made.bias(Q, K)) <= 4 * 2 * L * (L + 1)
    R = layer().distances(L, L)
    assert largest_storage(lambda: four_terms(Q, K, R, made.u, made.v)) >= 4 * 2 * L * L * d


# --- others' code ---------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_xlnet_relative_attention(causal: bool) -> None:
    from transformers import XLNetConfig, XLNetModel

    h, d_head, L = 2, 4, 7
    d = h * d_head
    config = XLNetConfig(vocab_size=9, d_model=d, n_layer=1, n_head=h, d_inner=16, dropout=0.0)
    model = XLNetModel(config).eval()
    theirs = model.layer[0].rel_attn
    for x in theirs.parameters():
        nn.init.normal_(x, std=0.5)
    made = XL(h, d_head, bidirectional=True)
    # theirs has all sines first, then all cosines; ours has them in pairs
    pairs = torch.arange(d).view(2, -1).T.flatten()
    made.W_r.data = theirs.r.detach().permute(1, 0, 2)[:, pairs]
    made.u.data, made.v.data = theirs.r_w_bias.detach().clone(), theirs.r_r_bias.detach().clone()
    X = torch.randn(L, 1, d)
    q, k, v = (torch.einsum("ibh,hnd->ibnd", X, w) for w in (theirs.q, theirs.k, theirs.v))
    r = torch.einsum("ibh,hnd->ibnd", model.relative_positional_encoding(L, L, 1), theirs.r)
    mask = ~patterns.causal().mask(L) if causal else torch.zeros(L, L)
    expected = theirs.rel_attn_core(q, k, v, r, attn_mask=mask.float()[..., None, None])
    Q, K, V = (x.permute(1, 2, 0, 3) for x in (q, k, v))
    for one in (True, False) if causal else (True,):
        made.bidirectional = one
        out, _ = attention(Q, K, V, patterns.causal() if causal else None, bias=made.bias(Q, K))
        close(out.permute(2, 0, 1, 3), expected)


# --- inside a model -------------------------------------------------------------------------------


def test_shared_key_heads_and_both_sides() -> None:
    attend = MultiHeadAttention(8, 2, h_kv=1, core=xl(2, 4, bidirectional=True))
    assert attend(torch.randn(1, 5, 8)).shape == (1, 5, 8)
    t = torch.randint(9, (2, 6))
    bert = BERT(9, 8, 2, 2, core=xl(2, 4, bidirectional=True))
    bert(t).square().mean().backward()
    for m in bert.modules():
        if isinstance(m, XL):
            assert all(x.grad is not None and x.grad.any() for x in (m.W_r, m.u, m.v))


def test_errors_say_what_to_do() -> None:
    ranges(XL, h=(2, 1), d_head=(4, 1))
    refused("d = 3 is odd", XL, 1, 3)
    R, u = torch.randn(2, 4, 4), torch.zeros(2, 4)
    refused("R has 4 rows; with L = 4 it must have 7", four_terms, *queries(4), R, u, u)
    refused("B has 5 rows and 3 columns", rel_shift, torch.randn(5, 3))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_all_four_terms(
    core: XL, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    both = XL(H, D, bidirectional=True).double()
    both.W_r = core.W_r
    R = both.distances(Q.shape[2], Q.shape[2]).expand(B, -1, -1, -1)
    u, v = (x.expand(B, -1, -1) for x in (core.u, core.v))
    extra = four_terms(Q, K, R, u, v)[1:].sum(0) / D**0.5
    return attention(Q, K, V, mask, bias=extra)


CASE = Case(
    lambda: XL(H, D),
    by_all_four_terms,
    CAUSAL,
    variants={"two sides": Case(lambda: XL(H, D, bidirectional=True), by_all_four_terms)},
    mutants=[
        (
            "heads of XL in the wrong order",
            "K = K.repeat_interleave(Q.shape[1] // K.shape[1], 1)",
            "K = K.repeat(1, Q.shape[1] // K.shape[1], 1, 1)",
        ),
        (
            "shift of relative scores one off",
            "[..., Lq - 1 : Lq - 1 + Lq * M]",
            "[..., Lq : Lq + Lq * M]",
        ),
    ],
)
