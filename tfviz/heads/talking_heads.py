"""Talking heads: scores are mixed across heads before the softmax, and weights after it.

    S_b = Σ_a J_a (P_l)_ab,   W_b = softmax(S_b),   U_c = Σ_b W_b (P_w)_bc,   O_c = U_c V_c

Shazeer, Lan, Cheng, Ding and Hou 2020 (arXiv 2003.02436). J_a = Q_a K_aᵀ/√d_k for h_k heads of
queries and keys, P_l is (h_k, h), P_w is (h, h_v), and there are h_v heads of values. A mixture is
taken for each pair of query and key by itself, so it never crosses the mask. `Talking` is the core
and needs all L² scores; `talking` gives a model the three numbers of heads.

x-transformers adds the mixture to the scores, S = J + mix(J), and mixes weights as the paper does.
That is the paper's form with P_l + I: `residual` makes the one of the other.

>>> torch.manual_seed(0)  # doctest: +ELLIPSIS
<torch._C.Generator object at ...>
>>> core, X = Talking(h=2), torch.randn(1, 2, 5, 4)
>>> bool((core(X, X, X, Where())[0] - Dense()(X, X, X, Where())[0]).abs().max() < 1e-5)
True
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.dense_attention import attention

__all__ = ["Talking", "residual", "talking", "talking_definition"]


@named
def talking_definition(
    Q: Float[Tensor, "*b h_k Lq d"],
    K: Float[Tensor, "*b h_k Lk d"],
    V: Float[Tensor, "*b h_v Lk dv"],
    P_l: Float[Tensor, "h_k h"],
    P_w: Float[Tensor, "h h_v"],
    mask: Bool[Tensor, "*h Lq Lk"] | None = None,
) -> tuple[Float[Tensor, "*b h_v Lq dv"], Float[Tensor, "*b h_v Lq Lk"]]:
    """(out, U), head by head."""
    _check(P_l, P_w, Q.shape[-3], V.shape[-3])
    J = [Q[..., a, :, :] @ K[..., a, :, :].mT / Q.shape[-1] ** 0.5 for a in range(len(P_l))]
    W = []
    for b in range(len(P_w)):
        S = torch.stack([P_l[a, b] * J[a] for a in range(len(P_l))]).sum(0)
        own = mask[b] if mask is not None and mask.dim() == 3 else mask
        zeros = torch.zeros_like(Q[..., 0, :, :]), torch.zeros_like(K[..., 0, :, :])
        W.append(attention(*zeros, K[..., 0, :, :], own, bias=S)[1])  # its softmax, of S alone
    U = [
        torch.stack([P_w[b, c] * W[b] for b in range(len(P_w))]).sum(0) for c in range(P_w.shape[1])
    ]
    out = [U[c] @ V[..., c, :, :] for c in range(len(U))]
    return torch.stack(out, -3), torch.stack(U, -3)


def _check(P_l: Tensor, P_w: Tensor, h_k: int, h_v: int) -> None:
    """Raises ValueError unless the matrices lead from h_k heads to h, and from there to h_v."""
    wanted = {"P_l": (P_l, "(h_k, h)"), "P_w": (P_w, "(h, h_v)")}
    for name, (P, shape) in wanted.items():
        if P.dim() != 2:
            raise ValueError(f"{name} has shape {tuple(P.shape)}; give {shape}")
    if len(P_l) != h_k or P_l.shape[1] != len(P_w) or P_w.shape[1] != h_v:
        raise ValueError(
            f"P_l is {tuple(P_l.shape)} and P_w {tuple(P_w.shape)}, for {h_k} heads of queries and "
            f"{h_v} of values; give ({h_k}, h) and (h, {h_v}), with one h"
        )


def mixed(X: Float[Tensor, "b h Lq Lk"], P: Float[Tensor, "h g"]) -> Float[Tensor, "b g Lq Lk"]:
    """Σ_h X_h P_hg for each head g and each pair: a convolution of heads by single pairs."""
    return F.conv2d(X, P.T[:, :, None, None].to(X))


@named
def residual(P: Float[Tensor, "h h"]) -> Float[Tensor, "h h"]:
    """P + I: the paper's P_l for a model of x-transformers, which adds the mixture to the scores.

    Theirs starts at I, so a model of theirs starts with scores that are twice as large.
    """
    if P.dim() != 2 or len(P) != P.shape[1]:
        raise ValueError(
            f"P has shape {tuple(P.shape)}; what is added to the scores has as many heads as they "
            "have: give (h, h)"
        )
    return P + torch.eye(len(P)).to(P)


class Talking(Dense):
    """Attention whose heads exchange scores and weights; h_k and h_v are h unless they are given.

    A square matrix starts as the identity, so that equal numbers of heads start as multi-head
    attention; any other is random, of variance 1 / rows. A cache keeps keys and values as they are.
    """

    @named
    def __init__(self, h: int, h_k: int | None = None, h_v: int | None = None) -> None:
        super().__init__()
        h = _arguments.integer("h", h, 1)
        h_k, h_v = (
            h if number is None else _arguments.integer(name, number, 1)
            for name, number in (("h_k", h_k), ("h_v", h_v))
        )
        self.P_l, self.P_w = nn.Parameter(_start(h_k, h)), nn.Parameter(_start(h, h_v))

    @property
    def heads(self) -> tuple[int, int]:
        """(h_k, h_v): of queries and keys, and of values."""
        return len(self.P_l), self.P_w.shape[1]

    def scores(self, s: Float[Tensor, "b n Lq Lk"], where: Where) -> Float[Tensor, "b h Lq Lk"]:
        return mixed(s[:, : len(self.P_l)], self.P_l)

    def mix(self, A: Float[Tensor, "b h Lq Lk"], where: Where) -> Float[Tensor, "b n Lq Lk"]:
        return _filled(mixed(A, self.P_w), max(self.heads))

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        """Attention wants one number of heads: where h_k and h_v differ, empty ones fill up."""
        h_k, h_v = self.heads
        for name, X, heads in (("Q", Q, h_k), ("K", K, h_k), ("V", V, h_v)):
            if X.shape[1] != heads and (name == "Q" or heads % X.shape[1]):
                raise ValueError(
                    f"{name} has {X.shape[1]} heads, the core {heads}; give a model the numbers of "
                    "heads by `talking`, or make the core with those it has"
                )
        K, V = (x.repeat_interleave(n // x.shape[1], 1) for x, n in ((K, h_k), (V, h_v)))
        Q, K, V = (_filled(x, max(h_k, h_v)) for x in (Q, K, V))
        out, U = super().attend(Q, K, V, where)
        return out[:, :h_v], None if U is None else U[:, :h_v]


def _filled(X: Float[Tensor, "b h L d"], n: int) -> Float[Tensor, "b n L d"]:
    """With heads of zeros after its own, n in all."""
    return X if X.shape[1] == n else F.pad(X, (0, 0, 0, 0, 0, n - X.shape[1]))


def _start(rows: int, columns: int) -> Tensor:
    return torch.eye(rows) if rows == columns else torch.randn(rows, columns) / rows**0.5


@named
def talking(d: int, h_k: int, h: int, h_v: int, d_k: int, d_v: int) -> dict[str, Any]:
    """What a model of width d is told to have h_k heads of queries and keys, h, and h_v of values.

    `GPT(vocab, d, …, **talking(d, 2, 8, 4, d_k=16, d_v=8))`: queries and keys have d_k numbers,
    values d_v. The model's own number of heads is then without meaning.
    """
    sizes = {"d": d, "h_k": h_k, "h": h, "h_v": h_v, "d_k": d_k, "d_v": d_v}
    for name, size in sizes.items():
        _arguments.integer(name, size, 1)
    return {
        "project": partial(Projections, d, h_k, h_v, d_k, d_v),
        "core": lambda: Talking(h, h_k, h_v),
        "join": partial(Join, d, h_v, d_v),
    }


class Projections(nn.Module):
    """X → Q and K in h_k heads of d_k numbers, V in h_v heads of d_v; without biases."""

    def __init__(self, d: int, h_k: int, h_v: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.W_q, self.W_k = (nn.Linear(d, h_k * d_k, bias=False) for _ in "qk")
        self.W_v = nn.Linear(d, h_v * d_v, bias=False)
        self.heads = h_k, h_k, h_v

    def forward(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        Y = X if memory is None else memory
        made = self.W_q(X), self.W_k(Y), self.W_v(Y)
        Q, K, V = (
            x.unflatten(-1, (h, -1)).transpose(1, 2) for x, h in zip(made, self.heads, strict=True)
        )
        return Q, K, V


class Join(nn.Linear):
    """The h_v heads side by side, times W^o."""

    def __init__(self, d: int, h_v: int, d_v: int) -> None:
        super().__init__(h_v * d_v, d, bias=False)

    def forward(
        self, heads: Float[Tensor, "b h_v L d_v"], X: Tensor | None = None
    ) -> Float[Tensor, "b L d"]:
        return super().forward(heads.transpose(1, 2).flatten(2))


def extra_flops(L: int, h_k: int, h: int, h_v: int) -> int:
    """2 L² h (h_k + h_v): what both mixtures take, two operations for each number that is mixed.

    >>> extra_flops(L=512, h_k=12, h=12, h_v=12)
    150994944
    """
    L, h_k, h, h_v = (
        _arguments.integer(name, number, 1)
        for name, number in (("L", L), ("h_k", h_k), ("h", h), ("h_v", h_v))
    )
    return 2 * L * L * h * (h_k + h_v)
