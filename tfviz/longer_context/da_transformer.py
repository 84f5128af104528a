"""DA-Transformer: clipped scores, multiplied by a learned curve of the distance.

    A = softmax( ReLU(Q Kᵀ) ⊙ f(α R; β) / √d_head ),   R_ij = |i − j|
    f(x; β) = (1 + e^β) / (1 + e^{β − x})

Wu, Wu, Huang 2021 (arXiv 2010.06925). Each head learns two numbers, α and β. f(0) = 1 always; with
α > 0 the curve rises to 1 + e^β far away, with α < 0 it falls to 0. The clip keeps the product
meaningful: to multiply a negative score by less than 1 would raise it. But a score of 0 is no
weight of 0: a suppressed key keeps e⁰ = 1 in the softmax. Here α and β begin at 0, where f = 1.

>>> n = torch.tensor([0.0, 2.0, 100.0])
>>> [round(x, 3) for x in rescale(n, alpha=-1.0, beta=0.0).tolist()]
[1.0, 0.238, 0.0]
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions
from tfviz.dense_attention import attention

__all__ = ["DA", "da_attention", "da_scores", "rescale"]


def curve(i: Any, j: Any, *, alpha: Any, beta: Any) -> Any:
    """f(α|i − j|; β) as the paper writes it: a formula of the indices (tensors)."""
    return (1 + torch.exp(beta)) / (1 + torch.exp(beta - alpha * abs(i - j)))


@named
def rescale(n: Tensor, alpha: Any, beta: Any) -> Tensor:
    """The same for any α and β without overflow, as long as e^β is a number."""
    alpha, beta = (torch.as_tensor(x, dtype=n.dtype, device=n.device) for x in (alpha, beta))
    return (F.softplus(beta) - F.softplus(beta - alpha * n)).exp()


def rescaled(
    s: Float[Tensor, "*heads Lq Lk"],
    alpha: Float[Tensor, "*#heads"],
    beta: Float[Tensor, "*#heads"],
) -> Float[Tensor, "*heads Lq Lk"]:
    """ReLU(s) ⊙ f(α|i − j|; β) of scores s; the queries are the last Lq of the Lk positions."""
    i, j = positions(s.shape[-2], s.shape[-1], s.device)
    n = (i - j).abs().to(s.dtype)
    return s.relu() * rescale(n, *(x[..., None, None].to(s.dtype) for x in (alpha, beta)))


@named
def da_scores(
    Q: Float[Tensor, "*heads Lq d_head"],
    K: Float[Tensor, "*heads Lk d_head"],
    alpha: Float[Tensor, "*#heads"],
    beta: Float[Tensor, "*#heads"],
) -> Float[Tensor, "*heads Lq Lk"]:
    """ReLU(Q Kᵀ) ⊙ f(α|i − j|; β) / √d_head."""
    return rescaled(Q @ K.mT / Q.shape[-1] ** 0.5, alpha, beta)


@named
def da_attention(
    Q: Float[Tensor, "*heads L d_head"],
    K: Float[Tensor, "*heads L d_head"],
    V: Float[Tensor, "*heads L d_v"],
    alpha: Float[Tensor, "*#heads"],
    beta: Float[Tensor, "*#heads"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*heads L d_v"], Float[Tensor, "*heads L L"]]:
    """(out, A) of heads with one α and one β each. Raises TypeError or ValueError for others."""
    _qkv.check(Q, K, V, self_attention=False)
    for name, x in (("alpha", alpha), ("beta", beta)):
        _arguments.tensor(name, x, "(…, heads)")
        if x.shape and x.shape[-1] not in (1, *Q.shape[-3:-2]):
            heads = Q.shape[-3] if Q.dim() > 2 else "no"
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, Q {tuple(Q.shape)} has {heads} heads; give "
                "one number for each"
            )
    return attention(Q, K, V, pattern, scores=partial(rescaled, alpha=alpha, beta=beta))


class DA(Dense):
    """The core of a layer of h heads, with their α and β."""

    by_distance = True

    @named
    def __init__(self, h: int) -> None:
        super().__init__()
        _arguments.integer("h", h, 1)
        self.alpha, self.beta = (nn.Parameter(torch.zeros(h)) for _ in range(2))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.alpha):
            raise ValueError(f"α is for {len(self.alpha)} heads, Q has {Q.shape[1]}; give DA them")

    def scores(self, s: Tensor, where: Where) -> Tensor:
        return rescaled(s, self.alpha, self.beta)
