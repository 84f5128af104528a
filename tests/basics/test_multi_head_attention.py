"""Multi-head attention: golden numbers, its two forms, pruning, others' code."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from laws import agree_with_gradients
from refusals import refused
from three import Three, three
from torch import Tensor, nn

from tfviz import attention, patterns
from tfviz.basics.multi_head_attention import (
    contributions,
    head_matrices,
    heads,
    mean_distance,
    multi_head_definition,
    pruned,
    weight_at,
    without_heads,
)
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.sinusoidal_pe import sinusoids

close = torch.testing.assert_close
H, D, DK, DV, L = 3, 6, 4, 2, 5


def case(seed: int = 0, *sizes: int) -> tuple[Tensor, Three, Tensor]:
    """(X, (W_q, W_k, W_v), W_o)"""
    h, d, dk, dv, length = sizes or (H, D, DK, DV, L)
    rng = torch.Generator().manual_seed(seed)

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=rng, dtype=torch.float64)

    return draw(length, d), (draw(h, d, dk), draw(h, d, dk), draw(h, d, dv)), draw(h * dv, d)


def definition(X_q, X_k, X_v, W_q, W_k, W_v, W_o, sets=None, root=None):  # type: ignore[no-untyped-def]
    """One head, one query, one key after the other."""
    h, _, d_k = W_q.shape
    found, weights = [], []
    for n in range(h):
        Q, K, V = X_q @ W_q[n], X_k @ W_k[n], X_v @ W_v[n]
        A = torch.zeros(len(Q), len(K), dtype=Q.dtype)
        for i in range(len(Q)):
            S = range(len(K)) if sets is None else sets[i]
            loud = {j: math.exp(Q[i] @ K[j] / math.sqrt(root or d_k)) for j in S}
            for j in S:
                A[i, j] = loud[j] / sum(loud.values())
        found.append(A @ V)
        weights.append(A)
    return torch.cat(found, 1) @ W_o, torch.stack(weights)


def test_golden_numbers() -> None:
    # Head 0 asks nothing and takes the mean of feature 0; head 1 finds the row that has feature 2
    # with odds of 3 : 1 and takes feature 1. W^o swaps the two.
    X = torch.tensor([[4.0, 1.0, 1.0], [8.0, 5.0, 0.0]])
    W_q, W_k, W_v = torch.zeros(2, 3, 1), torch.zeros(2, 3, 1), torch.zeros(2, 3, 1)
    W_q[1, 2], W_q[1, 0], W_k[1, 2] = -math.log(3), math.log(3) / 2, 1.0
    # query 0: 4 ln3/2 − ln3 = ln 3; query 1: 8 ln3/2 = 4 ln 3
    W_v[0, 0], W_v[1, 1] = 1.0, 1.0
    W_o = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    out, A = multi_head_definition(X, X, X, W_q, W_k, W_v, W_o)
    close(A, torch.tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [81 / 82, 1 / 82]]]))
    close(out, torch.tensor([[0.75 + 1.25, 6.0], [(81 + 5) / 82, 6.0]]))


def test_equals_the_definition() -> None:
    X, W, W_o = case()
    close(multi_head_definition(X, X, X, *W, W_o), definition(X, X, X, *W, W_o))
    causal = patterns.causal()
    close(
        multi_head_definition(X, X, X, *W, W_o, causal),
        definition(X, X, X, *W, W_o, causal.key_sets(L)),
    )
    rng = torch.Generator().manual_seed(1)
    X_k, X_v = torch.randn(2, 7, D, generator=rng, dtype=torch.float64)  # cross: 7 keys
    close(multi_head_definition(X, X_k, X_v, *W, W_o), definition(X, X_k, X_v, *W, W_o))
    batch = torch.stack([X, -X])
    out, A = multi_head_definition(batch, batch, batch, *W, W_o)
    assert A.shape == (2, H, L, L)
    close(out[1], definition(-X, -X, -X, *W, W_o)[0])


def test_mutants_are_found() -> None:
    X, W, W_o = case()
    out, A = multi_head_definition(X, X, X, *W, W_o)
    # the root of the total width instead of the head's (erratum E3)
    assert (definition(X, X, X, *W, W_o, root=H * DK)[1] - A).abs().max() > 0.01
    # the input cut into chunks, a chunk for each head (erratum E3): a head would not see feature 5
    cut = three(w.clone() for w in W)
    for w in cut:
        for n in range(H):
            w[n, [c for c in range(D) if c // (D // H) != n]] = 0
    assert (multi_head_definition(X, X, X, *cut, W_o)[0] - out).abs().max() > 0.1
    # columns of the concatenation interleaved instead of head after head
    found, _ = heads(X, X, X, *W)
    interleaved = found.permute(1, 2, 0).flatten(1) @ W_o
    assert (interleaved - out).abs().max() > 0.1
    # averaged instead of summed
    assert (contributions(found, W_o).mean(0) - out).abs().max() > 0.1


def test_concatenation_is_a_sum_over_heads() -> None:
    for seed in range(3):
        X, W, W_o = case(seed)
        out, A = multi_head_definition(X, X, X, *W, W_o)
        found, _ = heads(X, X, X, *W)
        close(contributions(found, W_o).sum(-3), out)
        by_matrix = sum(A[n] @ X @ (W[2][n] @ W_o[n * DV : (n + 1) * DV]) for n in range(H))
        close(by_matrix, out)


def test_one_head_is_plain_attention_and_a_projection() -> None:
    X, W, W_o = case(0, 1, D, DK, DV, L)
    plain, A = attention(X @ W[0][0], X @ W[1][0], X @ W[2][0])
    close(multi_head_definition(X, X, X, *W, W_o), (plain @ W_o, A[None]))


def test_heads_may_change_places_with_their_rows_of_W_o() -> None:
    X, W, W_o = case()
    p = torch.tensor([2, 0, 1])
    moved = three(w[p] for w in W)
    rows = W_o.unflatten(0, (H, DV))[p].flatten(0, 1)
    out, A = multi_head_definition(X, X, X, *W, W_o)
    close(multi_head_definition(X, X, X, *moved, rows), (out, A[p]))
    wrong = multi_head_definition(X, X, X, *moved, W_o)[0]
    assert (wrong - out).abs().max() > 0.1


def test_pruning_a_head_takes_away_its_part_and_nothing_else() -> None:
    X, W, W_o = case()
    found, A = heads(X, X, X, *W)
    parts = contributions(found, W_o)
    before = W_o.clone()
    for n in range(H):
        out, weights = multi_head_definition(X, X, X, *W, pruned(W_o, H, [n]))
        close(out, parts.sum(0) - parts[n])
        close(weights, A)  # what the others see has not changed
        removed = three(w[[m for m in range(H) if m != n]] for w in W)
        rows = before.unflatten(0, (H, DV))[[m for m in range(H) if m != n]].flatten(0, 1)
        close(multi_head_definition(X, X, X, *removed, rows)[0], out)  # as if it had never been
    assert torch.equal(W_o, before)
    assert pruned(W_o, H, range(H)).abs().max() == 0
    assert torch.equal(pruned(W_o, H, []), W_o)


# --- the efficient form --------------------------------------------------------------------------


@pytest.mark.parametrize(("h", "h_kv"), [(1, 1), (2, 2), (8, 8), (4, 2)])
def test_the_model_computes_the_definition(h: int, h_kv: int) -> None:
    module = MultiHeadAttention(16, h, pattern=patterns.causal(), h_kv=h_kv).double()
    for bias in (module.W_qkv.bias, module.W_o.bias):
        bias.data.zero_()
    X = torch.randn(2, 9, 16, dtype=torch.float64)
    W = head_matrices(module)
    assert [w.shape for w in W[:3]] == [(h, 16, 16 // h)] * 3
    ours, A = multi_head_definition(X, X, X, *W, patterns.causal())
    close(module(X), ours)
    assert A.shape == (2, h, 9, 9)
    assert len(W[1].unique(dim=0)) == h_kv  # shared by h / h_kv heads each


def test_parameters_do_not_depend_on_the_number_of_heads() -> None:
    for h in (1, 2, 4, 8, 16):
        W = head_matrices(MultiHeadAttention(16, h))
        assert sum(w.numel() for w in W) == 4 * 16**2


def test_parity_with_pytorch() -> None:
    X, W, W_o = case(0, 4, 8, 2, 2, 6)
    theirs = nn.MultiheadAttention(8, 4, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([w.transpose(1, 2).flatten(0, 1) for w in W]))
        theirs.out_proj.weight.copy_(W_o.T)
        out, A = theirs(X[None], X[None], X[None], average_attn_weights=False)
    close(multi_head_definition(X, X, X, *W, W_o), (out[0], A[0]))


def test_gradients_match_pytorch() -> None:
    X, W, W_o = case()
    leaves = [x.requires_grad_() for x in (X, *W, W_o)]
    Z = F.scaled_dot_product_attention(*three(X @ w for w in W))  # (h, L, ·)
    out = multi_head_definition(X, X, X, *W, W_o)[0]
    agree_with_gradients(out, Z.transpose(0, 1).flatten(1) @ W_o, leaves)


def test_without_heads_is_pruning_and_puts_everything_back() -> None:
    module = MultiHeadAttention(16, 4).double()
    X = torch.randn(1, 5, 16, dtype=torch.float64)
    whole, before = module(X), module.W_o.weight.detach().clone()
    with without_heads(module, [1, 2]):
        less = module(X)
    close(module(X), whole)
    assert torch.equal(module.W_o.weight, before)
    bias = module.W_o.bias.detach()
    q, k, v, o = head_matrices(module)
    biases = [b.unflatten(0, (4, 4))[:, None] for b in module.W_qkv.bias.split(module.widths)]
    Q, K, V = (X[0] @ w + b for w, b in zip((q, k, v), biases, strict=True))
    close(less[0], contributions(attention(Q, K, V)[0], pruned(o, 4, [1, 2])).sum(0) + bias)
    with pytest.raises(KeyError), without_heads(module, [0]):
        raise KeyError  # also after an error
    assert torch.equal(module.W_o.weight, before)


# --- what a head looks at ------------------------------------------------------------------------


def test_distances_by_hand() -> None:
    A = torch.tensor([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], torch.eye(3).tolist()])
    close(mean_distance(A), torch.tensor([(0 + 1 + 1.25) / 3, 0.0]))
    close(mean_distance(A[:1, 2:]), torch.tensor([1.25]))  # the query is the last of three
    close(weight_at(A, 0), torch.tensor([(1 + 0 + 0.25) / 3, 1.0]))
    close(weight_at(A, 1), torch.tensor([(1 + 0.25) / 2, 0.0]))
    close(weight_at(A, 1, first=2), torch.tensor([0.25, 0.0]))
    close(weight_at(A, 2), torch.tensor([0.5, 0.0]))


def test_a_head_can_be_told_to_look_back_by_position_alone() -> None:
    """Sinusoids turn by a fixed rotation from one place to the next: W^k can undo it."""
    P = sinusoids(torch.arange(12.0), 8).double()
    turn = torch.linalg.lstsq(P[:-1], P[1:]).solution  # p_i turn = p_{i+1}
    eye = torch.eye(8, dtype=torch.float64)
    _, A = heads(P, P, P, 30 * eye[None], turn[None], eye[None], patterns.causal())
    assert weight_at(A, 1) > 0.9


# --- errors --------------------------------------------------------------------------------------


def test_errors_name_the_argument() -> None:
    X, (W_q, W_k, W_v), W_o = case()
    refused("W_k has shape (2, 6, 4) … (3, 6, width)", heads, X, X, X, W_q, W_k[:2], W_v)
    refused("W_v has shape … , rows of X have 5", heads, X, X, X[:, :5], W_q, W_k, W_v)
    refused("width 3 … width 4", heads, X, X, X, W_q[..., :3], W_k, W_v)
    refused("W_q multiplies has shape (6,); give rows", heads, X[0], X, X, W_q, W_k, W_v)
    refused("W_o has 5 rows … (6, d)", multi_head_definition, X, X, X, W_q, W_k, W_v, W_o[:5])
    refused("H has shape (5, 2)", contributions, torch.ones(5, 2), W_o)
    refused("h = 4 heads; h must divide", pruned, W_o, 4, [0])
    refused("head = 3", pruned, W_o, 3, [3])
    refused("back = 5", weight_at, torch.eye(5), 5)
    refused("A has shape (3, 5); give a square map", weight_at, torch.ones(3, 5), 2)
    refused("A has shape (3,); give (…, Lq, Lk)", mean_distance, torch.ones(3))
    refused("A has shape (4, 3); give (…, Lq, Lk)", mean_distance, torch.ones(4, 3))
