"""Shaw's relative positions: labels by hand, the definition in loops, others' code, limits."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function
from refusals import ranges, refused
from three import three
from torch import Tensor

from tfviz import attention, patterns
from tfviz.formula import Formula
from tfviz.measure import largest_storage
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.position.shaw_relative import (
    Shaw,
    key_scores,
    label,
    label_weights,
    labels,
    shaw,
    shaw_attention,
)

close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)


def case(L: int = 9, d: int = 4, k: int = 2, seed: int = 0) -> list[Tensor]:
    rng = torch.Generator().manual_seed(seed)
    shapes = [(L, d)] * 3 + [(2 * k + 1, d)] * 2  # Q, K, V, P_k, P_v
    return [torch.randn(s, generator=rng, dtype=torch.float64) for s in shapes]


def definition(Q, K, V, P_k, P_v, causal=False):  # type: ignore[no-untyped-def]
    """One pair, one number after the other."""
    k, L, d = len(P_k) // 2, len(Q), Q.shape[1]
    A, Z = torch.zeros(L, L, dtype=Q.dtype), torch.zeros_like(V)
    for i in range(L):
        keys = range(i + 1) if causal else range(L)
        row = {j: min(max(j - i, -k), k) + k for j in keys}
        loud = {
            j: math.exp(sum(Q[i, c] * (K[j, c] + P_k[row[j], c]) for c in range(d)) / math.sqrt(d))
            for j in keys
        }
        for j in keys:
            A[i, j] = loud[j] / sum(loud.values())
            Z[i] += A[i, j] * (V[j] + P_v[row[j]])
    return Z, A


# --- labels ---------------------------------------------------------------------------------------


def test_golden_labels() -> None:
    assert labels(6, 6, 2).tolist() == [
        [0, 1, 2, 2, 2, 2],
        [-1, 0, 1, 2, 2, 2],
        [-2, -1, 0, 1, 2, 2],
        [-2, -2, -1, 0, 1, 2],
        [-2, -2, -2, -1, 0, 1],
        [-2, -2, -2, -2, -1, 0],
    ]
    assert labels(2, 6, 2).equal(labels(6, 6, 2)[4:])  # the queries are the last
    assert labels(5, 5, 0).eq(0).all()


@pytest.mark.parametrize("k", [1, 3, 20])
def test_there_are_as_many_labels_as_rows(k: int) -> None:
    found = set(labels(50, 50, k).flatten().tolist())
    assert found == set(range(-k, k + 1))


def test_the_label_is_a_formula() -> None:
    formula = Formula(label)
    i, j = torch.arange(7)[:, None], torch.arange(7)
    assert formula(i, j, k=3).equal(labels(7, 7, 3))
    assert "Math.min" in formula.javascript() and "Math.max" in formula.javascript()


# --- the definition and the efficient form --------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2, 12])
def test_equals_the_definition(k: int, causal: bool) -> None:
    Q, K, V, P_k, P_v = case(k=k)
    pattern = patterns.causal() if causal else None
    Z, A = definition(Q, K, V, P_k, P_v, causal)
    got, weights = shaw_attention(Q, K, V, P_k, P_v, pattern)
    close(got, Z)
    close(weights, A)
    out, weights = attention(Q, K, V, pattern, bias=key_scores(Q, P_k, 9) / math.sqrt(4))
    close(weights, A)
    close(out + label_weights(weights, k) @ P_v, Z)


def test_zero_tables_are_vanilla_and_k_0_changes_no_weight() -> None:
    Q, K, V, P_k, P_v = case()
    plain = attention(Q, K, V)
    close(shaw_attention(Q, K, V, 0 * P_k, 0 * P_v), plain)
    out, A = shaw_attention(Q, K, V, P_k[:1], P_v[:1])  # one label for all: the same for every key
    close(A, plain[1])
    close(out, plain[0] + P_v[0])


def test_only_differences_of_places_count() -> None:
    """Equal rows at other places, the same neighbours: the same output in the middle."""
    Q, K, V, P_k, P_v = case(L=5)
    ring = patterns.band(radius=2)
    long = three(torch.cat([x, x, x]) for x in (Q, K, V))
    out, _ = shaw_attention(*long, P_k, P_v, ring)
    close(out[3:7], out[8:12])
    scores = key_scores(long[0], P_k, 15)
    close(scores[3:7, 3:7], scores[8:12, 8:12])


def test_beyond_k_all_distances_are_one() -> None:
    Q, _, _, P_k, _ = case(L=20, k=3)
    scores = key_scores(Q, P_k, 20)
    close(scores[10, :7], scores[10, :1].expand(7))  # j − i = −10 … −4, and −3 too
    close(scores[10, 7], scores[10, 0])
    assert (scores[10, 8] - scores[10, 7]).abs() > 1e-3


def test_weights_of_labels_sum_to_one_and_count() -> None:
    A = torch.full((4, 4), 0.25)
    assert label_weights(A, 1).tolist() == [
        [0.0, 0.25, 0.75],
        [0.25, 0.25, 0.5],
        [0.5, 0.25, 0.25],
        [0.75, 0.25, 0.0],
    ]


def test_no_vector_for_every_pair() -> None:
    L, d = 256, 32
    Q, A, P = torch.randn(L, d), torch.rand(L, L), torch.randn(9, d)
    naive = largest_storage(lambda: shaw_attention(Q, Q, Q, P, P))
    fast = largest_storage(lambda: (key_scores(Q, P, L), label_weights(A, 4) @ P))
    assert naive >= 4 * L * L * d
    assert fast <= 8 * L * L  # the labels are whole numbers of 8 bytes


# --- inside a model -------------------------------------------------------------------------------


def test_each_layer_has_tables_and_both_learn() -> None:
    model = GPT(11, 12, 3, 2, core=shaw(4, 2))
    tables = [m.P_k for m in model.modules() if isinstance(m, Shaw)]
    assert len(tables) == 2 and tables[0] is not tables[1] and tables[0].shape == (5, 4)
    model(torch.randint(11, (2, 6))).square().sum().backward()
    for m in model.modules():
        if isinstance(m, Shaw):
            assert m.P_v is not None
            for P in (m.P_k, m.P_v):
                assert P.grad is not None
                assert P.grad[:3].abs().sum(-1).gt(0).all()  # distances −2, −1, 0
                assert P.grad[3:].eq(0).all()  # a causal layer never asks for the future


def test_hugging_face_relative_key() -> None:
    from transformers import Wav2Vec2BertConfig
    from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

    config = Wav2Vec2BertConfig(  # type: ignore[call-arg]
        hidden_size=12, num_attention_heads=3, position_embeddings_type="relative_key",
        left_max_position_embeddings=2, right_max_position_embeddings=2, attention_dropout=0.0,
        attn_implementation="eager",
    )  # fmt: skip
    theirs = Wav2Vec2BertSelfAttention(config).eval()
    ours: Any = MultiHeadAttention(12, 3, core=shaw(4, 2, values=False))
    parts = theirs.linear_q, theirs.linear_k, theirs.linear_v
    ours.W_qkv.weight.data = torch.cat([x.weight.detach() for x in parts])
    ours.W_qkv.bias.data = torch.cat([x.bias.detach() for x in parts])
    ours.W_o.load_state_dict(theirs.linear_out.state_dict())
    ours.core.P_k.data = theirs.distance_embedding.weight.detach().clone()
    X = torch.randn(2, 9, 12)
    torch.testing.assert_close(ours(X), theirs(X)[0])


# --- errors ---------------------------------------------------------------------------------------


def test_errors_say_what_to_do() -> None:
    Q, K, V, P_k, P_v = case()
    ranges(Shaw, d_head=(4, 1), k=(2, 0))
    refused("a table has 4 rows; give 2k", key_scores, Q, P_k[:4], 9)
    refused("the same k for both", shaw_attention, Q, K, V, P_k, P_v[1:-1])
    refused("Lk = 2 … choose Lk >= 3", labels, 3, 2, 1)
    refused("no P^v", Shaw(4, 2, values=False).values, torch.rand(1, 1, 3, 3))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_the_definition(
    core: Shaw, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    none = torch.zeros_like(core.P_k)
    return shaw_attention(Q, K, V, core.P_k, none if core.P_v is None else core.P_v, mask)


P_K, P_V = (torch.linspace(-1, 1, 5 * d, dtype=torch.float64).sin().view(5, d) for d in (6, 5))


def all_vectors(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """By a vector for every pair."""
    L = Q.shape[2]
    apart = (torch.arange(L) - torch.arange(L)[:, None]).clamp(-2, 2) + 2
    k, v = (x.to(Q)[apart] for x in (P_K, P_V))  # (L, L, d)
    A = ((Q.unsqueeze(3) * (K.unsqueeze(2) + k)).sum(-1) / Q.shape[-1] ** 0.5).softmax(-1)
    return (A.unsqueeze(-1) * (V.unsqueeze(2) + v)).sum(3)


CASE = Case(
    lambda: Shaw(D, 2),
    by_the_definition,
    but={
        "its_map_is_what_it_applies": "it adds a vector of the distance to every value",
        "values_of_another_width_store_no_scores": "its vectors are as wide as keys",
    },
    variants={"keys only": Case(lambda: Shaw(D, 2, values=False), by_the_definition)},
    functions={
        "Shaw": Function(lambda Q, K, V: shaw_attention(Q, K, V, P_K.to(Q), P_V.to(Q)), all_vectors)
    },
    mutants=[
        (
            "labels look ahead",
            "return torch.clamp(j - i, -k, k)",
            "return torch.clamp(i - j, -k, k)",
        ),
        (
            "labels clipped one early",
            "return torch.clamp(j - i, -k, k)",
            "return torch.clamp(j - i, -k, k - 1)",
        ),
    ],
)
