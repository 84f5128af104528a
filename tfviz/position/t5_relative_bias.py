"""T5's relative bias: one learned number for each head and each bucket of distances.

    s_ij = q_i k_jᵀ / √d_head + b[bucket(i − j)]

Raffel et al. 2019 (arXiv 1910.10683), section 2.1, and their code. Half of the buckets hold one
distance each; the others grow by a constant factor up to `far`, and the last holds all beyond:

    bucket(n) = n                                                       for n < e = buckets / 2
    bucket(n) = e + ⌊(buckets − e) · ln(n/e) / ln(far/e)⌋, at most buckets − 1    otherwise

With `bidirectional` keys after the query have half of the buckets for themselves. T5 does not
divide by √d_head, and shares one table among all layers; here scores are scaled as everywhere in
this course, and each layer has a table.

>>> edges(buckets=8, far=16)
[0, 1, 2, 3, 4, 6, 8, 12]
>>> bucket(torch.tensor([0, 3, 5, 99]), 8, 16).tolist()
[0, 3, 4, 7]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions

__all__ = ["T5Bias", "bucket", "t5_bias"]


def edges(buckets: int = 32, far: int = 128) -> list[int]:
    """The smallest distance of every bucket, for one side. In whole numbers, without rounding.

    Bucket e + m begins at the first n with (n/e)^(buckets − e) ≥ (far/e)^m. Raises ValueError
    if buckets is odd, or far not larger than the half of it.
    """
    if _arguments.integer("buckets", buckets, 2) % 2:
        raise ValueError(f"buckets = {buckets} is odd; half of them hold one distance each")
    e = buckets // 2
    _arguments.integer("far", far, e + 1)
    found, n = list(range(e)), e
    for m in range(buckets - e):
        while n ** (buckets - e) < far**m * e ** (buckets - e - m):
            n += 1
        found.append(n)
    return found


@named
def bucket(
    n: Int[Tensor, "*pairs"], buckets: int = 32, far: int = 128, *, bidirectional: bool = False
) -> Int[Tensor, "*pairs"]:
    """The bucket of each distance n = i − j. Without `bidirectional` all n < 0 share bucket 0."""
    if bidirectional:  # the keys after the query take the second half
        side = _side(buckets)
        return bucket(n.abs(), side, far) + side * (n < 0)
    first = torch.tensor(edges(buckets, far), device=n.device)
    return torch.searchsorted(first, n.clamp(min=0), right=True) - 1


def _side(buckets: int) -> int:
    """How many buckets are left for each side when keys after the query have half of them."""
    if _arguments.integer("buckets", buckets, 4) % 4:
        raise ValueError(
            f"buckets = {buckets}: half of them are for each side, and half of those hold one "
            "distance each; choose a multiple of 4"
        )
    return buckets // 2


class T5Bias(Dense):
    """The bias as the core of a layer of h heads; b begins at 0.

    What is added is scale · b. Adam moves a number by about the learning rate in a step, and scores
    must differ by several units to matter: a short training needs a scale above 1.
    """

    by_distance = True

    @named
    def __init__(
        self,
        h: int,
        *,
        buckets: int = 32,
        far: int = 128,
        bidirectional: bool = False,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        edges(_side(buckets) if bidirectional else buckets, far)  # errors belong here
        self.buckets, self.far, self.bidirectional = buckets, far, bidirectional
        self.scale = _arguments.real("scale", scale)
        self.b = nn.Parameter(torch.zeros(_arguments.integer("h", h, 1), buckets))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.b):
            raise ValueError(f"b is for {len(self.b)} heads, Q has {Q.shape[1]}; give T5Bias them")

    def bias(self, Q: Tensor, K: Tensor) -> Float[Tensor, "h Lq Lk"]:
        i, j = positions(Q.shape[-2], K.shape[-2], Q.device)
        row = bucket(i - j, self.buckets, self.far, bidirectional=self.bidirectional)
        return self.scale * self.b[:, row]


@named
def t5_bias(h: int, **options: Any) -> Callable[[], T5Bias]:
    """What a model takes as `core`: it makes a T5Bias for each layer."""
    return lambda: T5Bias(h, **options)
