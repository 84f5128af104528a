"""Clustered attention: queries that are alike share one row of weights.

Vyas, Katharopoulos, Fleuret 2020 (arXiv 2007.04825), sections 3.1 to 3.3. The L queries are put
into C clusters, and only the means of the clusters, their centroids q^c_c, are compared with keys:

    A^c = softmax(Q^c Kᵀ/√d)   (C, L)          query i of cluster c gets row c of it

Improved clustered attention gives each query weights of its own on the k keys T_c that matter most
to its centroid, and leaves them the share m_c that they have together:

    m_c = Σ_{j ∈ T_c} a^c_cj
    a_ij = m_c exp(q_i k_jᵀ/√d) / Σ_{r ∈ T_c} exp(q_i k_rᵀ/√d)    for j in T_c,
    a_ij = a^c_cj                                                  elsewhere

Its row is never further from the true one, in the sum of absolute differences. To find clusters,
each query becomes a row of bits, on which side of each of some random planes it lies, and Lloyd's
algorithm runs on these: nearest centroid, then the majority of the members for each bit.

The authors' code (fast-transformers) draws planes and first centroids anew in every call, the
latter at random places that all texts share; here both are fixed, the first centroids at equal
distances along the text. A cluster that lost all members gets random bits there, and stays as it
was here. Gradients reach the queries through their mean; which cluster they are in has none.

>>> X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
>>> lloyd(X, 2)
tensor([0, 0, 1, 1])
>>> clustered_definition(X, X, X, lloyd(X, 2))[1][:2, :2]  # two queries, one row
tensor([[0.0230, 0.0328],
        [0.0230, 0.0328]])
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["Clustered", "attention_by_cluster", "clustered_definition", "lloyd"]

BITS, STEPS = 63, 10  # as in the authors' code
STRETCH = 512  # queries that are compared with all centroids at a time


@lru_cache(maxsize=64)
def planes(d: int, bits: int = BITS, seed: int = 0) -> Float[Tensor, "bits d_and_one"]:
    """Random planes: d numbers of a direction each, and where along it the plane stands."""
    dice = torch.Generator().manual_seed(seed)
    return torch.randn(bits, d + 1, generator=dice, dtype=torch.float64)


def hashed(
    X: Float[Tensor, "*b L d"], W: Float[Tensor, "bits d_and_one"]
) -> Bool[Tensor, "*b L bits"]:
    """On which side of each plane every row lies."""
    if X.shape[-1] + 1 != W.shape[-1]:
        raise ValueError(
            f"X has rows of {X.shape[-1]} numbers, W is for {W.shape[-1] - 1}; draw W by "
            f"planes({X.shape[-1]})"
        )
    W = W.to(X.device)
    parts = X.detach().split(STRETCH, -2)
    return torch.cat([x.to(W.dtype) @ W[:, :-1].mT > W[:, -1] for x in parts], -2)


@torch.no_grad()
@named
def lloyd(
    X: Float[Tensor, "*b L d"], C: int, steps: int = STEPS, majority: bool = False
) -> Int[Tensor, "*b L"]:
    """The cluster of every row: the nearest of C centroids, each the mean of its members.

    The first centroids are rows at equal distances along the text. `majority` is for rows of +1 and
    −1: a number of a centroid is then +1 where most members have +1, and −1 elsewhere.
    """
    L = X.shape[-2]
    _arguments.integer("C", C, 1, L)
    _arguments.integer("steps", steps, 1)
    mu = X[..., torch.arange(C, device=X.device) * L // C, :]
    for step in range(steps):
        cluster = _most_agreed(X, mu) if majority else _nearest(X, mu)
        if step < steps - 1:
            total, count = _members(X, cluster, C)
            new = total.sign() if majority else total / count.clamp(min=1)
            if majority:
                new = new.masked_fill(new == 0, -1.0)
            mu = torch.where(count > 0, new, mu)
    return cluster


def _nearest(X: Float[Tensor, "*b L d"], mu: Float[Tensor, "*b C d"]) -> Int[Tensor, "*b L"]:
    """The nearest centroid of each row, the first of those that are equally near."""
    return (X @ mu.mT - mu.square().sum(-1).unsqueeze(-2) / 2).argmax(-1)


def _most_agreed(X: Float[Tensor, "*b L bits"], mu: Float[Tensor, "*b C bits"]) -> Tensor:
    """The same of rows of +1 and −1, by whole numbers that name their centroid.

    The product of two such rows is a whole number n, largest where they are nearest. C n − c is
    whole too, tells both n and c, and is largest for the first of the nearest: so its maximum is
    enough, which takes an eighth of the time of looking for the place of the maximum. One stretch
    of rows follows the other, and the products stay in the processor's cache.
    """
    C, bits = mu.shape[-2:]
    if C * (bits + 1) > 1 / torch.finfo(X.dtype).eps:  # such a number would be rounded
        return _nearest(X, mu)
    wide, c = (C * mu).mT, torch.arange(C, device=X.device, dtype=X.dtype)
    largest = [(x @ wide).sub_(c).amax(-1) for x in X.split(STRETCH, -2)]
    return -torch.cat(largest, -1).long() % C


def _members(
    X: Float[Tensor, "*b L d"], cluster: Int[Tensor, "*b L"], C: int
) -> tuple[Float[Tensor, "*b C d"], Float[Tensor, "*b C 1"]]:
    """As `_gathered`, in half the time: the clusters of all texts and heads are numbered in one
    row. With gradients it would keep X."""
    rows = cluster.reshape(-1, cluster.shape[-1])
    numbered = (rows + C * torch.arange(len(rows), device=X.device).unsqueeze(-1)).flatten()
    many = C * len(rows)
    total = X.new_zeros(many, X.shape[-1]).index_add(0, numbered, X.flatten(0, -2))
    count = torch.bincount(numbered, minlength=many).to(X.dtype)
    return total.view(*X.shape[:-2], C, -1), count.view(*X.shape[:-2], C, 1)


def _gathered(
    X: Float[Tensor, "*b L d"], cluster: Int[Tensor, "*b L"], C: int
) -> tuple[Float[Tensor, "*b C d"], Float[Tensor, "*b C 1"]]:
    """The sum of each cluster's members, and how many they are."""
    rows = cluster.unsqueeze(-1)
    total = X.new_zeros(*X.shape[:-2], C, X.shape[-1]).scatter_add(-2, rows.expand_as(X), X)
    one = X.new_ones(*X.shape[:-1], 1)
    return total, X.new_zeros(*X.shape[:-2], C, 1).scatter_add(-2, rows, one)


def clusters(
    Q: Float[Tensor, "*b L d"], C: int, bits: int = BITS, steps: int = STEPS, seed: int = 0
) -> Int[Tensor, "*b L"]:
    """The cluster of every query: Lloyd's algorithm on its bits."""
    W = planes(Q.shape[-1], _arguments.integer("bits", bits, 1), seed)
    return lloyd(hashed(Q, W).float().mul_(2).sub_(1), C, steps, majority=True)


@named
def clustered_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    cluster: Int[Tensor, "*b Lq"],
    k: int = 0,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output, and the weights: a row for each cluster, improved on its k best keys."""
    scale = 1 / math.sqrt(Q.shape[-1])
    member = F.one_hot(cluster).to(Q)
    centroids = member.mT @ Q / member.sum(-2).clamp(min=1).unsqueeze(-1)
    scores = scale * centroids @ K.mT
    A = member @ scores.softmax(-1)
    if k:
        best = scores.topk(k, -1).indices
        top = (member @ torch.zeros_like(scores).scatter(-1, best, 1.0)) > 0
        own = (scale * Q @ K.mT).masked_fill(~top, -math.inf).softmax(-1)
        A = torch.where(top, (A * top).sum(-1, keepdim=True) * own, A)
    return A @ V, A


@named
def attention_by_cluster(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    cluster: Int[Tensor, "b h Lq"],
    k: int = 0,
) -> Float[Tensor, "b h Lq dv"]:
    """The same in O(C Lk d), and O(k Lq d) more with k > 0; no Lq × Lk matrix is made."""
    _qkv.check(Q, K, V, self_attention=False, reads_values=True)
    _arguments.integer("k", k, 0, K.shape[2])
    cluster = _arguments.numbers_of("cluster", cluster, Q.shape[2])
    if cluster.shape != Q.shape[:-1]:
        raise ValueError(
            f"cluster has shape {tuple(cluster.shape)}, Q {tuple(Q.shape)}; give a number for each "
            f"query, {tuple(Q.shape[:-1])}"
        )
    kind = torch.promote_types(V.dtype, torch.float32)
    with _fused.full_precision(Q):
        q, key, value = (x.to(kind) for x in (Q, K, V))
        C = int(cluster.max()) + 1
        total, count = _gathered(q, cluster, C)
        centroids, rows = total / count.clamp(min=1), cluster.unsqueeze(-1)
        if not k:
            shared = _fused.attention(centroids, key, value)
            return shared.gather(2, rows.expand(*Q.shape[:3], V.shape[-1])).to(V.dtype)
        scores = centroids @ key.mT / math.sqrt(Q.shape[-1])
        best, A = scores.topk(k, -1).indices, scores.softmax(-1)
        mass = A.gather(-1, best).sum(-1, keepdim=True)
        rest = A.scatter(-1, best, 0.0) @ value  # what the other keys give
        both = torch.cat([rest, mass], -1).gather(2, rows.expand(*Q.shape[:3], V.shape[-1] + 1))
        return (both[..., :-1] + both[..., -1:] * _on_best(q, key, value, cluster, best)).to(
            V.dtype
        )


def _on_best(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    cluster: Int[Tensor, "b h L"],
    best: Int[Tensor, "b h C k"],
) -> Float[Tensor, "b h L dv"]:
    """Each query's attention to the best keys of its cluster.

    The queries are laid out cluster by cluster in blocks of m, so that all queries of a block read
    the same k keys; the last block of a cluster is filled with zeros.
    """
    (b, h, L, _), (C, k), n = Q.shape, best.shape[2:], Q.shape[0] * Q.shape[1]
    cluster, best, m = cluster.view(n, L), best.view(n, C, k), math.ceil(L / C)
    counted = torch.arange(L, device=Q.device).expand(n, L)
    count = torch.zeros_like(best[..., 0]).scatter_add(1, cluster, torch.ones_like(cluster))
    order = cluster.argsort(dim=-1, stable=True)
    nth = counted - (count.cumsum(-1) - count).gather(1, cluster.gather(1, order))
    nth = torch.empty_like(nth).scatter(1, order, nth)  # each query's number in its cluster
    blocks = (count + m - 1) // m
    ends = blocks.cumsum(-1)
    slot = m * (ends - blocks).gather(1, cluster) + nth
    many = int(ends[:, -1].max())
    of_block = torch.arange(many, device=Q.device).expand(n, many).contiguous()
    of_block = torch.searchsorted(ends, of_block, right=True).clamp(max=C - 1)
    keys = best.gather(1, of_block.unsqueeze(-1).expand(n, many, k)).flatten(1)

    def rows(X: Tensor, at: Tensor) -> Tensor:
        return X.flatten(0, 1).gather(1, at.unsqueeze(-1).expand(*at.shape, X.shape[-1]))

    at = slot.unsqueeze(-1).expand(n, L, Q.shape[-1])
    laid = Q.new_zeros(n, many * m, Q.shape[-1]).scatter(1, at, Q.flatten(0, 1))
    found = _fused.attention(
        laid.unflatten(1, (many, m)),
        rows(K, keys).unflatten(1, (many, k)),
        rows(V, keys).unflatten(1, (many, k)),
    )
    return rows(found.flatten(1, 2).unflatten(0, (b, h)), slot).unflatten(0, (b, h))


class Clustered(nn.Module):
    """Clustered attention as a core: `BERT(…, core=partial(Clustered, C=25))`.

    C       clusters, at most one for each token
    k       keys on which each query has weights of its own; 0 for clustered attention without that
    bits    planes of the hash;  steps   of Lloyd's algorithm;  seed   of the planes

    It is not causal, and does not know padding, caches, or patterns other than full.
    """

    @named
    def __init__(
        self, C: int, k: int = 32, bits: int = BITS, steps: int = STEPS, seed: int = 0
    ) -> None:
        super().__init__()
        self.C = _arguments.integer("C", C, 1)
        self.k = _arguments.integer("k", k, 0)
        self.bits = _arguments.integer("bits", bits, 1)
        self.steps = _arguments.integer("steps", steps, 1)
        self.seed = _arguments.integer("seed", seed, 0)

    def clusters(self, Q: Float[Tensor, "b h L d"]) -> Int[Tensor, "b h L"]:
        """The cluster of each query."""
        return clusters(Q, min(self.C, Q.shape[2]), self.bits, self.steps, self.seed)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("a centroid is the mean of queries from all of a text", "clusters"):
            raise ValueError(
                "pattern = causal(): a centroid is the mean of queries from all of a text, so "
                "answers depend on later tokens; clustered attention is for encoders: give "
                "pattern = full()"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        _qkv.check(Q, K, V, self_attention=False, reads_values=True)
        cluster, k = self.clusters(Q), min(self.k, K.shape[2])

        def attend(V: Tensor) -> Tensor:
            return attention_by_cluster(Q, K, V, cluster, k)

        return attend(V), attend(identity(V)) if where.need_weights else None
