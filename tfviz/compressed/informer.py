"""Informer, ProbSparse attention: a few queries attend, all others get the mean of the values.

Zhou et al. 2020 (arXiv 2012.07436), section "Efficient Self-attention Mechanism". With the scores
s_ij = q_i k_jᵀ/√d, a query is rated by how far its row a_i is from an even one,

    M(q_i) = ln Σ_j exp(s_ij) − (1/L_k) Σ_j s_ij = KL(even ‖ a_i) + ln L_k
    M̄(q_i) = max_j s_ij − (1/L_k) Σ_j s_ij,               M̄ ≤ M ≤ M̄ + ln L_k

M̄ is estimated from U = c ⌈ln L_k⌉ keys that are drawn at random for each query. The u = c ⌈ln L_q⌉
queries with the largest estimate get full attention, over all keys; the others the mean of V.

The paper speaks of L_k ln L_q sampled pairs in total, the authors' code draws c ⌈ln L_k⌉ keys for
each query; this follows the code. The keys are drawn with replacement, once for all texts and
heads. What the code does otherwise: it draws anew in each call, and divides the sampled sum by L_k
and not by U (`by_length=True`); its masked form gives the sum of the values so far, not their mean
(`sums=True`). Which queries are kept depends on all of them: it is not causal.

>>> Q, K = torch.tensor([[0.0], [3.0]]), torch.tensor([[0.0], [1.0]])
>>> measure(Q, K) - math.log(2)  # an even row, and one that is not
tensor([0.0000, 0.8554])
>>> informer_definition(Q, K, K, torch.tensor([1]))[1]
tensor([[0.5000, 0.5000],
        [0.0474, 0.9526]])
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["Informer", "informer_attention", "informer_definition"]

FACTOR = 5  # c in the authors' code
AT_A_TIME = 256  # queries whose sampled scores are made at a time


def measure(Q: Float[Tensor, "*b Lq d"], K: Float[Tensor, "*b Lk d"]) -> Float[Tensor, "*b Lq"]:
    """M of each query, from all keys: ln L_k for an even row, more for any other."""
    s = Q @ K.mT / math.sqrt(Q.shape[-1])
    return s.logsumexp(-1) - s.mean(-1)


def many(c: int, L: int) -> int:
    """c ⌈ln L⌉, at least 1 and at most L: so many keys are drawn, or queries kept."""
    _arguments.integer("c", c, 1)
    return min(max(c * math.ceil(math.log(_arguments.integer("L", L, 1))), 1), L)


def samples(Lq: int, Lk: int, c: int = FACTOR, seed: int = 0) -> Int[Tensor, "Lq U"]:
    """The numbers of the keys that each query is compared with, drawn with replacement."""
    dice = torch.Generator().manual_seed(seed)
    return torch.randint(Lk, (_arguments.integer("Lq", Lq, 1), many(c, Lk)), generator=dice)


@torch.no_grad()
def max_mean(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    at: Int[Tensor, "Lq U"] | None = None,
    by_length: bool = False,
) -> Float[Tensor, "*b Lq"]:
    """M̄ of each query, from the keys `at`, or from all keys if there is no `at`.

    `by_length` divides the sum of sampled scores by the number of all keys.
    """
    Q, K = (x.double() / Q.shape[-1] ** 0.25 for x in (Q, K))
    if at is None:
        s = Q @ K.mT
        return s.amax(-1) - s.mean(-1)
    found = []
    for q, keys in zip(Q.split(AT_A_TIME, -2), at.to(K.device).split(AT_A_TIME), strict=True):
        s = (q.unsqueeze(-2) @ K[..., keys, :].mT).squeeze(-2)
        found.append(s.amax(-1) - s.sum(-1) / (K.shape[-2] if by_length else s.shape[-1]))
    return torch.cat(found, -1)


@named
def informer_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    kept: Int[Tensor, "*b u"],
    causal: bool = False,
    sums: bool = False,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output, and its weights: rows of a softmax for the queries `kept`, even ones elsewhere.

    `causal` leaves each row the keys up to its own; `sums` then gives these a weight of 1 each.
    """
    s = Q @ K.mT / math.sqrt(Q.shape[-1])
    even = torch.ones_like(s)
    if causal:
        even, s = even.tril(), s.masked_fill(even.tril() == 0, -math.inf)
    if not (causal and sums):
        even = even / even.sum(-1, keepdim=True)
    mine = torch.zeros_like(s[..., 0]).scatter(-1, kept, 1.0).bool()
    A = torch.where(mine.unsqueeze(-1), s.softmax(-1), even)
    return A @ V, A


@named
def informer_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    kept: Int[Tensor, "b h u"],
    causal: bool = False,
    sums: bool = False,
) -> Float[Tensor, "b h Lq dv"]:
    """The same in O(u Lk d): only the u queries `kept` are compared with all keys."""
    _qkv.check(Q, K, V, self_attention=causal, reads_values=True)
    kept = _arguments.numbers_of("kept", kept, Q.shape[2])
    if kept.shape[:-1] != Q.shape[:-2] or not 0 < kept.shape[-1] <= Q.shape[-2]:
        raise ValueError(
            f"kept has shape {tuple(kept.shape)}, Q {tuple(Q.shape)}; give the numbers of the "
            f"queries that attend, {tuple(Q.shape[:-2])} and from 1 to {Q.shape[-2]} of them"
        )
    Lk, dv, kind = K.shape[2], V.shape[-1], torch.promote_types(V.dtype, torch.float32)
    wide = kept.unsqueeze(-1)
    with _fused.full_precision(Q):
        q = Q.gather(2, wide.expand(*kept.shape, Q.shape[-1]))
        mask = wide >= torch.arange(Lk, device=Q.device) if causal else None
        top = _fused.attention(q.to(kind), K.to(kind), V.to(kind), mask)
        if causal:
            rest = V.to(kind).cumsum(2)
            if not sums:
                rest = rest / torch.arange(1, Lk + 1, device=Q.device).unsqueeze(-1)
        else:
            rest = V.to(kind).mean(2, keepdim=True).expand(*Q.shape[:3], dv)
        return rest.scatter(2, wide.expand(*kept.shape, dv), top).to(V.dtype)


class Informer(nn.Module):
    """ProbSparse attention as a core: `BERT(…, core=Informer)`.

    c       c ⌈ln L⌉ queries are kept, and rated by as many keys each
    seed    of the keys that are drawn: the same in each call for texts of one length

    It is not causal, and does not know padding, caches, or patterns other than full.
    """

    @named
    def __init__(self, c: int = FACTOR, seed: int = 0) -> None:
        super().__init__()
        self.c = _arguments.integer("c", c, 1)
        self.seed = _arguments.integer("seed", seed, 0)

    def kept(self, Q: Float[Tensor, "b h L d"], K: Float[Tensor, "b h L d"]) -> Tensor:
        """The numbers of the queries that attend, (b, h, u)."""
        at = samples(Q.shape[2], K.shape[2], self.c, self.seed)
        return max_mean(Q, K, at).topk(many(self.c, Q.shape[2]), -1).indices

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("Informer rates all queries of a text against each other", "ratings"):
            raise ValueError(
                "pattern = causal(): which queries attend depends on all queries and keys of a "
                "text, so answers depend on later tokens; give pattern = full(), in an encoder"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        _qkv.check(Q, K, V, self_attention=True, reads_values=True)
        kept = self.kept(Q, K)
        weights = informer_attention(Q, K, identity(V), kept) if where.need_weights else None
        return informer_attention(Q, K, V, kept), weights
