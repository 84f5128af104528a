"""A mixture of experts: a router sends each token to a few of many feed-forward layers.

Shazeer and others 2017 (`shazeer2017outrageously`). Of the probabilities p = softmax(x W) of all
experts, a token keeps those of its k likeliest, and runs only these experts:

    y = Σ_{u in top_k(p)} p_u E_u(x)

The paper chooses before the softmax and adds noise to the scores; here, as in later models, the
kept probabilities are those of the softmax over all experts, so that they need not sum to one.

>>> import torch
>>> routed(torch.tensor([[0.5, 0.1, 0.4]]), k=2)
tensor([[0.5000, 0.0000, 0.4000]])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["routed"]


@named
def routed(p: Float[Tensor, "*tokens experts"], k: int) -> Float[Tensor, "*tokens experts"]:
    """The probabilities of each token's k likeliest experts; zero for the others.

    Raises TypeError unless p is a tensor of real numbers. Raises ValueError unless k is between 1
    and the number of experts.
    """
    _arguments.tensor("p", p, "(…, experts)")
    _arguments.integer("k", k, 1, p.shape[-1])
    best = p.topk(k)
    return torch.zeros_like(p).scatter(-1, best.indices, best.values)
