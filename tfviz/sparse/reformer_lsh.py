"""LSH attention: vectors that point the same way fall into one bucket, and only those meet.

Kitaev, Kaiser, Levskaya 2020 (arXiv 2001.04451, Reformer). Queries are keys too, k_j = q_j/|q_j|.
A round draws directions R (d, b/2) and hashes

    h(x) = argmax [x R; −x R]                                        one of b buckets

The tokens are sorted by bucket, then by place, and cut into chunks of m; a token meets those of its
bucket in its chunk and in the one before, S_i. With several rounds a pair may meet N_ij times, and

    z_i^(r) = log Σ_{j in S_i^(r)} exp(s_ij − log N_ij),   o_i = Σ_r exp(z_i^(r) − z_i) o_i^(r)

is the softmax over the union of the S_i^(r). A token meets itself only where it would meet nobody:
s_ii = −1e5.

>>> import torch
>>> R = (torch.tensor([[[1.0], [0.0]]]),)  # one round, one direction: b = 2
>>> buckets(torch.tensor([[3.0, 1.0], [-2.0, 5.0], [0.1, -4.0]]), R)
tensor([[0, 1, 0]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz.cores import Where
from tfviz.sparse_attention.loud import NEVER, answer

SELF = -1e5  # the score of a token with itself
CACHE = 1 << 17  # numbers that are worked on at a time
Directions = Sequence[Float[Tensor, "*h rounds d half"]]


def directions(
    d: int, b: int | Sequence[int], rounds: int = 1, seed: int = 0
) -> tuple[Float[Tensor, "rounds d half"], ...]:
    """R of each round, Gaussian: one for b buckets, or several whose numbers of buckets multiply.

    Raises ValueError if a number of buckets is odd.
    """
    _arguments.integer("d", d, 1)
    _arguments.integer("rounds", rounds, 1)
    dice = torch.Generator().manual_seed(seed)
    made = []
    for count in [b] if isinstance(b, int) else b:
        if _arguments.integer("b", count, 2) % 2:
            raise ValueError(f"b = {count} is odd; buckets come in pairs, R and −R: make it even")
        made.append(torch.randn(rounds, d, count // 2, generator=dice))
    return tuple(made)


def buckets(X: Float[Tensor, "*b L d"], R: Directions) -> Int[Tensor, "*b rounds L"]:
    """h(x) of every row in every round; lengths do not matter, only directions do. R may differ
    from head to head. Of several R each gives a digit of the bucket's number."""
    found: Any = 0
    for directions in R:
        if X.shape[-1] != directions.shape[-2]:
            raise ValueError(
                f"X has rows of {X.shape[-1]} numbers, R is for {directions.shape[-2]}"
            )
        turned = X.detach().unsqueeze(-3) @ directions.to(X)  # (…, rounds, L, b/2)
        digit = torch.cat([turned, -turned], -1).argmax(-1)
        found = found * 2 * directions.shape[-1] + digit
    return found


class Order(NamedTuple):
    """Who stands where after sorting."""

    bucket: Int[Tensor, "*b rounds L"]  # of each token
    chunk: Int[Tensor, "*b rounds L"]  # of each token
    by: Int[Tensor, "*b rounds L"]  # the tokens in their sorted order


def order(X: Float[Tensor, "*b L d"], R: Directions, chunk: int) -> Order:
    """Buckets and chunks of the rows of X. Raises ValueError unless `chunk` divides L."""
    L = X.shape[-2]
    _arguments.integer("chunk", chunk, 1, L)
    if L % chunk:
        raise ValueError(f"chunk = {chunk} does not divide L = {L}; pad the text, or choose one")
    bucket = buckets(X, R)
    by = bucket.argsort(dim=-1, stable=True)  # equal buckets stay in the order of the text
    place = torch.empty_like(by).scatter_(-1, by, torch.arange(L, device=by.device).expand_as(by))
    return Order(bucket, place // chunk, by)


def meetings(found: Order, causal: bool = False) -> Bool[Tensor, "*b rounds L L"]:
    """S_i of every token and round as a mask: the definition, in O(rounds · L²)."""
    apart = found.chunk.unsqueeze(-1) - found.chunk.unsqueeze(-2)
    meet = (found.bucket.unsqueeze(-1) == found.bucket.unsqueeze(-2)) & (apart >= 0) & (apart <= 1)
    return meet.tril() if causal else meet


def lsh_definition(
    Q: Float[Tensor, "*b L d"], V: Float[Tensor, "*b L dv"], union: Bool[Tensor, "*b L L"]
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """Softmax over who meets in any round, and its weights."""
    L = Q.shape[-2]
    s = Q @ F.normalize(Q, dim=-1).mT / math.sqrt(Q.shape[-1])
    s = s.masked_fill(torch.eye(L, dtype=torch.bool, device=Q.device), SELF)
    A = s.masked_fill(~union, NEVER).softmax(-1)
    return A @ V, A


def lsh_attention(
    Q: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    R: Directions,
    chunk: int,
    causal: bool = False,
    ported: bool = False,
) -> Float[Tensor, "b h L dv"]:
    """The same by sorting and chunks, in O(rounds · L · chunk · d).

    `ported` does what Hugging Face's code does instead: all of two chunks meet whatever their
    buckets, the first chunk reads the last one, pairs count as often as they meet, and scores are
    not divided by √d. That is no softmax over a union.
    """
    found, rounds = order(Q, R, chunk), R[0].shape[-3]
    b, h, L, d = Q.shape
    n = rounds * L // chunk
    i = found.by.reshape(b, h, n, chunk)  # the tokens of each chunk, round after round
    j = torch.cat([i.roll(1, 2), i], 3)  # whom they read: the chunk before, and their own
    bias = _ported(i, j, causal) if ported else _bias(found, i, j, causal)
    q, k, v = _rows(Q, i), _two(_rows(F.normalize(Q, dim=-1), i)), _two(_rows(V, i))
    q, k, v, bias = (x.flatten(0, 1) for x in (q, k, v, bias.to(Q.dtype)))
    o, z = answer(q, k, v, bias, 1.0 if ported else 1 / math.sqrt(d))
    o, z = o.unflatten(0, (b, h)), z.unflatten(0, (b, h))
    spot = torch.empty_like(found.by)  # where each token stands in each round
    spot.scatter_(-1, found.by, torch.arange(L, device=Q.device).expand_as(spot))
    spot += L * torch.arange(rounds, device=Q.device)[:, None]
    z, o = (_rows(x.flatten(2, 3), spot) for x in (z.unsqueeze(-1), o))
    return (z.softmax(2) * o).sum(2)


def _rows(X: Float[Tensor, "b h L d"], at: Int[Tensor, "b h *m"]) -> Float[Tensor, "b h *m d"]:
    """Rows of each head by their numbers, as one selection: much faster than `gather`."""
    b, h, L, d = X.shape
    first = torch.arange(b * h, device=X.device).view(b, h, *[1] * (at.ndim - 2)) * L
    return X.reshape(-1, d).index_select(0, (at + first).flatten()).view(*at.shape, d)


def _two(X: Float[Tensor, "b h n m d"]) -> Float[Tensor, "b h n k d"]:
    """Each chunk behind the one before it, the first behind the last: windows, not copies."""
    m = X.shape[3]
    return torch.cat([X[:, :, -1:], X], 2).flatten(2, 3).unfold(2, 2 * m, m).mT


def _ported(
    i: Int[Tensor, "b h n m"], j: Int[Tensor, "b h n k"], causal: bool
) -> Float[Tensor, "b h n m k"]:
    """What is added to the scores in Hugging Face's code."""
    i, j = i.unsqueeze(-1), j.unsqueeze(-2)
    bias = torch.zeros(torch.broadcast_shapes(i.shape, j.shape), device=i.device)
    bias.masked_fill_(i == j, SELF)
    return bias.masked_fill_(i < j, NEVER) if causal else bias


def _bias(
    found: Order, i: Int[Tensor, "b h n m"], j: Int[Tensor, "b h n k"], causal: bool
) -> Float[Tensor, "b h n m k"]:
    """What is added to the scores: −log N of a pair that meets in N rounds, SELF, or NEVER.

    Some chunks at a time, so that what is counted stays in the processor's cache.
    """
    (b, h, n, m), (rounds, L) = i.shape, found.by.shape[-2:]
    # bucket and chunk in one number: it is equal, or one less, for whom a token meets
    code = (found.bucket * (L // m + 2) + found.chunk).to(torch.int32)
    at, i, j = i.flatten(2), i.to(torch.int32), j.to(torch.int32)
    mine = [code[:, :, r].gather(2, at).view_as(i) for r in range(rounds)]
    both = [torch.cat([x.roll(1, 2), x], 3).unsqueeze(-2) for x in mine]
    bias = torch.empty(b, h, n, m, 2 * m, device=i.device)
    step = max(1, CACHE // (2 * b * h * m * m))
    for r in range(rounds):
        for start in range(0, L // m, step):
            some = slice(r * L // m + start, r * L // m + min(start + step, L // m))
            apart = [mine[k][:, :, some].unsqueeze(-1) - both[k][:, :, some] for k in range(rounds)]
            for one in apart:  # 0 where two meet, else ±1: arithmetic is faster than comparing
                one.bitwise_right_shift_(1).clamp_(-1, 1).abs_()
            times: Any = rounds - sum(apart)
            allowed = apart[r] == 0
            if start == 0:
                allowed[:, :, 0, :, :m] = False  # what the roll brought
            ours, theirs = i[:, :, some].unsqueeze(-1), j[:, :, some].unsqueeze(-2)
            if causal:
                allowed &= ours >= theirs
            here = bias[:, :, some].copy_(times).clamp_(min=1).log_().neg_()
            here.masked_fill_(ours == theirs, SELF).masked_fill_(~allowed, NEVER)
    return bias


def even_factors(b: int) -> tuple[int, ...]:
    """About b buckets as one number up to 64, else as two even ones: hashing into b costs L·b·d/2,
    which is quadratic where b grows with L."""
    if _arguments.integer("b", b, 2) <= 64:
        return (b + b % 2,)
    first = 2 * round(math.sqrt(b) / 2)
    return first, 2 * math.ceil(b / first / 2)


def collision(theta: float) -> float:
    """The chance that two vectors at angle θ (radians) share one of b = 2 buckets: 1 − θ/π."""
    if not 0 <= theta <= math.pi:
        raise ValueError(f"theta = {theta} is no angle between vectors; give 0 to π")
    return 1 - theta / math.pi


class LSH(nn.Module):
    """LSH attention as a core: it takes Q and V, and lets the keys be.

    b        buckets, about 2 L/chunk if None;  rounds   hashings of each call, drawn once

    It does not know padding, caches, or patterns other than full and causal.
    """

    def __init__(
        self, d_head: int, chunk: int, rounds: int = 1, b: int | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.d_head, self.chunk, self.rounds, self.b, self.seed = d_head, chunk, rounds, b, seed

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, None]:
        causal = where.whole_text("LSH attention chooses the pairs itself", "sorted chunks")
        b = self.b or even_factors(2 * max(1, Q.shape[2] // self.chunk))
        R = directions(self.d_head, b, self.rounds, self.seed)
        V = V.repeat_interleave(Q.shape[1] // V.shape[1], 1)
        return lsh_attention(Q, V, R, self.chunk, causal=causal), None
