"""The position-wise feed-forward network: each row goes through the same two layers, alone.

    FFN(x) = φ(x W_1 + b_1) W_2 + b_2        W_1 ∈ ℝ^{d × d_ff},  W_2 ∈ ℝ^{d_ff × d},  d_ff = 4d

Vaswani et al. 2017 (arXiv 1706.03762), section 3.3, with φ = ReLU; GELU is Hendrycks and Gimpel
2016 (arXiv 1606.08415), as BERT and GPT use it. That the columns of W_1 are keys and the rows of
W_2 values of a memory is how Geva et al. 2020 (arXiv 2012.14913) read it. The trained module of the
models is `tfviz.models.blocks.FeedForward`.

Most models since Llama have a gated network in its place, without biases: SwiGLU, Shazeer 2020
(arXiv 2002.05202), equation 6, with β = 1 in Swish_β. The paper's W and V are W_1 and W_3 here, as
in the code of Llama.

    SwiGLU(x) = (silu(x W_1) ⊙ x W_3) W_2        silu(x) = x σ(x),  d_ff = ⌊8d/3⌋

>>> block_flops(L=10, d=8)
{'projections': 5120, 'scores': 3200, 'feed-forward': 10240}
>>> gated_units(4096)  # Llama 7B has 11,008, the next multiple of 256
10922
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = [
    "SwiGLU",
    "block_flops",
    "block_weights",
    "feed_forward",
    "gated_units",
    "gelu",
    "memory_lookup",
    "swiglu",
]

Phi = Callable[[Tensor], Tensor]


@named
def feed_forward(
    X: Float[Tensor, "*L d"],
    W_1: Float[Tensor, "d dff"],
    b_1: Float[Tensor, "dff"],
    W_2: Float[Tensor, "dff d"],
    b_2: Float[Tensor, "d"],
    phi: Phi = F.relu,
) -> Float[Tensor, "*L d"]:
    """φ(X W_1 + b_1) W_2 + b_2, a row of X at a time. Raises ValueError if shapes do not fit."""
    d, d_ff = X.shape[-1], len(b_1)
    for name, W, shape in (
        ("W_1", W_1, (d, d_ff)),
        ("W_2", W_2, (d_ff, d)),
        ("b_2", b_2, (d,)),
    ):
        if tuple(W.shape) != shape:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}; with {d} numbers in a row of X and {d_ff} in "
                f"b_1 it must be {shape}"
            )
    return phi(X @ W_1 + b_1) @ W_2 + b_2


@named
def swiglu(
    X: Float[Tensor, "*L d"],
    W_1: Float[Tensor, "d dff"],
    W_3: Float[Tensor, "d dff"],
    W_2: Float[Tensor, "dff d"],
) -> Float[Tensor, "*L d"]:
    """(silu(X W_1) ⊙ X W_3) W_2, a row of X at a time: the first product is the gate, the second
    what passes through it. Raises ValueError if shapes do not fit."""
    d, d_ff = X.shape[-1], W_1.shape[-1]
    for name, W, shape in (
        ("W_1", W_1, (d, d_ff)),
        ("W_3", W_3, (d, d_ff)),
        ("W_2", W_2, (d_ff, d)),
    ):
        if tuple(W.shape) != shape:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}; with {d} numbers in a row of X and {d_ff} "
                f"columns in W_1 it must be {shape}"
            )
    return (F.silu(X @ W_1) * (X @ W_3)) @ W_2


class SwiGLU(nn.Module):
    """`swiglu` with trained weights, for `Block(…, feed=SwiGLU)`: X (…, d) → (…, d).

    d_ff is ⌊8d/3⌋ unless it is given, as many hidden units as the weights of the usual network
    allow in three matrices. Shazeer 2020 (arXiv 2002.05202), equation 6.

    >>> SwiGLU(6)(torch.ones(2, 6)).shape
    torch.Size([2, 6])
    """

    @named
    def __init__(self, d: int, d_ff: int | None = None) -> None:
        super().__init__()
        d, d_ff = _sizes(d, d_ff, gated=True)
        self.W_1 = nn.Linear(d, d_ff, bias=False)
        self.W_3 = nn.Linear(d, d_ff, bias=False)
        self.W_2 = nn.Linear(d_ff, d, bias=False)

    @named
    def forward(self, X: Float[Tensor, "*L d"]) -> Float[Tensor, "*L d"]:
        return self.W_2(F.silu(self.W_1(X)) * self.W_3(X))


@named
def gated_units(d: int) -> int:
    """⌊8d/3⌋, the most hidden units with which three matrices have no more than 8d² weights.

    Llama 1 and 2 round it up to a multiple of 256.
    """
    return 8 * _arguments.integer("d", d, 1) // 3


@named
def memory_lookup(
    x: Float[Tensor, "d"],
    K: Float[Tensor, "dff d"],
    b_1: Float[Tensor, "dff"],
    V: Float[Tensor, "dff d"],
    b_2: Float[Tensor, "d"],
    phi: Phi = F.relu,
) -> tuple[Float[Tensor, "d"], Float[Tensor, "dff"]]:
    """The same for one row, read as a dictionary: a_u = φ(x k_uᵀ + b_u), z = Σ_u a_u v_u + b_2.

    K = W_1ᵀ has a key in each row, V = W_2 a value. The weights need neither be positive nor sum to
    one, and the entries are trained numbers, not other tokens.
    """
    if x.dim() != 1 or K.shape != (len(b_1), len(x)) or V.shape[:-1] != b_1.shape:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, K {tuple(K.shape)}, b_1 {tuple(b_1.shape)}, V "
            f"{tuple(V.shape)}; give one row (d,), a key (d_ff, d), a bias and a value for each u"
        )
    a = torch.stack([phi(x @ k + b) for k, b in zip(K, b_1, strict=True)])
    return torch.einsum("u,ud->d", a, V) + b_2, a


@named
def gelu(X: Float[Tensor, "*L"]) -> Float[Tensor, "*L"]:
    """x Φ(x), Φ the distribution function of the normal distribution: a ReLU with a soft knee."""
    return X * 0.5 * (1 + torch.erf(X / math.sqrt(2)))


# --- what a block costs ---------------------------------------------------------------------------


@named
def block_weights(d: int, d_ff: int | None = None, *, gated: bool = False) -> dict[str, int]:
    """Numbers in the matrices of one block; biases and norms are left out.

    d_ff: by default 4d. A `gated` network has three matrices, and by default ⌊8d/3⌋ units.
    """
    d, d_ff = _sizes(d, d_ff, gated)
    return {"attention": 4 * d * d, "feed-forward": (2 + gated) * d * d_ff}


@named
def block_flops(L: int, d: int, d_ff: int | None = None, *, gated: bool = False) -> dict[str, int]:
    """Operations of one block on L tokens, two for each multiplication with its addition.

    projections: Q, K, V and W^o; scores: Q Kᵀ and A V, all L² pairs. d_ff: by default 4d. A `gated`
    network has three matrices, and by default ⌊8d/3⌋ units; its gate itself is not counted.
    """
    feed_forward = 2 * block_weights(d, d_ff, gated=gated)["feed-forward"]
    L = _arguments.integer("L", L, 1)
    return {"projections": 8 * L * d * d, "scores": 4 * L * L * d, "feed-forward": L * feed_forward}


def _sizes(d: int, d_ff: int | None, gated: bool) -> tuple[int, int]:
    d = _arguments.integer("d", d, 1)
    if d_ff is None:
        return d, gated_units(d) if gated else 4 * d
    return d, _arguments.integer("d_ff", d_ff, 1)
