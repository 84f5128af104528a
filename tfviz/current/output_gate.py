"""An output gate: each token decides, number by number, what it takes of what its heads have found.

Qiu et al. 2025 (arXiv 2505.06708), in the place that they recommend, G1, between the weighted sum
of values and W^o, with a gate for each number of each head:

    o_im ← o_im ∘ σ(x_i W_m^g)        y_i = [o_i1; …; o_ih] W^o

x_i is what the layer reads, after the norm: its query is made of the same row. A gate near 0 lets
a head say nothing, which a softmax cannot, as its weights sum to 1. Without the gate, a value goes
through W_m^v and then W_m^o, which together are one matrix of rank d_head at the most; the gate
puts something between them that is not linear. The weights A stay the same.

>>> import torch
>>> heads, X = torch.tensor([[[[2.0, 4.0]]]]), torch.tensor([[[1.0]]])
>>> gated_heads(heads, X, W_g=torch.tensor([[0.0], [3.0]]).log1p())  # gates of ½ and of ⅘
tensor([[[[1.0000, 3.2000]]]])
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["OutputGate", "gated_heads"]


@named
def gated_heads(
    heads: Float[Tensor, "b h L d_head"],
    X: Float[Tensor, "b L d"],
    W_g: Float[Tensor, "h*d_head d"],
) -> Float[Tensor, "b h L d_head"]:
    """heads ∘ σ(X W_gᵀ), each head with d_head gates of its own for each token."""
    gates = F.linear(X, W_g).unflatten(-1, (heads.shape[1], -1)).transpose(1, 2)
    return heads * gates.sigmoid()


class OutputGate(nn.Module):
    """In the place of W^o: (heads ∘ σ(X W^g)) W^o. `GPT(…, join=OutputGate)`."""

    @named
    def __init__(self, d: int, h: int, d_head: int) -> None:
        super().__init__()
        sizes = {"d": d, "h": h, "d_head": d_head}
        d, h, d_head = (_arguments.integer(name, x, 1) for name, x in sizes.items())
        self.W_g = nn.Linear(d, h * d_head, bias=False)
        self.W_o = nn.Linear(h * d_head, d)

    @named
    def forward(
        self, heads: Float[Tensor, "b h L d_head"], X: Float[Tensor, "b L d"]
    ) -> Float[Tensor, "b L d"]:
        out: Tensor = self.W_o(gated_heads(heads, X, self.W_g.weight).transpose(1, 2).flatten(2))
        return out
