"""The Gaussian Transformer: two numbers say what a key loses by its distance, and a word by itself.

Guo, Zhang, Liu 2019 (AAAI-33), as Lin et al. 2021 give it (their eq. 21). To each score is added

    G_ij = −|w (i − j)² + b|,     w ≥ 0 ≥ b

With b = 0 this is a bell around the query, of variance 1/(2w). With b < 0 it is 0, and highest, at
the distance √(|b|/w); the query itself loses |b|: the curve has the shape of an M, and a word looks
beside itself. With w = 0 all keys lose the same, and nothing changes.

Here each head has a w and a b of its own, learned as w = softplus(ω) and b = −softplus(β), so that
training cannot leave their ranges.

>>> import torch
>>> [round(x, 2) for x in beside(0, torch.arange(4), w=0.5, b=-1.0).tolist()]
[-1.0, -0.5, -1.0, -3.5]
>>> best_distance(w=0.5, b=-1.0)
1.4142135623730951
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions
from tfviz.dense_attention import attention

__all__ = ["Gaussian", "beside", "best_distance", "gaussian_definition"]

SMALLEST = 1e-4


def beside(i: Any, j: Any, *, w: Any, b: Any) -> Any:
    """−|w (i − j)² + b|, what is added to a score: a formula of the indices."""
    return -abs(w * (i - j) ** 2 + b)


@named
def best_distance(w: float, b: float) -> float:
    """√(|b|/w): where a key loses nothing."""
    return math.sqrt(-_arguments.real("b", b, high=0.0) / _arguments.real("w", w, SMALLEST))


@named
def gaussian_definition(
    Q: Float[Tensor, "*b h Lq d_head"],
    K: Float[Tensor, "*b h Lk d_head"],
    V: Float[Tensor, "*b h Lk d_v"],
    mask: Bool[Tensor, "*#h Lq Lk"] | None,
    w: float | Float[Tensor, "h 1 1"],
    b: float | Float[Tensor, "h 1 1"],
) -> tuple[Float[Tensor, "*b h Lq d_v"], Float[Tensor, "*b h Lq Lk"]]:
    """softmax(Q Kᵀ/√d_head − |w (i − j)² + b|) V over the mask, and the weights."""
    return attention(
        Q, K, V, mask, bias=beside(*positions(Q.shape[-2], K.shape[-2], Q.device), w=w, b=b)
    )


class Gaussian(Dense):
    """The core of a layer of h heads, each with a w and a b to learn, which begin as given."""

    by_distance = True

    @named
    def __init__(self, h: int, w: float = 0.1, b: float = -0.1) -> None:
        super().__init__()
        heads = _arguments.integer("h", h, 1)
        for name, size in (
            ("omega", _arguments.real("w", w, SMALLEST)),
            ("beta", -_arguments.real("b", b, high=-SMALLEST)),
        ):
            begins = size + math.log(-math.expm1(-size))  # softplus of it is `size`
            setattr(self, name, nn.Parameter(torch.full((heads,), begins)))

    omega: nn.Parameter
    beta: nn.Parameter

    @property
    def w(self) -> Float[Tensor, "h"]:
        return F.softplus(self.omega)

    @property
    def b(self) -> Float[Tensor, "h"]:
        return -F.softplus(self.beta)

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.omega):
            raise ValueError(
                f"w and b are for {len(self.omega)} heads, Q has {Q.shape[1]}; give Gaussian them"
            )
        if where.crosses:
            raise ValueError(
                "a distance between the places of two sequences means nothing; leave "
                "cross-attention as it is"
            )

    def bias(self, Q: Tensor, K: Tensor) -> Float[Tensor, "h Lq Lk"]:
        i, j = positions(Q.shape[-2], K.shape[-2], Q.device)
        dtype = torch.promote_types(Q.dtype, torch.float32)
        w, b = (x[:, None, None].to(dtype) for x in (self.w, self.b))
        return beside(i, j, w=w, b=b)
