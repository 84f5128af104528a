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
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity
from tfviz.sub_quadratic.loud import NEVER, answer

__all__ = ["LSH", "directions", "lsh_attention", "lsh_definition"]

SELF = -1e5  # the score of a token with itself
CACHE = 1 << 17  # numbers that are worked on at a time
AT_ONCE = 1 << 21  # scores of a round: memory of which is used again and again
Directions = Sequence[Float[Tensor, "*h rounds d half"]]


@named
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
    if len({directions.shape[-3] for directions in R}) > 1:
        rounds = [directions.shape[-3] for directions in R]
        raise ValueError(f"R are for {rounds} rounds; draw them together: directions(d, [b₁, b₂])")
    for directions in R:
        if X.shape[-1] != directions.shape[-2]:
            raise ValueError(
                f"X has rows of {X.shape[-1]} numbers, R is for {directions.shape[-2]}; draw R by "
                f"directions({X.shape[-1]}, b)"
            )
        half = directions.shape[-1]
        every = directions.to(X).transpose(-3, -2).flatten(-2)  # all rounds in one product
        turned = (X.detach() @ every).unflatten(-1, (-1, half))  # (…, L, rounds, b/2)
        digit = turned.abs().argmax(-1, keepdim=True)
        digit += half * (turned.gather(-1, digit) < 0)  # the largest of [x R; −x R]
        found = found * 2 * half + digit.squeeze(-1).mT
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
    return Order(bucket, _places(by) // chunk, by)


def meetings(found: Order, causal: bool = False) -> Bool[Tensor, "*b rounds L L"]:
    """S_i of every token and round as a mask: the definition, in O(rounds · L²)."""
    apart = found.chunk.unsqueeze(-1) - found.chunk.unsqueeze(-2)
    meet = (found.bucket.unsqueeze(-1) == found.bucket.unsqueeze(-2)) & (apart >= 0) & (apart <= 1)
    return meet.tril() if causal else meet


@named
def lsh_definition(
    Q: Float[Tensor, "*b L d"], V: Float[Tensor, "*b L dv"], union: Bool[Tensor, "*b L L"]
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """Softmax over who meets in any round, and its weights."""
    L = Q.shape[-2]
    s = Q @ F.normalize(Q, dim=-1).mT / math.sqrt(Q.shape[-1])
    s = s.masked_fill(torch.eye(L, dtype=torch.bool, device=Q.device), SELF)
    A = s.masked_fill(~union, NEVER).softmax(-1)
    return A @ V, A


@named
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
    _qkv.check(Q, Q, V, self_attention=True, reads_values=True)
    found, (b, h, L, _) = order(Q, R, chunk), Q.shape
    heads = max(1, AT_ONCE // (2 * chunk * L))
    parts = (x.flatten(0, 1).split(heads) for x in (Q, F.normalize(Q, dim=-1), V, *found))
    made = [
        _few_heads(q, k, v, Order(*some), chunk, causal, ported)
        for q, k, v, *some in zip(*parts, strict=True)
    ]
    return torch.cat(made).unflatten(0, (b, h))


def _few_heads(
    Q: Float[Tensor, "n L d"],
    K: Float[Tensor, "n L d"],
    V: Float[Tensor, "n L dv"],
    found: Order,
    m: int,
    causal: bool,
    ported: bool,
) -> Float[Tensor, "n L dv"]:
    """Round after round, in chunks of m; then each token's answers, blended by loudness."""
    bucket, chunks, by = found
    n, rounds, L = by.shape
    size = torch.int16 if bucket.max() < 2**13 and L // m < 2**13 else torch.int32
    code = (2 * bucket + chunks).to(size)  # equal, or one more, for whom a token meets
    answers = []
    for r in range(rounds):
        i = by[:, r].unflatten(1, (-1, m))  # the tokens of each chunk
        j = torch.cat([by[:, r - 1, None, -m:], i], 1)  # and the chunk before the first
        bias = _ported(i, j, causal) if ported else _bias(code[:, : r + 1], i, j, causal)
        k, v = (_rows(X, j).flatten(1, 2).unfold(1, 2 * m, m).mT for X in (K, V))
        scale = 1.0 if ported else 1 / math.sqrt(Q.shape[-1])
        answers.append(answer(_rows(Q, i), k, v, bias.to(Q.dtype), scale))
    o, z = (torch.stack(x, 1).flatten(2, 3) for x in zip(*answers, strict=True))
    first = L * torch.arange(n * rounds, device=Q.device).view(n, rounds, 1)
    spot = _places(by).add_(first).mT.flatten(0, 1)  # where a token stands in each round
    share = z.flatten()[spot].softmax(-1).to(o.dtype)
    blend = _Blend.apply(o.flatten(0, 2), share, spot)
    return blend.unflatten(0, (n, L))


class _Blend(torch.autograd.Function):
    """Rows of o, at `spot`, weighted and summed, as torch sums bags; that has no second derivative,
    the same by indices has."""

    @staticmethod
    def forward(ctx: Any, o: Tensor, share: Tensor, spot: Tensor) -> Tensor:
        ctx.save_for_backward(o, share, spot)
        return F.embedding_bag(spot, o, mode="sum", per_sample_weights=share)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        o, share, spot = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients are to be differentiated in their turn

            def by_indices(o: Tensor, share: Tensor) -> Tensor:
                return (o[spot] * share.unsqueeze(-1)).sum(-2)

            return *_fused.again(by_indices, (o, share), ctx.needs_input_grad[:2], grad), None
        with torch.enable_grad():
            given = [x.detach().requires_grad_() for x in (o, share)]
            out = F.embedding_bag(spot, given[0], mode="sum", per_sample_weights=given[1])
        return *torch.autograd.grad(out, given, grad), None


def _places(by: Int[Tensor, "*b L"]) -> Int[Tensor, "*b L"]:
    """The place of each token in an order: the order's inverse."""
    counted = torch.arange(by.shape[-1], device=by.device).expand_as(by)
    return torch.empty_like(by).scatter_(-1, by, counted)


def _rows(
    X: Float[Tensor, "n L d"], at: Int[Tensor, "n groups m"]
) -> Float[Tensor, "n groups m d"]:
    """Rows of each head by their numbers, as one selection: much faster than `gather`."""
    first = X.shape[1] * torch.arange(len(X), device=X.device)[:, None, None]
    return X.flatten(0, 1).index_select(0, (at + first).flatten()).view(*at.shape, -1)


def _ported(
    i: Int[Tensor, "n groups m"], j: Int[Tensor, "n more m"], causal: bool
) -> Float[Tensor, "n groups m k"]:
    """What is added to the scores in Hugging Face's code."""
    i, j = i.unsqueeze(-1), torch.cat([j[:, :-1], j[:, 1:]], 2).unsqueeze(-2)
    bias = torch.zeros(torch.broadcast_shapes(i.shape, j.shape), device=i.device)
    bias.masked_fill_(i == j, SELF)
    return bias.masked_fill_(i < j, NEVER) if causal else bias


def _bias(
    code: Int[Tensor, "n r L"],
    i: Int[Tensor, "n groups m"],
    j: Int[Tensor, "n more m"],
    causal: bool,
) -> Float[Tensor, "n groups m k"]:
    """What is added to the scores of the last of these rounds: 0, SELF, or NEVER.

    In place of log N off the score in each of the N rounds in which two meet, the pair counts in
    the first of them alone: the sum is the same. Within a bucket the tokens stand in the order of
    the text, so places in the chunk say which of two is later. Some chunks at a time, so that
    what is compared stays in the processor's cache; bits, because comparing is slower.
    """
    n, groups, m = i.shape
    last = code.shape[1] - 1
    mine = [code[:, r].gather(1, i.flatten(1)).view_as(i)[..., None] for r in range(last + 1)]
    theirs = [code[:, r].gather(1, j.flatten(1)).view_as(j) for r in range(last + 1)]
    both = [torch.cat([x[:, :-1], x[:, 1:]], 2).unsqueeze(-2) for x in theirs]
    always = torch.eye(m, device=i.device).mul_(SELF)
    if causal:
        always += torch.full_like(always, NEVER).triu_(1)
    always = F.pad(always, (m, 0))
    pairs = list(zip(mine, both, strict=True))
    bias = torch.empty(n, groups, m, 2 * m, device=i.device)
    step = max(1, CACHE // (2 * n * m * m))
    for start in range(0, groups, step):
        some = slice(start, start + step)
        apart = [(a[:, some] - b[:, some]).bitwise_and_(-2).bool() for a, b in pairs]
        never = apart[last]
        for earlier in apart[:last]:
            never |= ~earlier
        bias[:, some].copy_(never.view(torch.uint8)).mul_(NEVER).add_(always)
    bias[:, 0, :, :m] = NEVER  # there is no chunk before the first
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

    @named
    def __init__(
        self, d_head: int, chunk: int, rounds: int = 1, b: int | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.d_head, self.chunk, self.rounds, self.b, self.seed = d_head, chunk, rounds, b, seed

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        causal = where.whole_text("LSH attention chooses the pairs itself", "sorted chunks")
        b = self.b or even_factors(2 * max(1, Q.shape[2] // self.chunk))
        R = directions(self.d_head, b, self.rounds, self.seed)
        V = V.repeat_interleave(Q.shape[1] // V.shape[1], 1)
        attend = partial(lsh_attention, Q, R=R, chunk=self.chunk, causal=causal)
        return attend(V), attend(identity(V)) if where.need_weights else None
