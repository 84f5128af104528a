"""Clustered attention: rows that are shared, rows that are improved, and how clusters are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, H, L, agree_with_gradients, close, qkv, work_grows_no_faster
from refusals import ranges, refused
from three import three
from torch import Tensor

from tfviz import GPT, attention
from tfviz.compressed import clustered_attention as ca
from tfviz.cores import Where


def test_four_queries_by_hand() -> None:
    """Queries 0 and 2 in one cluster, whose mean is 1; 4 and 4 in the other. Keys 0 and ln 9."""
    Q = torch.tensor([0.0, 2.0, 4.0, 4.0])[:, None]
    K, V = torch.tensor([0.0, math.log(9)])[:, None], torch.tensor([10.0, 20.0])[:, None]
    out, A = ca.clustered_definition(Q, K, V, torch.tensor([0, 0, 1, 1]))
    torch.testing.assert_close(A[:2], torch.tensor([[0.1, 0.9], [0.1, 0.9]]))  # 1 : 9
    torch.testing.assert_close(A[2:], torch.tensor([[1.0, 6561.0]]).div(6562).expand(2, 2))
    torch.testing.assert_close(out[:2], torch.full((2, 1), 19.0))


def test_two_improved_rows_by_hand() -> None:
    """Scores of the centroid are 0, ln 2, ln 5: shares 1, 2, 5 of 8. Its two best keys have 7/8,
    which each query divides by its own scores: query 0 equally, query 2 as 2² : 5²."""
    Q = torch.tensor([0.0, 2.0])[:, None]
    K = torch.tensor([0.0, math.log(2), math.log(5)])[:, None]
    _, A = ca.clustered_definition(Q, K, K, torch.tensor([0, 0]), k=2)
    wanted = torch.tensor([[1 / 8, 7 / 16, 7 / 16], [1 / 8, 7 / 8 * 4 / 29, 7 / 8 * 25 / 29]])
    torch.testing.assert_close(A, wanted)


def test_lloyd_by_hand() -> None:
    """Rows 0 and 2 begin, at 0 and 4. The means then are 0 and 7, at last 1.5 and 9."""
    X = torch.tensor([0.0, 3.0, 4.0, 14.0])[:, None]
    courses = [ca.lloyd(X, 2, steps).tolist() for steps in (1, 2, 3, 10)]
    assert courses == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_majority_of_bits_by_hand() -> None:
    """Three rows vote; a tie is no majority, and gives −1."""
    X = torch.tensor([[1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]])
    # begins with rows 0 and 2: 0, 1 | 2, 3; the votes are (1, tie, −1) and (−1, tie, 1)
    assert ca.lloyd(X, 2, majority=True).tolist() == [0, 0, 1, 1]
    W = torch.tensor([[1.0, 0.0, 0.5], [0.0, -1.0, 0.0]])
    assert ca.hashed(torch.tensor([[1.0, 1.0], [0.5, -1.0]]), W).tolist() == [
        [True, False],
        [False, True],  # on a plane is not above it
    ]


# --- limits and bounds ----------------------------------------------------------------------------


def alone(Q: Tensor) -> Tensor:
    return torch.arange(Q.shape[2]).expand(Q.shape[:3])


@pytest.mark.parametrize("k", [0, 3, L])
def test_with_a_cluster_for_each_query_it_is_attention(k: int) -> None:
    leaves = three(x.requires_grad_() for x in qkv())
    got = ca.attention_by_cluster(*leaves, alone(leaves[0]), k)
    agree_with_gradients(got, attention(*leaves)[0], leaves)
    core = ca.Clustered(L, k)  # the bits of all nine differ
    torch.testing.assert_close(core(*leaves, Where())[0], attention(*leaves)[0])


def test_equal_bits_share_a_cluster_even_then() -> None:
    """Two queries on the same side of every plane are one to the hash: C = L is then not exact."""
    Q = qkv()[0]
    Q[:, :, 1] = Q[:, :, 0] * (1 + 1e-6)
    cluster = ca.clusters(Q, L)
    assert (cluster[..., 0] == cluster[..., 1]).all()
    Q[:, :, 1] = -Q[:, :, 0]
    assert (ca.clusters(Q, L)[..., 0] != ca.clusters(Q, L)[..., 1]).all()


@pytest.mark.parametrize("C", [1, 3])
def test_with_all_keys_improved_it_is_attention(C: int) -> None:
    leaves = three(x.requires_grad_() for x in qkv())
    got = ca.attention_by_cluster(*leaves, ca.clusters(leaves[0], C), L)
    agree_with_gradients(got, attention(*leaves)[0], leaves)


def test_one_cluster_gives_all_queries_one_row() -> None:
    Q, K, V = qkv()
    out = ca.attention_by_cluster(Q, K, V, torch.zeros(Q.shape[:3], dtype=torch.long))
    wanted = attention(Q.mean(2, keepdim=True), K, V)[0].expand_as(V)
    torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("C", [1, 2, 4])
def test_improved_rows_are_nearer_to_the_true_ones(C: int, k: int) -> None:
    """Row by row, in the sum of absolute differences (the paper's Proposition 2)."""
    Q, K, V = qkv()
    Q, cluster, true = 3 * Q, ca.clusters(Q, C), attention(3 * Q, K, V)[1]
    plain, improved = (
        (ca.clustered_definition(Q, K, V, cluster, k)[1] - true).abs().sum(-1) for k in (0, k)
    )
    assert (improved <= plain + 1e-12).all() and (improved < plain - 1e-3).any()


def test_a_single_key_improves_nothing() -> None:
    """It keeps its share, whoever asks."""
    Q, K, V = qkv()
    cluster = ca.clusters(Q, 3)
    plain, improved = (ca.clustered_definition(Q, K, V, cluster, k)[1] for k in (0, 1))
    torch.testing.assert_close(improved, plain)


def test_weights_differ_no_more_than_queries_do() -> None:
    """|a_i − a_j| ≤ |q_i − q_j| |K| / √d in the Euclidean norm (the paper's Proposition 1)."""
    Q, K, V = qkv()
    A = attention(Q, K, V)[1]
    apart = torch.cdist(A, A)
    most = torch.cdist(Q, Q) * torch.linalg.matrix_norm(K, 2)[..., None, None] / math.sqrt(D)
    assert (apart <= most).all() and (apart > 0.02 * most).any()


def test_gradients_reach_each_member_through_the_mean() -> None:
    """Only query 0's answer is asked for; its cluster's other members move the centroid as much."""
    Q, K, V = (x.requires_grad_() for x in qkv())
    cluster = torch.arange(L).remainder(3).expand(Q.shape[:3])
    ca.attention_by_cluster(Q, K, V, cluster)[:, :, 0].sum().backward()
    assert Q.grad is not None
    torch.testing.assert_close(Q.grad[:, :, 3], Q.grad[:, :, 0])
    assert Q.grad[:, :, 0].abs().min() > 0 and (Q.grad[:, :, 1] == 0).all()


@pytest.mark.parametrize("sizes", [(9, 0, 0), (1, 0, 8), (3, 3, 3), (4, 5, 0)])
def test_clusters_of_any_size(sizes: tuple[int, ...]) -> None:
    """Empty ones, one of all: the blocks of the efficient form hold them all."""
    leaves = three(x.requires_grad_() for x in qkv())
    one = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))
    cluster = torch.stack([one[torch.randperm(L)] for _ in range(2 * H)]).view(2, H, L)
    got = ca.attention_by_cluster(*leaves, cluster, 4)
    agree_with_gradients(got, ca.clustered_definition(*leaves, cluster, 4)[0], leaves)


# --- the future -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 2])
def test_a_later_query_changes_an_earlier_answer(k: int) -> None:
    """Even with the clusters as they are, and only by what the centroid is."""
    Q, K, V = (x.detach() for x in qkv())
    cluster = torch.zeros(Q.shape[:3], dtype=torch.long)
    later = torch.cat([Q[:, :, :-1], -2 * Q[:, :, -1:]], 2)
    change = ca.attention_by_cluster(later, K, V, cluster, k)
    change = change - ca.attention_by_cluster(Q, K, V, cluster, k)
    assert (change[:, :, 0].abs().amax(-1) > 1e-6).all()


def test_a_causal_model_is_refused() -> None:
    gpt = GPT(11, 16, 2, 2, core=partial(ca.Clustered, C=2))
    refused("answers depend on later tokens … encoders", gpt, torch.zeros(1, 8).long())


# --- the code of others ---------------------------------------------------------------------------


def their_bits(X: Tensor, W: Tensor) -> list[int]:
    """`compute_hashes`: bit b of a number is 1 if x w_b > the plane's last number."""
    return [
        sum(int(sum(x * w for x, w in zip(row, plane, strict=False)) > plane[-1]) << b
            for b, plane in enumerate(W.tolist()))
        for row in X.tolist()
    ]  # fmt: skip


def their_clusters(hashes: list[int], centroids: list[int], bits: int, steps: int) -> list[Any]:
    """`cluster_cpu.cpp`: nearest by bits that differ, the first if several are; then a centroid's
    bit is 1 where more members have 1 than 0. An empty cluster, which draws random bits there, is
    None here."""
    found: list[int] = []
    now: list[Any] = list(centroids)
    for step in range(steps):
        far = [[99 if c is None else (x ^ c).bit_count() for c in now] for x in hashes]
        found = [row.index(min(row)) for row in far]
        if step < steps - 1:
            for c in range(len(now)):
                mine = [x for x, at in zip(hashes, found, strict=True) if at == c]
                votes = [sum(1 if x >> b & 1 else -1 for x in mine) for b in range(bits)]
                now[c] = sum((v > 0) << b for b, v in enumerate(votes)) if mine else None
    return [found, now]


@pytest.mark.parametrize("seed", range(5))
def test_parity_with_the_clusters_of_fast_transformers(seed: int) -> None:
    """With the first centroids that we take, as long as no cluster becomes empty."""
    dice = torch.Generator().manual_seed(seed)
    X, bits = torch.randn(40, 6, generator=dice, dtype=torch.float64), 12
    W = ca.planes(6, bits, seed)
    hashes = their_bits(X, W)
    wanted, centroids = their_clusters(hashes, [hashes[10 * c] for c in range(4)], bits, 10)
    assert None not in centroids
    assert ca.clusters(X, 4, bits, 10, seed).tolist() == wanted


def test_an_empty_cluster_stays_where_theirs_is_drawn_anew() -> None:
    """Two equal first centroids: the second never has a member. Theirs then gets random bits, and
    may win some later, so that their clusters are others from call to call; ours never does."""
    X = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    hashes = [3, 3, 3, 0]
    _, centroids = their_clusters(hashes, [3, 3], 2, 2)
    assert centroids[1] is None
    assert ca.lloyd(X, 2, majority=True).tolist() == [0, 0, 0, 0]
    drawn = their_clusters(hashes, [centroids[0], 0], 2, 1)[0]  # had it drawn the bits 00
    assert drawn == [0, 0, 0, 1]


def fast_transformers(
    Q: Tensor, K: Tensor, V: Tensor, cluster: Tensor, k: int, causal: bool = False
) -> Tensor:
    """One head, query by query, as the three files say. `ImprovedClusteredAttention`: the top keys
    share 1 − (what the others have together). `ImprovedClusteredCausalAttention`: only the top
    keys, those of the future set to −10⁷ and taken out after the softmax."""
    temp = 1 / math.sqrt(Q.shape[-1])
    out = []
    for i, q in enumerate(Q):
        centroid = Q[cluster == cluster[i]].mean(0)
        QK = centroid @ K.mT
        A = (temp * QK).softmax(-1)
        if not k:
            out.append(A @ V)
            continue
        topk = QK.topk(k).indices
        own = q @ K[topk].mT
        future = topk > i
        if causal:
            own = own.masked_fill(future, -1e7)
            out.append(((temp * own).softmax(-1) * ~future) @ V[topk])
            continue
        bottom = A.clone()
        bottom[topk] = 0
        out.append((temp * own).softmax(-1) * (1 - bottom.sum()) @ V[topk] + bottom @ V)
    return torch.stack(out)


@pytest.mark.parametrize("k", [0, 1, 4, L])
def test_parity_with_the_formulas_of_fast_transformers(k: int) -> None:
    Q, K, V = (x.detach() for x in qkv())
    cluster = ca.clusters(Q, 3)
    wanted = torch.stack(
        [fast_transformers(Q[0, n], K[0, n], V[0, n], cluster[0, n], k) for n in range(H)]
    )
    close(ca.attention_by_cluster(Q, K, V, cluster, k)[0], wanted)


def test_their_causal_form_drops_keys_and_still_sees_the_future() -> None:
    """It is another mechanism: rows keep nothing outside of the top keys, a query all of whose top
    keys come later gets 0, and a later query changes which they are."""
    Q, K, V = (x.detach()[0, 0] for x in qkv())
    cluster = torch.zeros(L, dtype=torch.long)
    theirs = partial(fast_transformers, K=K, cluster=cluster, k=2, causal=True)
    out, weights = theirs(Q, V=V), theirs(Q, V=torch.eye(L, dtype=torch.float64))
    assert (weights.count_nonzero(-1) <= 2).all() and (weights.triu(1) == 0).all()
    assert (out[0] == 0).all() or weights[0, 0] == 1
    later = Q.clone()
    later[-1] = -9 * Q[-1]
    assert (theirs(later, V=V)[:-1] - out[:-1]).abs().max() > 0.01


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 8])
def test_work_grows_with_the_length(k: int) -> None:
    """The clustering too; a text of 16,384 tokens with gradients is among the lengths."""
    work_grows_no_faster(lambda L: lambda *X: ca.Clustered(8, k)(*X, Where())[0], 1.1)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    cluster = ca.clusters(Q, 3)
    attend = ca.attention_by_cluster
    refused("cluster has shape (2, 4, 8), Q (2, 4, 9, 8); give", attend, Q, K, V, cluster[..., 1:])
    refused("k = 10 is out of range", attend, Q, K, V, cluster, L + 1)
    refused("C = 10 is out of range", ca.clusters, Q, L + 1)
    refused("W is for 5; draw W by planes(8)", ca.hashed, Q, ca.planes(5))
    ranges(ca.Clustered, C=(3, 1))
    ranges(partial(ca.Clustered, 3), k=(2, 0), bits=(8, 1), steps=(2, 1))


def test_shorter_texts_have_fewer_clusters_and_keys() -> None:
    X = three(x[:, :, :2] for x in qkv())
    torch.testing.assert_close(ca.Clustered(100, 32)(*X, Where())[0], attention(*X)[0])


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: ca.Clustered, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return ca.clustered_definition(Q, K, V, core.clusters(Q), min(core.k, K.shape[2]))


def of_three(k: int) -> Function:
    def call(form: Callable[..., Any]) -> Callable[..., Any]:
        def out(Q: Tensor, K: Tensor, V: Tensor) -> Any:
            cluster = torch.arange(Q[..., 0].numel()).view(Q.shape[:-1]).remainder(3)
            return form(Q, K, V, cluster, min(k, max(K.shape[-2], 1)))

        return out

    return Function(call(ca.attention_by_cluster), call(ca.clustered_definition))


ENCODER: dict[str, Any] = {"answers": "whole", "causal": False, "grows": 1.0}


CASE = Case(
    lambda: ca.Clustered(3, 2),
    defined,
    sized=lambda n: ca.Clustered(3 if n <= 2 * L else 16, 2),
    **ENCODER,
    variants={"not improved": Case(lambda: ca.Clustered(3, 0), defined, **ENCODER)},
    functions={"clustered": of_three(0), "improved clustered": of_three(4)},
    mutants=[
        ("a centroid that is a sum", "total / count.clamp(min=1), cluster", "total, cluster"),
        (
            "improved rows that keep the weight of the best keys too",
            "A.scatter(-1, best, 0.0) @ value",
            "A @ value",
        ),
        ("best keys with all of the weight", "mass = A.gather(-1, best)", "mass = A"),
        ("a block that reads its neighbour's keys", "ends, of_block, right=True", "ends, of_block"),
        ("a tie that counts as a majority", "new.masked_fill(new == 0, -1.0)", "new + (new == 0)"),
        ("clusters that never move", "if step < steps - 1:", "if step < 0:"),
        ("planes through the origin only", "> W[:, -1]", "> 0"),
        (
            "clustered attention whose shared heads take turns",
            "X.repeat_interleave(Q.shape[1] // X.shape[1], 1)",
            "X.repeat(1, Q.shape[1] // X.shape[1], 1, 1)",
        ),
    ],
)
