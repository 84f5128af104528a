"""RealFormer: attention scores travel up on a residual path of their own, head by head.

He, Ravula, Kanagal, Ainslie 2020 (arXiv 2012.11747). Layer n adds the scores of the layer below to
its own before the softmax, and hands the sum up:

    Ŝ^n = Q^n K^nᵀ/√d_h + Ŝ^{n−1}        A^n = softmax(Ŝ^n), the pattern applied after the addition

It has no parameters. The scores have to be made, so no fused kernel can be used. In cross-attention
there is a path of its own. `running_mean` divides by the layers so far before the softmax; the sum
that is handed up stays undivided. In the authors' code it is an option, off by default.

`scores_from_below` is the rule of which this is one case, eq. 22 of Lin et al. 2021.

>>> import torch
>>> S = torch.tensor([1.0, 2.0, -1.0]).reshape(3, 1, 1)  # one query and one key in three layers
>>> scores_from_below(S).flatten().tolist()
[1.0, 3.0, 2.0]
>>> scores_from_below(S, own=[1, 0, 1], below=[0, 1, 0]).flatten().tolist()
[1.0, 1.0, -1.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, in_stack
from tfviz.dense_attention import attention

__all__ = ["RealFormer", "realformer_definition", "scores_from_below"]

Shares = float | Sequence[float]
"""One number for all layers, or one for each."""


def unchanged(S: Tensor) -> Tensor:
    return S


@named
def scores_from_below(
    S: Float[Tensor, "N *b Lq Lk"],
    own: Shares = 1.0,
    below: Shares = 1.0,
    g: Callable[[Tensor], Tensor] = unchanged,
) -> Float[Tensor, "N *b Lq Lk"]:
    """Ŝ^n = own · S^n + below · g(Ŝ^{n−1}), layer by layer; the lowest layer has its own, S^0.

    `own` and `below` are numbers, or one for each layer. RealFormer: 1 and 1; LazyFormer: 1 and 0
    in the first layer of each lazy block, 0 and 1 in the others; predictive attention: α and 1 − α,
    with a convolution for g.
    """
    if not isinstance(S, Tensor) or S.dim() < 3:
        shape = tuple(S.shape) if isinstance(S, Tensor) else type(S).__name__
        raise ValueError(f"S has shape {shape}; give the scores of all layers, (N, …, Lq, Lk)")
    owns, belows = (_by_layer(name, x, len(S)) for name, x in (("own", own), ("below", below)))
    carried = [S[0]] if len(S) else []
    for n in range(1, len(S)):
        carried.append(owns[n] * S[n] + belows[n] * g(carried[-1]))
    return torch.stack(carried) if carried else S


def _by_layer(name: str, shares: Any, N: int) -> list[float]:
    if not isinstance(shares, Sequence):
        return [_arguments.real(name, shares, -1e6, 1e6)] * N
    if len(shares) != N:
        raise ValueError(f"{name} has {len(shares)} numbers, S {N} layers; give one for each layer")
    return [_arguments.real(name, x, -1e6, 1e6) for x in shares]


@named
def realformer_definition(
    Q: Float[Tensor, "N *b Lq d"],
    K: Float[Tensor, "N *b Lk d"],
    V: Float[Tensor, "N *b Lk dv"],
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
    running_mean: bool = False,
) -> tuple[Float[Tensor, "N *b Lq dv"], Float[Tensor, "N *b Lq Lk"]]:
    """(out, A) of every layer, from the queries, keys and values of all of them."""
    totals = scores_from_below(Q @ K.mT / Q.shape[-1] ** 0.5)
    layers = []
    for n, total in enumerate(totals):
        used = total / (n + 1) if running_mean else total
        layers.append(attention(Q[n], K[n], V[n], mask, scores=lambda _, used=used: used))  # type: ignore[misc]
    out, A = zip(*layers, strict=True)
    return torch.stack(out), torch.stack(A)


class Carried(NamedTuple):
    """What a layer hands up: how many layers are in the sum, and the sum of their scores."""

    layers: int
    scores: Float[Tensor, "b h Lq Lk"]


class RealFormer(Dense):
    """The core: its own scores plus those from below. `GPT(…, core=RealFormer)`.

    running_mean   divide by the number of layers so far before the softmax
    """

    @named
    def __init__(self, running_mean: bool = False) -> None:
        super().__init__()
        self.running_mean = running_mean

    def scores(self, s: Float[Tensor, "b h Lq Lk"], where: Where) -> Tensor:
        layers, total = 1, s
        if where.below is not None:
            if not isinstance(where.below, Carried) or where.below.scores.shape != s.shape:
                raise ValueError(
                    "the layer below hands up no scores for these queries and keys; give every "
                    "layer the core RealFormer and as many heads"
                )
            layers, total = where.below.layers + 1, where.below.scores + s
        if in_stack():
            where.hand_up(Carried(layers, total))
        return total / layers if self.running_mean else total
