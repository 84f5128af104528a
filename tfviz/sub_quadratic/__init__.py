"""Attention over a pattern at the cost of its pairs: plain torch, any device, with gradients.

`planner` takes a pattern apart into sets of pairs; `windows` and `gathers` say which queries of a
set meet which keys, and `rows` cuts them out. `merged` puts all sets under one softmax. `loud`
serves mechanisms that join softmaxes of their own.

>>> from tfviz import patterns
>>> x = torch.ones(1, 300, 4)
>>> sparse_attention(x, x, x, patterns.strided(stride=17)).shape
torch.Size([1, 300, 4])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _qkv
from tfviz._arguments import named
from tfviz.patterns.pattern import Pattern
from tfviz.sub_quadratic import merged
from tfviz.sub_quadratic.planner import DENSE, by_head, plan

__all__ = ["DENSE", "by_head", "plan", "sparse_attention"]


@named
def sparse_attention(
    Q: Float[Tensor, "*heads L d"],
    K: Float[Tensor, "*heads L d"],
    V: Float[Tensor, "*heads L dv"],
    pattern: Pattern,
) -> Float[Tensor, "*heads L dv"]:
    """`attention(Q, K, V, pattern)[0]` without the L × L scores.

    Any length, any parameters of the pattern, any leading dimensions; a pattern that differs by
    head wants the heads in the third dimension from the end. A query without any key gives 0.

    Raises TypeError or ValueError for shapes, dtypes or lengths that do not fit, and for NaN.
    """
    if not isinstance(pattern, Pattern):
        raise TypeError(
            f"pattern is a {type(pattern).__name__}; give a Pattern: "
            "tfviz.patterns.table(mask) makes one of a Boolean mask"
        )
    _qkv.check(Q, K, V, self_attention=True)
    pattern.check_length(Q.shape[-2])
    heads = by_head(pattern)
    if len(heads) == 1:
        q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
        out = merged.attend(q, k, v, plan(heads[0], Q.shape[-2]))
        return out.reshape(*Q.shape[:-1], V.shape[-1])
    if Q.dim() < 3 or Q.shape[-3] != len(heads):
        raise ValueError(
            f"{pattern!r} has {len(heads)} heads, Q has shape {tuple(Q.shape)}; "
            f"give Q, K, V of shape (…, {len(heads)}, L, d)"
        )
    split = zip(heads, Q.unbind(-3), K.unbind(-3), V.unbind(-3), strict=True)
    return torch.stack([sparse_attention(q, k, v, head) for head, q, k, v in split], -3)
