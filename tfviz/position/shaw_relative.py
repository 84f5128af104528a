"""Relative position representations: key and value of a pair carry a vector for their distance.

    c_ij = clip(j − i, −k, k)        a^K_ij = P^k[c_ij]        a^V_ij = P^v[c_ij]
    s_ij = q_i (k_j + a^K_ij)ᵀ / √d_head        z_i = Σ_j a_ij (v_j + a^V_ij)

Shaw, Uszkoreit, Vaswani 2018 (arXiv 1803.02155), equations 1 to 4. P^k and P^v have 2k + 1 rows of
d_head numbers, one for each label; row c + k holds label c. All heads of a layer share the two
tables, an option of section 3.3; the paper's base model has its own for each layer and head (4.1).

>>> labels(3, 3, k=1).tolist()
[[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.cores import Dense, positions
from tfviz.dense_attention import attention

__all__ = ["Shaw", "shaw", "shaw_attention"]

Table = Float[Tensor, "labels d_head"]


def label(i: Any, j: Any, *, k: int) -> Any:
    """clip(j − i, −k, k): what a pair is told about its places."""
    return torch.clamp(j - i, -k, k)


def labels(Lq: int, Lk: int, k: int, device: Any = None) -> Int[Tensor, "Lq Lk"]:
    """The label of every pair; the queries are the last Lq of the Lk places."""
    _arguments.integer("k", k, 0)
    return label(*positions(Lq, Lk, device), k=k)


@named
def shaw_attention(
    Q: Float[Tensor, "*heads Lq d_head"],
    K: Float[Tensor, "*heads Lk d_head"],
    V: Float[Tensor, "*heads Lk d_head"],
    P_k: Table,
    P_v: Table,
    pattern: Any = None,
) -> tuple[Float[Tensor, "*heads Lq d_head"], Float[Tensor, "*heads Lq Lk"]]:
    """(out, A) by the definition: a vector for every pair, so (Lq, Lk, d_head) numbers twice."""
    _qkv.check(Q, K, V, self_attention=False)
    k = _longest(P_k, P_v)
    row = labels(Q.shape[-2], K.shape[-2], k, Q.device) + k
    a_k, a_v = P_k[row], P_v[row]  # (Lq, Lk, d_head)
    extra = torch.einsum("...id,ijd->...ij", Q, a_k) / Q.shape[-1] ** 0.5
    out, A = attention(Q, K, V, pattern, bias=extra)
    return out + torch.einsum("...ij,ijd->...id", A, a_v), A


def key_scores(
    Q: Float[Tensor, "*heads Lq d_head"], P_k: Table, Lk: int
) -> Float[Tensor, "*heads Lq Lk"]:
    """q_i a^K_ijᵀ: each query scores the 2k + 1 labels, then every pair looks its own up."""
    row = labels(Q.shape[-2], Lk, _longest(P_k), Q.device) + _longest(P_k)
    return (Q @ P_k.T).gather(-1, row.expand(*Q.shape[:-1], Lk))


def label_weights(A: Float[Tensor, "*heads Lq Lk"], k: int) -> Float[Tensor, "*heads Lq labels"]:
    """How much weight each query puts on each label; Σ_j a_ij a^V_ij is this times P^v."""
    row = labels(A.shape[-2], A.shape[-1], k, A.device) + k
    return A.new_zeros(*A.shape[:-1], 2 * k + 1).scatter_add(-1, row.expand_as(A), A)


def _longest(*tables: Table) -> int:
    """k of tables with 2k + 1 rows."""
    rows = [len(P) for P in tables]
    if rows[0] % 2 == 0 or len(set(rows)) > 1:
        raise ValueError(
            f"a table has {' and '.join(map(str, rows))} rows; give 2k + 1 (the same k for both), "
            "for the labels −k … k"
        )
    return rows[0] // 2


class Shaw(Dense):
    """Both tables as the core of a layer; no tensor is larger than (b, h, Lq, Lk).

    With values=False there is no P^v, and attention need not make its weights.
    """

    by_distance = True

    @named
    def __init__(self, d_head: int, k: int, *, values: bool = True) -> None:
        super().__init__()
        rows = 2 * _arguments.integer("k", k, 0) + 1
        shape = rows, _arguments.integer("d_head", d_head, 1)
        self.k, self.reads_weights = k, values
        self.P_k = nn.Parameter(torch.randn(shape) / rows**0.5)
        self.P_v = nn.Parameter(torch.randn(shape) / rows**0.5) if values else None

    def bias(self, Q: Tensor, K: Tensor) -> Float[Tensor, "b h Lq Lk"]:
        return key_scores(Q, self.P_k, K.shape[-2]) / Q.shape[-1] ** 0.5

    def values(self, A: Tensor) -> Float[Tensor, "b h Lq d_head"]:
        if self.P_v is None:
            raise ValueError("this layer has no P^v; make it with Shaw(d_head, k, values=True)")
        return label_weights(A, self.k) @ self.P_v


@named
def shaw(d_head: int, k: int, *, values: bool = True) -> Callable[[], Shaw]:
    """What a model takes as `core`: it makes a Shaw for each layer."""
    return lambda: Shaw(d_head, k, values=values)
