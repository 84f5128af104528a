"""Hard-coded Gaussian heads: each head looks at a fixed place next to the query, unasked.

You, Sun, Iyyer 2020 (arXiv 2005.00742). Head k has an offset Δ, and the weight of a key is that of
a normal distribution around the place i + Δ,

    a_ij = exp(−(j − i − Δ)² / (2 s²)) / (s √(2π))      for j in S_i, else 0,     s = 1

There are no queries and no keys; W^v and W^o are kept. The rows are *not* divided by their sum, and
the mask multiplies what the Gaussian gives, so a row at the edge of a text sums to less than one:
0.30 in the first row with Δ = −1. `renormalise=True` divides. The authors' encoder has the offsets
−1 and 1 in turns, the self-attention of their decoder −1 and 0. Keys farther than `radius` from the
centre, by default 6 s rounded up, weigh less than 2e-9 together and are left out, so the cost is
O(L w d) for w = 2 radius + 1 keys and the range of the offsets: a convolution for each head.

>>> import torch
>>> from tfviz.dense_attention import FULL
>>> A = hard_coded_definition(torch.ones(1, 4, 1), FULL.mask(4), [-1])[1]
>>> [round(x, 2) for x in A[0, 2].tolist()], round(A[0, 0].sum().item(), 2)
([0.24, 0.4, 0.24, 0.05], 0.3)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Where, outside_inference, positions, same_texts
from tfviz.dense_attention import CAUSAL, FULL, visible

__all__ = ["HardCoded", "bell", "hard_coded_definition"]

FAR = 6  # spreads from the centre, beyond which a key is left out
BLOCK = 64  # rows of an answer that one product makes
MOST = 1024  # places from the query to which an offset may point


def bell(i: Any, j: Any, *, offset: Any, spread: Any) -> Any:
    """−(j − i − Δ)²/(2 s²): the logarithm of a weight, but for a constant. A formula of i and j."""
    return -((j - i - offset) ** 2) / (2 * spread**2)


def weights(
    i: Any, j: Any, offsets: Float[Tensor, "h"], spread: float, radius: int
) -> Float[Tensor, "h *pairs"]:
    """The Gaussian of each head at these positions, 0 farther than `radius` from its centre."""
    offset = offsets.reshape(-1, *[1] * (j - i).dim())
    height = torch.exp(bell(i, j, offset=offset, spread=spread)) / (spread * math.sqrt(2 * math.pi))
    return height * ((j - i - offset).abs() <= radius)


@named
def hard_coded_definition(
    V: Float[Tensor, "*b h Lk dv"],
    mask: Bool[Tensor, "*#h Lq Lk"],
    offsets: Sequence[int] = (-1, 0),
    spread: float = 1.0,
    radius: int | None = None,
    renormalise: bool = False,
) -> tuple[Float[Tensor, "*b h Lq dv"], Float[Tensor, "*#b h Lq Lk"]]:
    """The output and the weights, by all pairs: the Gaussian times the mask, head by head."""
    dtype = torch.promote_types(V.dtype, torch.float32)
    i, j = positions(mask.shape[-2], V.shape[-2], V.device)
    placed = _by_head(offsets, V.shape[-3]).to(V.device, dtype)
    A = weights(i, j, placed, spread, _reach(radius, spread)) * mask
    if renormalise:
        total = A.sum(-1, keepdim=True)
        A = A / total.masked_fill(total == 0, 1.0)
    return (A @ V.to(dtype)).to(V.dtype), A.to(V.dtype)


def _by_head(offsets: Sequence[int], h: int) -> Float[Tensor, "h"]:
    """The offset of each head: those that are given, in turns."""
    if h % len(offsets):
        raise ValueError(
            f"offsets = {tuple(offsets)} are {len(offsets)}, and there are {h} heads; give a "
            "number of offsets that divides the heads"
        )
    return torch.tensor([*offsets] * (h // len(offsets)), dtype=torch.float64)


def _reach(radius: int | None, spread: float) -> int:
    return math.ceil(FAR * spread) if radius is None else radius


class HardCoded(nn.Module):
    """Gaussian heads as the core of a layer of h heads; nothing in it is learned.

    offsets       places from the query to the centres of heads 0, 1, … in turns
    spread        s, the standard deviation
    radius        how far from a centre keys count; 6 s, rounded up, if it is not given
    renormalise   divide each row by its sum, which the authors do not

    Full and causal attention cost O(L w), and of a causal text it keeps the last values that a
    later token may use. Other patterns make all pairs, and keep keys and values.
    """

    @named
    def __init__(
        self,
        h: int,
        offsets: Sequence[int] = (-1, 0),
        spread: float = 1.0,
        radius: int | None = None,
        renormalise: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(offsets, str) or not isinstance(offsets, Sequence) or not offsets:
            raise TypeError(f"offsets = {offsets!r}; give whole numbers in a list, such as [-1, 0]")
        placed = [_arguments.integer("offsets", x, -MOST, MOST) for x in offsets]
        self.by_head = _by_head(placed, _arguments.integer("h", h, 1))
        self.offsets = placed
        self.spread = _arguments.real("spread", spread, 1e-3, float(MOST))
        self.radius = _reach(radius if radius is None else _radius(radius), self.spread)
        self.renormalise = renormalise

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.crosses:
            raise ValueError(
                "a place next to the query means nothing in another sequence; leave "
                "cross-attention learned"
            )
        h = len(self.by_head)
        if Q.shape[1] != h:
            raise ValueError(f"offsets are for {h} heads, Q has {Q.shape[1]}; give HardCoded them")
        streams = where.pattern == CAUSAL
        passed = where.start if streams else 0
        if not streams:
            K, V = where.joined(K, V)
        if V.shape[1] != h:
            V = V.repeat_interleave(h // V.shape[1], 1)
        Lq, Lk = Q.shape[2], passed + V.shape[2]
        if not 0 < Lq <= V.shape[2]:
            raise ValueError(f"{Lq} queries and {V.shape[2]} values; give each token a value")
        keys = visible(FULL, Lq, Lk, where.attention_mask, Q.device)  # (b, 1, 1, Lk), no padding
        if keys is not None and len(keys) not in (1, len(Q)):
            raise ValueError(
                f"attention_mask has {len(keys)} rows, Q {len(Q)}; give one for each row of the "
                "batch"
            )
        at_once = streams or (where.pattern == FULL and Lq == Lk)
        out = self._convolved(V, keys, where, streams) if at_once else V
        if at_once and not where.need_weights:
            return out, None
        mask = torch.ones(Lq, Lk, dtype=torch.bool, device=Q.device)
        allowed = visible(where.pattern, Lq, Lk, where.attention_mask, Q.device)
        mask = mask if allowed is None else mask & allowed
        given = self.offsets, self.spread, self.radius, self.renormalise
        # weights need no values: those of a stream are there for values that are gone, too
        stand_in = V[:, :, :1].expand(-1, -1, Lk, -1) if streams else V
        dense, A = hard_coded_definition(stand_in, mask, *given)
        A = A.expand(len(Q), -1, -1, -1)
        return (out if at_once else dense), (A if where.need_weights else None)

    def _convolved(
        self, V: Tensor, keys: Bool[Tensor, "b 1 1 Lk"] | None, where: Where, causal: bool
    ) -> Tensor:
        """Σ over distances of a weight times the values that far away: a convolution by heads."""
        L = V.shape[2]
        dtype = torch.promote_types(V.dtype, torch.float32)
        values = V.to(dtype)
        if self.renormalise:  # what a value of 1 for each key makes is the sum of the row
            values = F.pad(values, (0, 1), value=1.0)
        if keys is not None:
            values = values.masked_fill(~keys[..., keys.shape[-1] - L :].mT, 0.0)
        back = max(0, self.radius - min(self.offsets))
        ahead = 0 if causal else max(0, self.radius + max(self.offsets))
        state = None if where.state is None or not causal else outside_inference(where.state)
        if state is None:
            values = F.pad(values, (0, 0, back, 0))
        else:
            same_texts(state, V)
            values = torch.cat([state, values], 2)
        if where.keep and causal:
            where.keep(values[:, :, values.shape[2] - back :])
        distances = torch.arange(-back, ahead + 1, device=V.device)
        placed = self.by_head.to(V.device, dtype)
        kernel = weights(torch.zeros_like(distances), distances, placed, self.spread, self.radius)
        with _fused.full_precision(V):
            out = _by_blocks(values, kernel, L)
        if self.renormalise:
            total = out[..., -1:]
            out = out[..., :-1] / total.masked_fill(total == 0, 1.0)
        return out.to(V.dtype)


def _by_blocks(
    values: Float[Tensor, "b h n d"], kernel: Float[Tensor, "h w"], L: int
) -> Float[Tensor, "b h L d"]:
    """Row i is Σ_t kernel_t values_{i+t}, for i < L; values beyond the end are 0.

    In blocks of rows: one matrix, with the kernel along its diagonals, makes each block of answers
    of the values that it needs, which is faster here than torch's convolution.
    """
    w, m = kernel.shape[1], min(BLOCK, L)
    rows = -(-L // m) * m
    values = F.pad(values, (0, 0, 0, rows + w - 1 - values.shape[2]))
    t = (
        torch.arange(m + w - 1, device=values.device)
        - torch.arange(m, device=values.device)[:, None]
    )
    banded = kernel[:, t.clamp(0, w - 1)] * ((t >= 0) & (t < w))  # (h, m, m + w − 1)
    blocks = values.unfold(2, m + w - 1, m).mT  # (b, h, rows/m, m + w − 1, d), a view
    return (banded[:, None] @ blocks).flatten(2, 3)[:, :, :L]


def _radius(radius: int) -> int:
    return _arguments.integer("radius", radius, 0, 8 * MOST)
