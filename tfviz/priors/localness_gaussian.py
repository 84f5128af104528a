"""Modelling localness: each query predicts where to look and how widely, and keys there gain.

Yang, Tu, Wong, Meng, Chao, Zhang 2018 (arXiv 1810.10182). A bell is added to the scores,

    s_ij = q_i k_jᵀ/√d_head − (j − p_i)² / (2 σ_i²),     σ_i = D_i / 2,

so each weight is multiplied by a Gaussian around p_i and the row is divided by its new sum. Both
the centre and the window D_i come from the query, through one tanh layer that they share. With
q = [q_i of all heads], one sigmoid for each head and for each of the two,

    [x_i; y_i] = σ( tanh(q W + c) U + e ),     p_i = n_i x_i,     D_i = (n_i + 1) y_i + 0.1

Here n_i is the last place that query i may use: L − 1 in an encoder, i in a decoder. This is the
authors' code (Context-Aware-SAN): a decoder's bell never depends on later tokens, and the 0.1 keeps
a window open. Their variants of the window are a number that each head learns, D = 50 σ(y) + 0.1,
and a fixed one, D = 10. For the centre, this library also has the query's own place plus an offset
that each head learns ("layer"), or that place itself ("fixed").

>>> import torch
>>> weights = torch.tensor([0.1, 0.4, 0.3, 0.2])
>>> bell = bell_around(0, torch.arange(4), centre=2.0, window=2.0).exp()
>>> product = weights * bell
>>> [round(x, 2) for x in (product / product.sum()).tolist()]
[0.02, 0.36, 0.44, 0.18]
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions
from tfviz.dense_attention import CAUSAL, attention, heads_attention, visible
from tfviz.priors.hard_coded_gaussian import bell

__all__ = ["Localness", "bell_around", "localness_definition"]

KINDS = ("query", "layer", "fixed")
LEAST = 0.1  # no window is narrower
WIDEST = 50.0  # a window that a head learns stays below this, as in the authors' code


def bell_around(i: Any, j: Any, *, centre: Any, window: Any) -> Any:
    """−(j − p)²/(2 (D/2)²), what is added to a score: the exponent of a bell at the place p."""
    return bell(0, j, offset=centre, spread=window / 2)


@named
def localness_definition(
    Q: Float[Tensor, "*heads Lq d_head"],
    K: Float[Tensor, "*heads Lk d_head"],
    V: Float[Tensor, "*heads Lk d_v"],
    mask: Bool[Tensor, "*#heads Lq Lk"] | None,
    centres: Float[Tensor, "*#heads Lq"],
    windows: Float[Tensor, "*#heads Lq"],
) -> tuple[Float[Tensor, "*heads Lq d_v"], Float[Tensor, "*heads Lq Lk"]]:
    """The output and the weights, with the centre and the window of each query."""
    j = torch.arange(K.shape[-2], device=K.device)
    G = bell_around(0, j, centre=centres[..., None], window=windows[..., None])
    return attention(Q, K, V, mask, bias=G)


class Localness(Dense):
    """The core of a layer of h heads, all of which have a bell.

    centre   "query": predicted; "layer": i plus an offset that each head learns; "fixed": i
    window   "query": predicted; "layer": a number that each head learns; "fixed": `size`
    size     the window in tokens, two standard deviations; only where it is fixed
    """

    @named
    def __init__(
        self,
        d_head: int,
        h: int,
        centre: str = "query",
        window: str = "query",
        size: float = 10.0,
    ) -> None:
        super().__init__()
        d = _arguments.integer("d_head", d_head, 1) * _arguments.integer("h", h, 1)
        for name, kind in (("centre", centre), ("window", window)):
            if kind not in KINDS:
                raise ValueError(f"{name} = {kind!r}; give one of {', '.join(KINDS)}")
        self.d_head, self.h, self.centre, self.window = d_head, h, centre, window
        self.size = _arguments.real("size", size, LEAST)
        if "query" in (centre, window):
            self.shared = nn.Linear(d, d)
        if centre == "query":
            self.to_centre = nn.Linear(d, h)
        if window == "query":
            self.to_window = nn.Linear(d, h)
        if centre == "layer":
            self.offset = nn.Parameter(torch.zeros(h))
        if window == "layer":
            self.width = nn.Parameter(torch.zeros(h))

    def predicted(
        self, Q: Float[Tensor, "b h Lq d_head"], last: Float[Tensor, "*#b_h Lq"], start: int = 0
    ) -> tuple[Float[Tensor, "*#b h Lq"], Float[Tensor, "*#b h Lq"]]:
        """p and D of each query, in tokens; the queries stand at start, start + 1, …

        `last` is the last place that each query may use.
        """
        dtype = torch.promote_types(Q.dtype, torch.float32)  # places need more than half precision
        last = last.to(dtype)
        with _fused.full_precision(Q):
            if hasattr(self, "shared"):
                rows = Q.transpose(1, 2).flatten(2).to(dtype)
                hidden = torch.tanh(_linear(self.shared, rows))
            if self.centre == "query":
                p = last * _linear(self.to_centre, hidden).sigmoid().mT
            else:
                i = torch.arange(start, start + Q.shape[2], device=Q.device).to(dtype)
                p = i + self.offset[:, None].to(dtype) if self.centre == "layer" else i[None]
            if self.window == "query":
                D = (last + 1) * _linear(self.to_window, hidden).sigmoid().mT + LEAST
            elif self.window == "layer":
                D = WIDEST * self.width[:, None].to(dtype).sigmoid() + LEAST
            else:
                D = torch.full_like(p[..., :1], self.size)
        p, D = torch.broadcast_tensors(p, D)
        return p, D

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != self.h or Q.shape[3] != self.d_head:
            raise ValueError(
                f"the bells are for {self.h} heads of {self.d_head} numbers, Q has {Q.shape[1]} of "
                f"{Q.shape[3]}; give Localness these sizes"
            )
        if where.crosses and self.centre != "query":
            raise ValueError(
                f"centre = {self.centre!r}: the place of a query means nothing in another sequence;"
                ' predict the centre there, centre="query"'
            )

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        Lq, Lk = Q.shape[2], K.shape[2]
        p, D = self.predicted(Q, last_places(where, Lq, Lk, Q.device), Lk - Lq)
        j = torch.arange(Lk, device=Q.device)
        G = bell_around(0, j, centre=p[..., None], window=D[..., None])
        return heads_attention(Q, K, V, where.pattern, G, where.attention_mask, where.need_weights)


def last_places(where: Where, Lq: int, Lk: int, device: Any = None) -> Float[Tensor, "*b_h Lq"]:
    """The last place that each query may use, 0 where there is none."""
    if where.pattern == CAUSAL and where.attention_mask is None:
        return positions(Lq, Lk, device)[0][:, 0].float()
    mask = visible(where.pattern, Lq, Lk, where.attention_mask, device)
    if mask is None:
        return torch.full((Lq,), Lk - 1.0, device=device)
    places = torch.arange(Lk, device=mask.device)
    last = (mask * places).amax(-1) if Lk else mask.sum(-1)
    return last.expand(*last.shape[:-1], Lq).float()


def _linear(layer: nn.Linear, X: Tensor) -> Tensor:
    return F.linear(X, layer.weight.to(X.dtype), layer.bias.to(X.dtype))
