"""Dynamic span: the token itself says how far back its heads look.

Sukhbaatar, Grave, Bojanowski, Joulin 2019 (arXiv 1905.07799). For each head, with learned v and b,

    z_t = S σ(v · x_t + b)

S being the longest span allowed; the mask and the price are those of `adaptive_span`. The paper's
x_t is the input of the layer. Here v reads the head's query q_t = x_t W^q, all that a core gets:
d_head + 1 numbers for each head in place of d + 1. Nothing halts: this is no adaptive computation.

>>> Q = torch.tensor([[[[0.0], [9.0], [-9.0]]]])
>>> dynamic_spans(Q, v=torch.ones(1, 1), b=torch.zeros(1), S=10).round()
tensor([[[ 5., 10.,  0.]]])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.adaptive.adaptive_span import Span
from tfviz.cores import Where

__all__ = ["DynamicSpan", "dynamic_spans"]


@named
def dynamic_spans(
    Q: Float[Tensor, "b h L d"], v: Float[Tensor, "h d"], b: Float[Tensor, "h"], S: float
) -> Float[Tensor, "b h L"]:
    """z_t of every token and head."""
    return S * (torch.einsum("bhld,hd->bhl", Q, v.to(Q)) + b.to(Q)[:, None]).sigmoid()


class DynamicSpan(Span):
    """z_t = S σ(v · q_t + b) as a core; v begins at 0, so that all tokens begin with S σ(b).

    S   the longest span;  R   the width of the ramp;  start   z_t at the beginning, 0 < start < S
    """

    @named
    def __init__(self, h: int, d_head: int, S: float, R: float, start: float = 1.0) -> None:
        super().__init__(S, R)
        share = _arguments.real("start", start, 0, self.S) / self.S
        if share in (0, 1):
            raise ValueError(f"start = {start}: a sigmoid never gets there; choose 0 < start < {S}")
        self.v = nn.Parameter(torch.zeros(_arguments.integer("h", h, 1), d_head))
        self.b = nn.Parameter(torch.full((h,), share).logit())

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1::2] != self.v.shape:
            (h, d), (_, asked, _, width) = self.v.shape, Q.shape
            raise ValueError(
                f"v is for {h} heads of {d}, Q has {asked} of {width}; make it for those of Q"
            )

    def spans(self, Q: Tensor) -> Tensor:
        return dynamic_spans(Q, self.v, self.b, self.S)
