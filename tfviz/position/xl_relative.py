"""Transformer-XL's relative encoding: four terms, and the key's place is its distance i − j.

    s_ij = q_i k_jᵀ + q_i (r_{i−j} W^r)ᵀ + u k_jᵀ + v (r_{i−j} W^r)ᵀ,   divided by √d_head
           q_i = x_i W^q,  k_j = x_j W^k,  r_n = sinusoids of the distance n

Dai et al. 2019 (arXiv 1901.02860), section 3.3. The paper's W_{k,E} and W_{k,R} are W^k and W^r
here. u and v are learned, for each head; so is W^r, but r is not. The paper and its code share u, v
among all layers of the smaller models; here each layer has its own. W^r begins with entries of
variance 1/d, u and v at 0.

>>> rel_shift(torch.tensor([[3, 2, 1], [6, 5, 4], [9, 8, 7]])).tril().tolist()
[[1, 0, 0], [5, 4, 0], [9, 8, 7]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, refuse_given_positions, sees_ahead
from tfviz.position.sinusoidal_pe import sinusoids

__all__ = ["XL", "four_terms", "rel_shift", "xl"]


@named
def four_terms(
    Q: Float[Tensor, "*heads L d_head"],
    K: Float[Tensor, "*heads L d_head"],
    R: Float[Tensor, "*heads distances d_head"],
    u: Float[Tensor, "*heads d_head"],
    v: Float[Tensor, "*heads d_head"],
) -> Float[Tensor, "4 *heads L L"]:
    """The four terms of every pair by the definition, not yet divided by √d_head.

    R has one row for each distance L − 1, …, 0, …, 1 − L, already multiplied by W^r.
    Raises ValueError for any other number of rows.
    """
    L = Q.shape[-2]
    if R.shape[-2] != 2 * L - 1:
        raise ValueError(
            f"R has {R.shape[-2]} rows; with L = {L} it must have {2 * L - 1}, for the distances "
            f"{L - 1} … {1 - L}"
        )
    i = torch.arange(L, device=Q.device)
    R_ij = R[..., L - 1 - (i[:, None] - i), :]  # (…, L, L, d_head), the costly way
    content = torch.einsum("...id,...jd->...ij", Q, K)
    place = torch.einsum("...id,...ijd->...ij", Q, R_ij)
    key = torch.einsum("...d,...jd->...j", u, K)[..., None, :].expand_as(content)
    distance = torch.einsum("...d,...ijd->...ij", v, R_ij).expand_as(content)
    return torch.stack([content, place, key, distance])


@named
def rel_shift(B: Float[Tensor, "*heads Lq Lk"]) -> Float[Tensor, "*heads Lq Lk"]:
    """From columns that stand for distances Lk − 1, …, 0 to columns that stand for keys.

    Row i moves left by Lq − 1 − i: pad a zero in front of each row, cut the same numbers into rows
    of Lq, drop the first. Right for j ≤ i; what stands above the diagonal is another row's and
    must be masked.
    """
    *heads, Lq, Lk = B.shape
    if Lq > Lk:
        raise ValueError(f"B has {Lq} rows and {Lk} columns; the queries are among the keys")
    return F.pad(B, (1, 0)).reshape(*heads, Lk + 1, Lq)[..., 1:, :].reshape(B.shape)


def two_sided_shift(
    B: Float[Tensor, "*heads Lq distances"],
) -> Float[Tensor, "*heads Lq Lk"]:
    """The same for distances Lk − 1, …, 0, …, 1 − Lq, and right for every pair.

    Entry (i, j) stands in column Lq − 1 − i + j. With a zero behind each row of M it is number
    i M + Lq − 1 + j of all, so without the first Lq − 1, rows of M begin where they should.
    """
    *heads, Lq, M = B.shape
    flat = F.pad(B, (0, 1)).flatten(-2)[..., Lq - 1 : Lq - 1 + Lq * M]
    return flat.reshape(*heads, Lq, M)[..., : M - Lq + 1]


class XL(Dense):
    """Terms two, three and four as a score bias; the first is attention's own.

    bidirectional=True: also for keys after the query, as in BERT; distances are then positive and
    negative. Otherwise the pattern must be causal.
    """

    by_distance = True

    @named
    def __init__(
        self, h: int, d_head: int, *, bidirectional: bool = False, base: float = 10_000.0
    ) -> None:
        super().__init__()
        d = _arguments.integer("h", h, 1) * _arguments.integer("d_head", d_head, 1)
        self.bidirectional, self.base = bidirectional, base
        sinusoids(torch.zeros(1), d, base)  # errors belong here, not into the first pass
        self.W_r = nn.Parameter(torch.randn(h, d, d_head) / d**0.5)
        self.u, self.v = (nn.Parameter(torch.zeros(h, d_head)) for _ in range(2))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        refuse_given_positions("XL")
        if (Q.shape[1], Q.shape[3]) != self.u.shape:
            raise ValueError(
                f"{Q.shape[1]} heads are {Q.shape[3]} numbers wide, but this XL is for "
                f"{tuple(self.u.shape)}; make it XL({Q.shape[1]}, {Q.shape[3]})"
            )
        if not Q.shape[2]:
            raise ValueError("Q has no rows; there are no distances: give one token or more")
        if not self.bidirectional and sees_ahead(where.pattern, Q.shape[2], K.shape[2]):
            raise ValueError(
                f"{where.pattern!r} sees later keys; make it XL(…, bidirectional=True)"
            )

    def distances(self, Lq: int, Lk: int) -> Float[Tensor, "h distances d_head"]:
        """r_n W^r of each head for the distances n = Lk − 1, …, 0, or down to 1 − Lq."""
        n = torch.arange(Lk - 1, -Lq if self.bidirectional else -1, -1, device=self.W_r.device)
        return sinusoids(n, self.W_r.shape[1], self.base).to(self.W_r.dtype) @ self.W_r

    def bias(self, Q: Tensor, K: Tensor) -> Float[Tensor, "b h Lq Lk"]:
        (*_, Lq, d_head), Lk = Q.shape, K.shape[-2]
        K = K.repeat_interleave(Q.shape[1] // K.shape[1], 1)
        by_distance = (Q + self.v[:, None]) @ self.distances(Lq, Lk).transpose(-2, -1)
        by_key = self.u[:, None] @ K.transpose(-2, -1)  # (b, h, 1, Lk)
        shift = two_sided_shift if self.bidirectional else rel_shift
        return (shift(by_distance) + by_key) / d_head**0.5


@named
def xl(h: int, d_head: int, **options: Any) -> Callable[[], XL]:
    """What a model takes as `core`: it makes an XL for each layer."""
    return lambda: XL(h, d_head, **options)
