"""Scaled dot-product self-attention, one head.

    Q = X W^q    K = X W^k    V = X W^v    attn(Q, K, V) = softmax(Q Kᵀ / √d_k) V

Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.1. The softmax runs over the allowed keys S_i of
each query and a row without keys gives zeros: both are `tfviz.attention`. This room adds the three
projections, and what it takes to see why the scores are divided by √d_k.

>>> row_entropy(torch.tensor([0.5, 0.5, 0.0])).item() == torch.tensor(2.0).log().item()
True
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.dense_attention import attention

__all__ = ["SelfAttention", "row_entropy", "self_attention", "softmax_slope"]


@named
def self_attention(
    X: Float[Tensor, "*batch L d"],
    W_q: Float[Tensor, "d dk"],
    W_k: Float[Tensor, "d dk"],
    W_v: Float[Tensor, "d dv"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch L dv"], Float[Tensor, "*batch L L"]]:
    """(output, A): every row of X asks, is asked, and answers, each through its own projection.

    `pattern` is a Pattern or a Bool (L, L) mask, True = may attend. Raises ValueError if a
    matrix does not fit X or W_q and W_k differ in width.
    """
    for name, W in (("W_q", W_q), ("W_k", W_k), ("W_v", W_v)):
        if W.ndim != 2 or W.shape[0] != X.shape[-1]:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}, but rows of X have {X.shape[-1]} numbers; "
                f"give {name} the shape ({X.shape[-1]}, width)"
            )
    if W_q.shape[1] != W_k.shape[1]:
        raise ValueError(
            f"W_q makes queries of width {W_q.shape[1]}, W_k keys of width {W_k.shape[1]}; "
            "their dot product needs equal widths"
        )
    return attention(X @ W_q, X @ W_k, X @ W_v, pattern)


class SelfAttention(nn.Module):
    """The same with trained matrices, X (…, L, d) → (…, L, d_v). One head, no bias, no W^o."""

    @named
    def __init__(self, d: int, d_k: int, d_v: int) -> None:
        super().__init__()
        for name, size in (("d", d), ("d_k", d_k), ("d_v", d_v)):
            _arguments.integer(name, size, 1)
        self.W_q = nn.Parameter(torch.randn(d, d_k) / d**0.5)  # unit variance in, unit variance out
        self.W_k = nn.Parameter(torch.randn(d, d_k) / d**0.5)
        self.W_v = nn.Parameter(torch.randn(d, d_v) / d**0.5)

    @named
    def forward(self, X: Float[Tensor, "*batch L d"], pattern: Any = None) -> Tensor:
        return self_attention(X, self.W_q, self.W_k, self.W_v, pattern)[0]


@named
def row_entropy(A: Float[Tensor, "*batch L"]) -> Float[Tensor, "*batch"]:
    """−Σ_j a_j ln a_j of each row in nats: 0 for one-hot, ln n for n equal weights (0 ln 0 = 0)."""
    return -torch.special.xlogy(A, A).sum(-1)


@named
def softmax_slope(A: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """‖∂a/∂s‖_F for a = softmax(s): how much the weights still answer to the scores.

    The Jacobian is diag(a) − aᵀa; its norm is 0 for a one-hot row, so nothing can be learned there.
    """
    square, cube = (A**2).sum(-1), (A**3).sum(-1)
    return (square - 2 * cube + square**2).clamp_min(0).sqrt()
