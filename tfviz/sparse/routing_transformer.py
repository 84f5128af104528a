"""Routing attention: centroids that follow queries and keys; who has the same one meets.

Roy, Saffar, Vaswani, Grangier 2020 (arXiv 2003.05997). Each head has k centroids μ_c. A query or
key x belongs to the centroid with the largest product with its direction x̂ = x/|x|,

    c(x) = argmax_c x̂ · μ_c,        S_i = {j ≤ i : c(q_i) = c(k_j)}

Centroids get no gradient. At every step of training they follow their members, with 0 < λ < 1:

    n_c ← λ n_c + (1 − λ) N_c,    m_c ← λ m_c + (1 − λ) Σ_{c(x) = c} x̂,    μ_c = m_c / n_c

where N_c counts the queries and keys of this step that belong to c. Such clusters differ in size.
What is computed gives each the same size: a centroid takes the w queries and the w keys nearest to
it, in the order of the text. Whom several take gets the mean of their answers; whom none takes, or
who finds no key there, gets 0.

Scores are those of Q and K as they come, so one cluster of all is attention. The authors' code
normalises Q and K (layer norm without weights) for the scores too, and adds a loss that pulls
vectors to their centroid; `routing-transformer` normalises centroids at every step.

>>> import torch
>>> X = torch.tensor([[3.0, 0.1], [0.2, 5.0], [1.0, -0.1], [0.0, 0.3]])
>>> clusters(X, torch.eye(2)), members(X, torch.eye(2), w=2)
(tensor([0, 1, 0, 1]), tensor([[0, 2],
        [1, 3]]))
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["Routing", "routing_attention", "routing_definition"]


def affinity(X: Float[Tensor, "*b L d"], mu: Float[Tensor, "*c k d"]) -> Float[Tensor, "*b k L"]:
    """x̂ · μ_c of every centroid with every row; the length of a row plays no part."""
    if not _arguments.tensor("mu", mu, "(heads, k, d)").isfinite().all():
        raise ValueError("mu holds NaN or infinity; look where the centroids were moved")
    if X.shape[-1] != mu.shape[-1]:
        raise ValueError(
            f"X has rows of {X.shape[-1]} numbers, mu has {mu.shape[-1]}; give both the same"
        )
    return mu.to(X) @ F.normalize(X.detach(), dim=-1).mT


def clusters(X: Float[Tensor, "*b L d"], mu: Float[Tensor, "*c k d"]) -> Int[Tensor, "*b L"]:
    """c(x): the centroid of every row."""
    return affinity(X, mu).argmax(-2)


def members(
    X: Float[Tensor, "*b L d"], mu: Float[Tensor, "*c k d"], w: int
) -> Int[Tensor, "*b k w"]:
    """The w rows nearest to each centroid, in the order of the text."""
    _arguments.integer("w", w, 1, X.shape[-2])
    return affinity(X, mu).topk(w, -1).indices.sort(-1).values


def together(
    queries: Bool[Tensor, "*b k L"], keys: Bool[Tensor, "*b k L"], causal: bool = False
) -> Bool[Tensor, "*b k L L"]:
    """Which pairs each centroid brings together, of the queries and keys that are its own."""
    meet = queries.unsqueeze(-1) & keys.unsqueeze(-2)
    return meet.tril() if causal else meet


def taken(at: Int[Tensor, "*b k w"], L: int) -> Bool[Tensor, "*b k L"]:
    """`members` as a mask."""
    mask = torch.zeros(*at.shape[:-1], L, dtype=torch.bool, device=at.device)
    return mask.scatter_(-1, at, True)


@named
def routing_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    meet: Bool[Tensor, "*b k L L"],
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The mean of the softmaxes of those centroids where the query meets a key, and its weights."""
    s = (Q @ K.mT / math.sqrt(Q.shape[-1])).unsqueeze(-3)
    some = meet.any(-1, keepdim=True)
    each = s.masked_fill(~meet, -math.inf).masked_fill(~some, 0.0).softmax(-1) * some
    A = each.sum(-3) / some.sum(-3).clamp(min=1)
    return A @ V, A


@named
def routing_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    mu: Float[Tensor, "h k d"],
    w: int,
    causal: bool = False,
) -> Float[Tensor, "b h L dv"]:
    """The same from what each centroid takes, in O(L k d + k w² d)."""
    _qkv.check(Q, K, V, self_attention=True, reads_values=True)
    i, j = members(Q, mu, w), members(K, mu, w)  # (b, h, k, w)
    (b, h, L, _), (k, dv) = Q.shape, (mu.shape[-2], V.shape[-1])

    def take(X: Tensor, at: Tensor) -> Tensor:  # (b, h, L, d) → (b·h, k, w, d)
        rows = at.flatten(2).unsqueeze(-1).expand(-1, -1, -1, X.shape[-1])
        return X.gather(2, rows).view(b * h, k, w, -1)

    allowed = (i.unsqueeze(-1) >= j.unsqueeze(-2)).view(b * h, k, w, w) if causal else None
    each = _fused.attention(take(Q, i), take(K, j), take(V, j), allowed)
    each = each.to(Q.dtype)  # autocast makes half of them
    some = torch.ones_like(i, dtype=Q.dtype)
    if allowed is not None:
        some = allowed.any(-1).view_as(i).to(Q.dtype)
        each = each * some.view(b * h, k, w, 1)
    rows = i.flatten(2)
    total = Q.new_zeros(b, h, L, dv).scatter_add(
        2, rows.unsqueeze(-1).expand(-1, -1, -1, dv), each.view(b, h, k * w, dv)
    )
    times = Q.new_zeros(b, h, L).scatter_add(2, rows, some.flatten(2))
    return total / times.clamp(min=1).unsqueeze(-1)


@torch.no_grad()
def moved(
    mu: Float[Tensor, "h k d"],
    count: Float[Tensor, "h k"],
    X: Float[Tensor, "b h n d"],
    decay: float,
) -> tuple[Float[Tensor, "h k d"], Float[Tensor, "h k"]]:
    """(μ, n) after a step in which the queries and keys X came by. Who has no member stays."""
    _arguments.real("decay", decay, 0, 1)
    at, x = clusters(X, mu), F.normalize(X.detach(), dim=-1).to(mu)  # (b, h, n), (b, h, n, d)
    many = mu.new_zeros(len(X), *count.shape).scatter_add(2, at, torch.ones_like(x[..., 0])).sum(0)
    rows = at.unsqueeze(-1).expand_as(x)
    found = mu.new_zeros(len(X), *mu.shape).scatter_add(2, rows, x).sum(0)
    new = decay * count + (1 - decay) * many
    mean = decay * count.unsqueeze(-1) * mu + (1 - decay) * found
    return torch.where((many > 0).unsqueeze(-1), mean / new.unsqueeze(-1), mu), new


class Routing(nn.Module):
    """Routing attention as a core; its centroids move in every call while it trains.

    k   clusters;  w   queries and keys of each, L/k if None;  decay   λ

    It does not know padding, caches, or patterns other than full and causal.
    """

    mu: Tensor
    count: Tensor

    @named
    def __init__(
        self, h: int, d_head: int, k: int, w: int | None = None, decay: float = 0.999
    ) -> None:
        super().__init__()
        self.k, self.w, self.decay = _arguments.integer("k", k, 1), w, decay
        self.register_buffer("mu", F.normalize(torch.randn(h, k, d_head), dim=-1))
        self.register_buffer("count", torch.ones(h, k))

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        causal = where.whole_text("routing chooses the pairs itself", "clusters")
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        w = min(self.w or math.ceil(Q.shape[2] / self.k), Q.shape[2])
        attend = partial(routing_attention, Q, K, mu=self.mu, w=w, causal=causal)
        out, A = attend(V), attend(identity(V)) if where.need_weights else None
        if self.training:
            self.mu, self.count = moved(self.mu, self.count, torch.cat([Q, K], 2), self.decay)
        return out, A
