"""Multi-head attention: several small attentions on the same input, and one matrix that adds up.

    head_n = attn(X_q W_n^q, X_k W_n^k, X_v W_n^v)        MHA = [head_0; …; head_{h−1}] W^o
                                                              = Σ_n head_n W_n^o

Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.2. W_n^o are the d_v rows of W^o that meet head
n. Heads count from 0; no biases. A head reads all of X, through projections of its own: what is
split is the width of the projections, never the input. The efficient form, all heads out of one
matrix product, is `tfviz.models.blocks.MultiHeadAttention`; `head_matrices` reads its weights.

>>> weight_at(torch.eye(4).roll(-1, 1), back=1).item()
1.0
>>> mean_distance(torch.eye(4)).item()
0.0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.dense_attention import attention
from tfviz.models.blocks import MultiHeadAttention

__all__ = ["head_matrices", "multi_head_definition", "pruned", "without_heads"]


def heads(
    X_q: Float[Tensor, "*batch Lq d"],
    X_k: Float[Tensor, "*batch Lk d"],
    X_v: Float[Tensor, "*batch Lk d"],
    W_q: Float[Tensor, "h d dk"],
    W_k: Float[Tensor, "h d dk"],
    W_v: Float[Tensor, "h d dv"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch h Lq dv"], Float[Tensor, "*batch h Lq Lk"]]:
    """(what every head found, its weights A). `pattern`: a Pattern or a mask, True = may attend."""
    for name, W, X in (("W_q", W_q, X_q), ("W_k", W_k, X_k), ("W_v", W_v, X_v)):
        if X.ndim < 2:
            raise ValueError(
                f"what {name} multiplies has shape {tuple(X.shape)}; give rows (L, d), one row "
                "for each token"
            )
        if W.ndim != 3 or W.shape[1] != X.shape[-1] or len(W) != len(W_q):
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}, rows of X have {X.shape[-1]} numbers and W_q "
                f"{len(W_q)} heads; give {name} the shape ({len(W_q)}, {X.shape[-1]}, width)"
            )
    if W_q.shape[2] != W_k.shape[2]:
        raise ValueError(
            f"W_q makes queries of width {W_q.shape[2]}, W_k keys of width {W_k.shape[2]}; "
            "their dot product needs equal widths"
        )
    # one more axis before (L, d), and every head multiplies the whole of X
    Q, K, V = (X.unsqueeze(-3) @ W for X, W in ((X_q, W_q), (X_k, W_k), (X_v, W_v)))
    return attention(Q, K, V, pattern)  # each head divides by the root of its own width d_k


@named
def multi_head_definition(
    X_q: Float[Tensor, "*batch Lq d"],
    X_k: Float[Tensor, "*batch Lk d"],
    X_v: Float[Tensor, "*batch Lk d"],
    W_q: Float[Tensor, "h d dk"],
    W_k: Float[Tensor, "h d dk"],
    W_v: Float[Tensor, "h d dv"],
    W_o: Float[Tensor, "h*dv d_out"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch Lq d_out"], Float[Tensor, "*batch h Lq Lk"]]:
    """(output, A) by the definition: concatenate the heads, then project."""
    H, A = heads(X_q, X_k, X_v, W_q, W_k, W_v, pattern)
    _blocks(W_o, *H.shape[-3::2])
    return torch.cat(H.unbind(-3), -1) @ W_o, A


def contributions(
    H: Float[Tensor, "*batch h Lq dv"], W_o: Float[Tensor, "h*dv d_out"]
) -> Float[Tensor, "*batch h Lq d_out"]:
    """head_n W_n^o, what each head adds to the output; their sum over heads is the output."""
    if H.ndim < 3:
        raise ValueError(f"H has shape {tuple(H.shape)}; give what every head found, (h, L, d_v)")
    return H @ _blocks(W_o, *H.shape[-3::2])


@named
def pruned(
    W_o: Float[Tensor, "h*dv d_out"], h: int, without: Sequence[int]
) -> Float[Tensor, "h*dv d_out"]:
    """W^o with zeros for W_n^o of the heads in `without`: they are not heard, the others stay."""
    if len(W_o) % _arguments.integer("h", h, 1):
        raise ValueError(f"W_o has {len(W_o)} rows for h = {h} heads; h must divide them")
    blocks = W_o.unflatten(0, (h, -1)).clone()
    for n in without:
        blocks[_arguments.integer("head", n, 0, h - 1)] = 0
    return blocks.flatten(0, 1)


def _blocks(W_o: Tensor, h: int, d_v: int) -> Float[Tensor, "h dv d_out"]:
    if len(W_o) != h * d_v:
        raise ValueError(
            f"W_o has {len(W_o)} rows, but {h} heads of width {d_v} make {h * d_v} columns; give "
            f"W_o the shape ({h * d_v}, d)"
        )
    return W_o.unflatten(0, (h, d_v))


# --- heads of a model ----------------------------------------------------------------------------


@named
def head_matrices(module: MultiHeadAttention) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(W_q, W_k, W_v, W_o) of a model's attention, as the functions above take them.

    Without its biases. `nn.Linear` keeps the transpose, and one product makes Q, K and V.
    """
    parts = module.W_qkv.weight.split(module.widths)  # (d or h_kv·d_head, d) each
    q, k, v = (W.unflatten(0, (-1, module.d_head)).transpose(1, 2) for W in parts)
    share = module.h // module.h_kv
    return q, k.repeat_interleave(share, 0), v.repeat_interleave(share, 0), module.W_o.weight.T


@contextmanager
def without_heads(module: MultiHeadAttention, numbers: Sequence[int]) -> Iterator[None]:
    """While this lasts, the module does not hear these heads; then all is as it was."""
    W = module.W_o.weight
    before = W.detach().clone()
    try:
        W.data.copy_(pruned(before.T, module.h, numbers).T)
        yield
    finally:
        W.data.copy_(before)


def mean_distance(A: Float[Tensor, "*batch Lq Lk"]) -> Float[Tensor, "*batch"]:
    """Σ_j a_ij |i − j|, averaged over the queries: how far a head looks. Queries stand last."""
    if A.ndim < 2 or A.shape[-2] > A.shape[-1]:
        raise ValueError(f"A has shape {tuple(A.shape)}; give (…, Lq, Lk) with Lq ≤ Lk")
    Lq, Lk = A.shape[-2:]
    j = torch.arange(Lk, device=A.device)
    away = (j[Lk - Lq :, None] - j).abs()
    return (A * away).sum(-1).mean(-1)


def weight_at(
    A: Float[Tensor, "*batch L L"], back: int, first: int | None = None
) -> Float[Tensor, "*batch"]:
    """Mean weight of the key `back` places before the query, for queries from `first` on.

    back = 1 finds previous-token heads. Where a text repeats itself with period p, back = p − 1 is
    the token that came after this one last time, and finds induction heads.
    """
    if A.ndim < 2 or A.shape[-2] != A.shape[-1]:
        raise ValueError(f"A has shape {tuple(A.shape)}; give a square map, (L, L)")
    _arguments.integer("back", back, 0, A.shape[-1] - 1)
    first = back if first is None else _arguments.integer("first", first, back, A.shape[-1] - 1)
    return A.diagonal(-back, -2, -1)[..., first - back :].mean(-1)
