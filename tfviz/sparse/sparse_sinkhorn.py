"""Sinkhorn attention: move the block that is needed next to one's own, by a soft sort.

Tay, Bahri, Yang, Metzler, Juan 2020 (arXiv 2002.11296). The text is cut into n blocks. Every block
of queries scores every block of keys, R (n, n); Sinkhorn's steps make of it nearly a permutation:

    P = exp(R/τ),   then rows ÷ their sums, columns ÷ their sums, rows ÷ their sums, …

    K̃_u = Σ_v P_uv K_v,   Ṽ_u = Σ_v P_uv V_v                      whole blocks, mixed
    O_u = softmax(Q_u [K̃_u; K_u]ᵀ/√d) [Ṽ_u; V_u]                  the block moved in, and one's own

P stays soft, so R gets a gradient. Causal, block u may only get earlier ones, and no doubly
stochastic matrix does that. Here, as in sinkhorn-transformer, there is one step, over the rows, and
the first block gets nothing; the paper (causal Sinkhorn balancing) keeps a few masked steps over
rows and columns, whose sums need not become one. Its first author's code (long-range-arena) also
adds the answers of two softmaxes, of the block moved in and of one's own; ours is one over both.

How R is made is our reconstruction: the product of the mean query of a block with the mean key of
another, and causal with the *first* query, for the block's other queries stand behind some of its
tokens. The paper makes R from the block's sum by a small network.

>>> import torch
>>> sinkhorn(torch.tensor([[3.0, 1.0], [3.0, 0.0]]), steps=41).round(decimals=2)
tensor([[0.3800, 0.6200],
        [0.6200, 0.3800]])
"""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["Sinkhorn", "sinkhorn", "sinkhorn_attention", "sinkhorn_definition"]


@named
def sinkhorn(R: Float[Tensor, "*b n n"], steps: int, tau: float = 1.0) -> Float[Tensor, "*b n n"]:
    """exp(R/τ) after so many normalisations: of rows, of columns, of rows, … In logarithms."""
    _arguments.integer("steps", steps, 0)
    if R.dim() < 2 or R.shape[-2] != R.shape[-1]:
        raise ValueError(f"R has shape {tuple(R.shape)}; give (…, n, n), n blocks for n blocks")
    if not _arguments.real("tau", tau, 0) > 0:
        raise ValueError(f"tau = {tau}; a temperature is above 0")
    log = R / tau
    for step in range(steps):
        log = log - log.logsumexp(-1 - step % 2, keepdim=True)
    return log.exp()


def cut(X: Float[Tensor, "*b L d"], n: int) -> Float[Tensor, "*b n m d"]:
    """n blocks. Raises ValueError unless n divides L."""
    L = X.shape[-2]
    if L % _arguments.integer("n", n, 1, L):
        raise ValueError(f"n = {n} does not divide L = {L}; pad the text, or choose a divisor")
    return X.unflatten(-2, (n, L // n))


def block_scores(
    Q: Float[Tensor, "*b L d"], K: Float[Tensor, "*b L d"], n: int, causal: bool = False
) -> Float[Tensor, "*b n n"]:
    """R: which block of keys each block of queries wants; causal, −∞ where it is not earlier."""
    if Q.dtype in (torch.float16, torch.bfloat16):  # products of large numbers overflow
        Q, K = Q.float(), K.float()
    asks = cut(Q, n)[..., 0, :] if causal else cut(Q, n).mean(-2)
    R = asks @ cut(K, n).mean(-2).mT / math.sqrt(Q.shape[-1])
    if not causal:
        return R
    return R.masked_fill(torch.ones(n, n, dtype=torch.bool, device=R.device).triu(), -math.inf)


def sorting(R: Float[Tensor, "*b n n"], steps: int, tau: float = 1.0) -> Float[Tensor, "*b n n"]:
    """P of these scores; a block that may get nothing has a row of zeros."""
    some = R.isfinite().any(-1, keepdim=True)
    if some.all():
        return sinkhorn(R, steps, tau)
    return sinkhorn(R.masked_fill(~some, 0.0), 1, tau) * some


def _allowed(P: Tensor, m: int, causal: bool) -> Tensor:
    """(…, n, m, 2m): of the block moved in, and of one's own."""
    own = torch.ones(m, m, dtype=torch.bool, device=P.device)
    own = (own.tril() if causal else own).expand(*P.shape[:-1], m, m)
    moved_in = (P.detach().sum(-1) > 0)[..., None, None].expand_as(own)
    return torch.cat([moved_in, own], -1)


@named
def sinkhorn_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    P: Float[Tensor, "*b n n"],
    causal: bool = False,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """Out and the weights on the tokens themselves, by (L, L) matrices."""
    L, n = Q.shape[-2], P.shape[-1]
    m = cut(Q, n).shape[-2]
    one = torch.eye(m, dtype=P.dtype, device=P.device)
    moves = torch.einsum("...uv,xy->...uxvy", P, one).flatten(-2).flatten(-3, -2)  # (…, L, L)
    s = torch.cat([Q @ (moves @ K).mT, Q @ K.mT], -1) / math.sqrt(Q.shape[-1])
    place = torch.arange(L, device=Q.device)
    same = place[:, None] // m == place // m
    some = (P.detach().sum(-1) > 0).repeat_interleave(m, -1).unsqueeze(-1)
    allowed = torch.cat([same & some, (same.tril() if causal else same).expand_as(same & some)], -1)
    A = s.masked_fill(~allowed, -math.inf).softmax(-1)
    A = A[..., :L] @ moves + A[..., L:]
    return A @ V, A


@named
def sinkhorn_attention(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    P: Float[Tensor, "*b n n"],
    causal: bool = False,
) -> Float[Tensor, "*b L dv"]:
    """The same block by block, in O(L²d/n) for the attention and O(n L d) for the soft sort."""
    _qkv.check(Q, K, V, self_attention=True, reads_values=True)
    n = P.shape[-1]
    q, k, v = (cut(X, n) for X in (Q, K, V))

    def both(X: Tensor) -> Tensor:
        return torch.cat([torch.einsum("...uv,...vmd->...umd", P.to(X), X), X], -2)

    mask = _allowed(P, q.shape[-2], causal).reshape(-1, n, q.shape[-2], 2 * q.shape[-2])
    q, k, v = (X.reshape(-1, *X.shape[-3:]) for X in (q, both(k), both(v)))
    return _fused.attention(q, k, v, mask).to(V.dtype).reshape(*Q.shape[:-1], -1)


class Sinkhorn(nn.Module):
    """Sinkhorn attention as a core.

    m   tokens of a block;  steps   normalisations, odd, so that rows sum to one;  tau   temperature

    It does not know padding, caches, or patterns other than full and causal.
    """

    @named
    def __init__(self, m: int, steps: int = 9, tau: float = 0.75) -> None:
        super().__init__()
        if not _arguments.integer("steps", steps, 1) % 2:
            raise ValueError(f"steps = {steps} ends with columns; make it odd, rows must sum to 1")
        self.m, self.steps, self.tau = _arguments.integer("m", m, 1), steps, tau

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        causal = where.whole_text("Sinkhorn attention chooses the pairs itself", "sorted blocks")
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        _qkv.check(Q, K, V, self_attention=True, reads_values=True)
        L = Q.shape[2]
        if self.m < L and L % self.m:
            raise ValueError(
                f"m = {self.m} does not divide L = {L}; pad the text, or choose a divisor"
            )
        n = max(1, L // self.m)  # a shorter text is one block
        P = sorting(block_scores(Q, K, n, causal), self.steps, self.tau)
        attend = partial(sinkhorn_attention, Q, K, P=P, causal=causal)
        return attend(V), attend(identity(V)) if where.need_weights else None
