"""Additive attention: a small network scores how well a source word fits the next target word.

    e_ij = tanh(s_{i−1} W_a + h_j U_a) v_aᵀ
    α_ij = exp(e_ij) / Σ_r exp(e_ir)
    c_i  = Σ_j α_ij h_j

Bahdanau, Cho, Bengio 2014 (arXiv 1409.0473), section 3.1 and appendix A.1.2. s_{i−1} is the state
of the decoder before it writes word i, h_j what the encoder noted about word j; h_j is key and
value at once. The paper writes columns, v_aᵀ tanh(W_a s_{i−1} + U_a h_j); here vectors are rows.

>>> import torch
>>> S, H = torch.zeros(1, 2), torch.eye(2)
>>> bahdanau_attention(S, H, torch.eye(2), torch.eye(2), torch.ones(2))[1].tolist()
[[0.5, 0.5]]
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Where
from tfviz.dense_attention import attention, visible

__all__ = ["Additive", "AdditiveAttention", "additive_scores", "bahdanau_attention"]


@named
def additive_scores(
    S: Float[Tensor, "*batch Lq ds"],
    H: Float[Tensor, "*batch Lk dh"],
    W_a: Float[Tensor, "ds da"],
    U_a: Float[Tensor, "dh da"],
    v_a: Float[Tensor, "da"],
) -> Float[Tensor, "*batch Lq Lk"]:
    """e_ij for all pairs; |e_ij| ≤ ‖v_a‖₁ because |tanh| < 1. Row i of S is s_{i−1}.

    The sum makes a (…, L_q, L_k, d_a) tensor: that is the price.
    Raises ValueError if shapes do not fit.
    """
    d_a = len(v_a)
    for name, W, of, X in (("W_a", W_a, "S", S), ("U_a", U_a, "H", H)):
        if tuple(W.shape) != (X.shape[-1], d_a):
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}; with {X.shape[-1]} numbers in a row of {of} "
                f"and {d_a} in v_a it must be ({X.shape[-1]}, {d_a})"
            )
    hidden = torch.tanh((S @ W_a).unsqueeze(-2) + (H @ U_a).unsqueeze(-3))  # (…, L_q, L_k, d_a)
    return hidden @ v_a


@named
def bahdanau_attention(
    S: Float[Tensor, "*batch Lq ds"],
    H: Float[Tensor, "*batch Lk dh"],
    W_a: Float[Tensor, "ds da"],
    U_a: Float[Tensor, "dh da"],
    v_a: Float[Tensor, "da"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch Lq dh"], Float[Tensor, "*batch Lq Lk"]]:
    """(contexts c, alignment α). `pattern`: a Bool (L_q, L_k) mask, True = may attend."""
    return _blend(additive_scores(S, H, W_a, U_a, v_a), H, pattern)


def _blend(scores: Tensor, V: Tensor, pattern: Any) -> tuple[Tensor, Tensor]:
    scores = scores.to(V.dtype)  # autocast makes them in half precision
    # Empty queries and keys leave the scores to the bias: the softmax keeps its one home.
    Q, K = scores.new_zeros(*scores.shape[:-1], 1), V.new_zeros(*V.shape[:-1], 1)
    return attention(Q, K, V, pattern, bias=scores)


class AdditiveAttention(nn.Module):
    """The same with trained W_a, U_a, v_a: S (…, L_q, d_s), H (…, L_k, d_h) → (c, α)."""

    @named
    def __init__(self, d_s: int, d_h: int, d_a: int) -> None:
        super().__init__()
        for name, size in (("d_s", d_s), ("d_h", d_h), ("d_a", d_a)):
            _arguments.integer(name, size, 1)
        self.W_a = nn.Parameter(torch.randn(d_s, d_a) / d_s**0.5)
        self.U_a = nn.Parameter(torch.randn(d_h, d_a) / d_h**0.5)
        self.v_a = nn.Parameter(torch.randn(d_a) / d_a**0.5)

    @named
    def forward(
        self, S: Float[Tensor, "*batch Lq ds"], H: Float[Tensor, "*batch Lk dh"]
    ) -> tuple[Float[Tensor, "*batch Lq dh"], Float[Tensor, "*batch Lq Lk"]]:
        return bahdanau_attention(S, H, self.W_a, self.U_a, self.v_a)


class Additive(AdditiveAttention):
    """The same score as a core of models, for heads of d_head numbers: q_i asks in the place of
    s_{i−1}, k_j is asked in the place of h_j, v_j answers. All heads share W_a, U_a, v_a."""

    @named
    def __init__(self, d_head: int, d_a: int) -> None:
        super().__init__(d_head, d_head, d_a)

    @named
    def forward(  # type: ignore[override]
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor]:
        K, V = where.joined(K, V)
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        scores = additive_scores(Q, K, self.W_a, self.U_a, self.v_a)
        seen = visible(where.pattern, Q.shape[2], K.shape[2], where.attention_mask, Q.device)
        return _blend(scores, V, seen)
