"""Performer, FAVOR+: random features that are positive and orthogonal estimate the softmax.

Choromanski and others 2020 (arXiv 2009.14794), section 2. Queries and keys are divided by d^(1/4),
so that q kᵀ is the score of the softmax. With m random directions w_r, Gaussian with variance 1 in
each number,

    φ(x) = m^(−½) e^(−|x|²/2) [exp(w_1 xᵀ), …, exp(w_m xᵀ)]
    E[φ(x) φ(y)ᵀ] = exp(x yᵀ)
    a_ij = φ(q_i) φ(k_j)ᵀ / Σ_{r ∈ S_i} φ(q_i) φ(k_r)ᵀ              for j in S_i, else 0

All features are positive, so the weights are positive and rows sum to one. The estimate has no
variance where y = −x and the most where y = x: Var = (e^(|x + y|²) − 1) e^(2 x yᵀ)/m for directions
that are drawn one by one. Directions that are at right angles in blocks of d have less, and lengths
that are drawn from χ_d keep the mean right. The hyperbolic features exp(±w_r xᵀ) use each of m/2
directions twice.

What a row of queries has in common cancels, so the largest exponent of a query is subtracted. The
authors' code also subtracts the largest exponent of all keys, those of the future too, and adds
1e-6 to every feature; here nothing is added. Features of a key are e^(|w|²/2) at the most. Where
all products of a row round to 0, as they do without a key, the answer is 0.

>>> import torch
>>> W = directions(2048, 4, rng=torch.Generator().manual_seed(0))
>>> x, y = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
>>> round(float(softmax_features(x, W) @ softmax_features(y, W)), 1)  # e^0 = 1
1.0
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.compressed.linear_transformer import KernelAttention
from tfviz.compressed.rfa import directions

__all__ = ["Performer", "performer_attention", "performer_definition", "softmax_features"]


@named
def softmax_features(
    x: Float[Tensor, "*b d"], W: Float[Tensor, "m d"], hyperbolic: bool = False
) -> Float[Tensor, "*b f"]:
    """The m positive features whose products estimate exp(x yᵀ); 2 m if `hyperbolic`. Their mean
    over m directions is a sum, so each is divided by √m, within its exponent."""
    u = x @ W.mT
    if hyperbolic:
        u = torch.cat([u, -u], -1)
    u -= (x.pow(2).sum(-1, keepdim=True) + math.log(u.shape[-1])) / 2
    return u.exp_()


@named
def performer_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    W: Float[Tensor, "m d"],
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
    hyperbolic: bool = False,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output, and the weights that make it of V, from all pairs."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    scale = Q.shape[-1] ** -0.25
    phi_q, phi_k = (softmax_features(x.to(kind) * scale, W.to(kind), hyperbolic) for x in (Q, K))
    products = phi_q @ phi_k.mT
    if mask is not None:
        products = products.masked_fill(~mask, 0.0)
    total = products.sum(-1, keepdim=True)
    A = (products / total.masked_fill(total == 0, 1.0)).to(V.dtype)
    return (A.to(kind) @ V.to(kind)).to(V.dtype), A


@named
def performer_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    W: Float[Tensor, "m d"],
    causal: bool = False,
    hyperbolic: bool = False,
) -> Float[Tensor, "b h Lq dv"]:
    """The same in O(L m d_v): keys and values are multiplied first."""
    return _Favor(_arguments.finite("W", _arguments.tensor("W", W, "(m, d)")), hyperbolic).attend(
        Q, K, V, causal
    )[0]


class _Favor(KernelAttention):
    """Performer's attention along given directions."""

    W: Tensor

    def __init__(self, W: Float[Tensor, "m d"], hyperbolic: bool) -> None:
        super().__init__()
        if _arguments.tensor("W", W, "(m, d)").dim() != 2:
            raise ValueError(
                f"W has shape {tuple(W.shape)}; give the directions of all heads, (m, d)"
            )
        self.hyperbolic = hyperbolic
        self.register_buffer("W", W)

    def of_queries(self, Q: Tensor) -> Tensor:
        """Each query's features, divided by the largest of them."""
        u = self._scaled(Q) @ self.W.to(Q).mT
        if self.hyperbolic:
            u = torch.cat([u, -u], -1)
        u -= u.detach().amax(-1, keepdim=True)
        return u.exp_()

    def of_keys(self, K: Tensor) -> Tensor:
        return softmax_features(self._scaled(K), self.W.to(K), self.hyperbolic)

    def _scaled(self, X: Tensor) -> Tensor:
        m, d = self.W.shape
        if d != X.shape[-1]:
            raise ValueError(
                f"the directions W have shape {(m, d)}, for heads of {d} numbers; there are heads "
                f"of {X.shape[-1]}: make W for those"
            )
        return X * d**-0.25


class Performer(_Favor):
    """Performer's attention as a core: `GPT(…, core=Performer)`.

    m            directions, the same for all heads; drawn by torch's random numbers
    orthogonal   directions in orthogonal blocks of d_head
    hyperbolic   two features of each direction, exp(w x) and exp(−w x)

    `redraw()` draws new directions, `rfa.redrawing` does so in training; what a cache keeps belongs
    to those that it was written with.
    """

    @named
    def __init__(
        self, d_head: int, m: int = 256, orthogonal: bool = True, hyperbolic: bool = False
    ) -> None:
        for name, count in (("d_head", d_head), ("m", m)):
            _arguments.integer(name, count, 1)
        super().__init__(torch.empty(m, d_head), hyperbolic)
        self.orthogonal = orthogonal
        self.redraw()

    def redraw(self, rng: Generator | None = None) -> None:
        m, d = self.W.shape
        self.W.copy_(directions(m, d, self.orthogonal, rng))
