"""Random feature attention: sines and cosines along random directions estimate the softmax.

Peng, Pappas, Yogatama, Schwartz, Smith, Kong 2021 (arXiv 2103.02143), after Rahimi, Recht 2007.
With D random directions w_r, Gaussian with variance 1 in each number,

    φ(x) = D^(−½) [sin w_1 xᵀ, …, sin w_D xᵀ, cos w_1 xᵀ, …, cos w_D xᵀ]
    E[φ(x) φ(y)ᵀ] = exp(−|x − y|²/2),    φ(x) φ(x)ᵀ = 1

Of vectors of length 1 this is e^(−1) exp(x yᵀ), and the factor cancels when a row is divided by
its sum. So queries and keys are brought to length 1, and

    a_ij = φ(q_i) φ(k_j)ᵀ / max(Σ_{r ∈ S_i} φ(q_i) φ(k_r)ᵀ, least)      q_i, k_j of length 1

estimates the softmax of q_i k_jᵀ. A temperature τ and learned factors σ, for each head and each
number, go into the directions: σ w_r/τ in place of w_r gives exp(−|σ (x − y)|²/2τ²). σ is no width
but the inverse of one.

A product of features may be negative, though the kernel that it estimates never is. Then a sum may
be near 0, or negative, so it is taken as `least` at the least. Vectors of length 1 have kernels of
e^(−2) = 0.135 or more (with σ = τ = 1), so with `least` = 0.1 no true sum is ever raised.

>>> import torch
>>> W = directions(512, 4, rng=torch.Generator().manual_seed(0))
>>> x, y = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0]])
>>> round(float(fourier_features(x, W) @ fourier_features(y, W)), 2)  # e^(−|x − y|²/2) = 0.67
0.67
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.compressed.linear_transformer import KernelAttention
from tfviz.training import Loss

__all__ = ["RFA", "directions", "fourier_features", "rfa_attention", "rfa_definition"]

LEAST = 0.1  # below every true sum of kernels of vectors of length 1


@named
def directions(
    m: int, d: int, orthogonal: bool = True, rng: Generator | None = None
) -> Float[Tensor, "m d"]:
    """m random directions, each distributed as d independent Gaussian numbers.

    With `orthogonal`, d directions at a time are at right angles to each other, and so are those
    left over. Each block is a random rotation; lengths are drawn for themselves, from χ_d.
    """
    _arguments.integer("m", m, 1)
    _arguments.integer("d", d, 1)
    if not orthogonal:
        return torch.randn(m, d, generator=rng)
    blocks = -(-m // d)
    R = torch.linalg.qr(torch.randn(blocks, d, d, generator=rng, dtype=torch.float64))
    # a QR decomposition fixes the signs of Q in its own way: without R's, it is no random rotation
    turned = R.Q * R.R.diagonal(dim1=1, dim2=2).sign()[:, None]
    lengths = torch.randn(m, d, generator=rng, dtype=torch.float64).norm(dim=1, keepdim=True)
    return (lengths * turned.mT.flatten(0, 1)[:m]).to(torch.get_default_dtype())


@named
def fourier_features(
    x: Float[Tensor, "*b d"], W: Float[Tensor, "*#h m d"]
) -> Float[Tensor, "*b f"]:
    """The 2 m features whose products estimate exp(−|x − y|²/2)."""
    u = x @ W.mT
    return torch.cat([u.sin(), u.cos()], -1) * W.shape[-2] ** -0.5


@named
def rfa_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    W: Float[Tensor, "*#h m d"],
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
    least: float = LEAST,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output, and the weights that make it of V, from all pairs."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    phi_q, phi_k = (fourier_features(F.normalize(x.to(kind), dim=-1), W.to(kind)) for x in (Q, K))
    products = phi_q @ phi_k.mT
    if mask is not None:
        products = products.masked_fill(~mask, 0.0)
    A = products / products.sum(-1, keepdim=True).clamp(min=least)
    return (A @ V.to(kind)).to(V.dtype), A.to(V.dtype)


@named
def rfa_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    W: Float[Tensor, "*#h m d"],
    causal: bool = False,
    least: float = LEAST,
) -> Float[Tensor, "b h Lq dv"]:
    """The same in O(L m d_v): keys and values are multiplied first."""
    return _Fourier(
        _arguments.finite("W", _arguments.tensor("W", W, "(m, d) or (h, m, d)")), least
    ).attend(Q, K, V, causal)[0]


class _Fourier(KernelAttention):
    """Random feature attention along given directions."""

    W: Tensor

    def __init__(self, W: Float[Tensor, "*#h m d"], least: float) -> None:
        super().__init__()
        self.least = _arguments.real("least", least, 1e-6, 1.0)
        if _arguments.tensor("W", W, "(m, d) or (h, m, d)").dim() not in (2, 3):
            raise ValueError(f"W has shape {tuple(W.shape)}; give directions, (m, d) or (h, m, d)")
        self.register_buffer("W", W)

    def directions(self, X: Tensor) -> Float[Tensor, "*#h m d"]:
        W = self.W.to(X)
        if W.shape[-1] != X.shape[-1] or (W.dim() == 3 and len(W) not in (1, X.shape[1])):
            raise ValueError(
                f"the directions W have shape {tuple(W.shape)}, for heads of {W.shape[-1]} numbers;"
                f" there are {X.shape[1]} heads of {X.shape[-1]}: make W for those"
            )
        return W

    def of_queries(self, Q: Tensor) -> Tensor:
        return fourier_features(F.normalize(Q, dim=-1), self.directions(Q))

    def divided(self, x: Tensor, total: Tensor) -> Tensor:
        return x / total.clamp(min=self.least)


class RFA(_Fourier):
    """Random feature attention as a core: `GPT(…, core=RFA)`.

    D            directions of a head, which make 2 D features; drawn by torch's random numbers
    tau          temperature of the softmax that is estimated
    orthogonal   directions in orthogonal blocks of d_head
    least        a sum of weights is taken as this at the least

    σ is learned, (h, 1, d_head), and begins at 1. `redraw()` draws new directions, `redrawing`
    does so in training; what a cache keeps belongs to the directions that it was written with.
    """

    @named
    def __init__(
        self,
        h: int,
        d_head: int,
        D: int = 64,
        tau: float = 1.0,
        orthogonal: bool = True,
        least: float = LEAST,
    ) -> None:
        for name, count in (("h", h), ("d_head", d_head), ("D", D)):
            _arguments.integer(name, count, 1)
        super().__init__(torch.empty(h, D, d_head), least)
        self.tau = _arguments.real("tau", tau, 0.05, 20.0)
        self.orthogonal = orthogonal
        self.sigma = nn.Parameter(torch.ones(h, 1, d_head))
        self.redraw()

    def redraw(self, rng: Generator | None = None) -> None:
        h, D, d = self.W.shape
        drawn = [directions(D, d, self.orthogonal, rng) for _ in range(h)]
        self.W.copy_(torch.stack(drawn))

    def directions(self, X: Tensor) -> Tensor:
        return self.sigma.to(X) * super().directions(X) / self.tau


def redraw(model: nn.Module, rng: Generator | None = None) -> None:
    """New directions for every core of the model that has random features."""
    cores: list[Any] = [x for x in model.modules() if callable(getattr(x, "redraw", None))]
    if not cores:
        raise ValueError(
            f"no core of this {type(model).__name__} draws directions at random; give it one that "
            "does, such as core=Performer or core=RFA"
        )
    for core in cores:
        core.redraw(rng)


def redrawing(loss: Loss, every: int, seed: int = 0) -> Loss:
    """The same loss for `tfviz.training.train`, but before each `every`-th step, the first one
    excepted, all directions of the model are drawn anew.

    Which ones they are depends on the seed and the step alone: batches stay as they are, and an
    interrupted training resumes to the last bit.
    """
    _arguments.integer("every", every, 1)
    _arguments.integer("seed", seed, 0)

    def with_new_directions(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if step and step % every == 0:
            redraw(model, Generator().manual_seed(seed + step))
        return loss(model, rng, step)

    return with_new_directions
