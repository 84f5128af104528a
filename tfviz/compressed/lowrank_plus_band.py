"""Low rank plus band: narrow queries and keys for what is far, full ones for what is near.

Guo, Qiu, Xue, Zhang 2019 (IEEE/ACM TASLP 27(12), DOI 10.1109/TASLP.2019.2944078) add a low-rank
attention and a band attention. No code of theirs is known to us, and we have read only their
abstract: how the two parts are put together here is our reconstruction. With queries and keys of r
numbers made from those of d numbers, and a share g between 0 and 1 for each head,

    A = g softmax(Q W_q (K W_k)ᵀ/√r) + (1 − g) softmax over |i − j| ≤ w (Q Kᵀ/√d)

The scores of the first part have rank r at most; its softmax need not. g = 0 with w ≥ L − 1 is full
attention, and so is g = 1 with r = d and W_q = W_k = I. Far and near parts read what the pattern
allows, so under a causal one it is causal. Where the pattern allows a query no key within the band,
its near part is zero and its weights sum to g. The cost is L² r + L w d.

>>> import torch
>>> X, W = torch.zeros(3, 1), torch.ones(1, 1)
>>> lowrank_band_definition(X, X, X, W, W, torch.tensor(0.6), 0)[1]
tensor([[0.6000, 0.2000, 0.2000],
        [0.2000, 0.6000, 0.2000],
        [0.2000, 0.2000, 0.6000]])
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.cores import Dense, Sparse, Where
from tfviz.dense_attention import attention

__all__ = ["LowRankPlusBand", "low_rank_and_band", "lowrank_band_definition"]

_far, _near = Dense(), Sparse()


@named
def lowrank_band_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    W_q: Float[Tensor, "*#b d r"],
    W_k: Float[Tensor, "*#b d r"],
    g: Float[Tensor, "*#b"],
    w: int,
    mask: Bool[Tensor, "*#b L L"] | None = None,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output and the weights, from two maps of L × L weights."""
    i = torch.arange(Q.shape[-2], device=Q.device)
    band = (i[:, None] - i).abs() <= w
    far = attention(Q @ W_q, K @ W_k, V, mask)[1]
    near = attention(Q, K, V, band if mask is None else band & mask)[1]
    g = g[..., None, None]
    A = g * far + (1 - g) * near
    return A @ V, A


@named
def low_rank_and_band(
    A: Float[Tensor, "*b L L"], r: int, w: int, rounds: int = 50
) -> tuple[Float[Tensor, "*b L L"], Float[Tensor, "*b L L"]]:
    """(R, B): a matrix of rank r at most and one that is zero where |i − j| > w, near A in sum.

    Whatever R is, the best B is A − R within the band, so only what lies outside of it is missed.
    Each round fills the band with what R says there, and takes the best matrix of rank r by an SVD:
    the error never grows. w = -1 is no band, r = 0 no R.

    >>> low_rank_and_band(torch.eye(2), 0, 0)[1].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if _arguments.tensor("A", A, "(…, L, L)").dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"A has shape {tuple(A.shape)}; give square matrices, (…, L, L)")
    _arguments.finite("A", A)
    _arguments.integer("r", r, 0, A.shape[-1])
    _arguments.integer("w", w, -1)
    _arguments.integer("rounds", rounds, 1)
    i = torch.arange(A.shape[-1], device=A.device)
    band = (i[:, None] - i).abs() <= w
    # the first guess for the band: each row's mean outside of it
    outside = A.masked_fill(band, 0)
    mean = outside.sum(-1, keepdim=True) / (~band).sum(-1, keepdim=True).clamp(min=1)
    R = mean.expand_as(A)
    for _ in range(rounds):
        U, S, V = torch.linalg.svd(torch.where(band, R, A))
        R = (U[..., :r] * S[..., None, :r]) @ V[..., :r, :]
    return R, (A - R).masked_fill(~band, 0)


class LowRankPlusBand(nn.Module):
    """Both parts as a core: `GPT(…, core=partial(LowRankPlusBand, r=4, w=8))`.

    r     numbers of a query and of a key in the far part, at most d_head
    w     how far the near part reaches to either side; 0 is the token itself

    Each head learns W_q, W_k (d_head, r) and its share g = σ(gate), ½ at first. The near part costs
    L w d_head (`sparse_attention`), the far part L² r without storing its weights. It is attention
    of a text to itself: distances to another sequence mean nothing.
    """

    @named
    def __init__(self, d_head: int, h: int, r: int = 4, w: int = 8) -> None:
        super().__init__()
        _arguments.integer("r", r, 1, d_head)
        self.w = _arguments.integer("w", w, 0)
        self.W_q, self.W_k = (
            nn.Parameter(torch.randn(h, d_head, r) / d_head**0.5) for _ in range(2)
        )
        self.gate = nn.Parameter(torch.zeros(h))

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.crosses:
            raise ValueError(
                "the keys are another sequence's: a band needs distances within one text; give "
                "cross-attention another core"
            )
        if Q.shape[1] != len(self.gate):
            raise ValueError(f"Q has {Q.shape[1]} heads, the core {len(self.gate)}; make it anew")
        K, V = where.joined(K, V)
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        within = replace(where, pattern=where.pattern & patterns.band(radius=self.w))
        g = self.gate.sigmoid()[:, None, None].to(V.dtype)
        narrow_Q, narrow_K = (
            (X @ W.to(X.dtype)).to(V.dtype) for X, W in ((Q, self.W_q), (K, self.W_k))
        )
        far, A_far = _far.attend(narrow_Q, narrow_K, V, where)
        near, A_near = _near.attend(Q, K, V, within)
        out = g * far + (1 - g) * near
        if A_far is None or A_near is None:
            return out, None
        return out, g * A_far + (1 - g) * A_near
