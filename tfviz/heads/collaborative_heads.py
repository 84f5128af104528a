"""Collaborative heads: one set of query and key features for all, and each head weighs them.

    head_i = softmax((X W̃^q diag(m_i) (X W̃^k)ᵀ + 1 (X w_i)ᵀ)/√d_h) X W_i^v

Cordonnier, Loukas and Jaggi 2020 (arXiv 2006.16362); the official code is
epfml/collaborative-attention. W̃^q and W̃^k are (d, d̃_k), the mixing vectors m_i are the rows of an
(h, d̃_k) matrix, and w_i, the content bias, is a vector for each head. In `blocks`, where m_i is 1
at the d_h features of head i and else 0, it is multi-head attention.

`collaborative` gives it to a model, `convert` makes it of a trained one: T_i = W_i^q W_i^kᵀ for all
heads is a tensor (d, h, d), and its PARAFAC of rank d̃_k is W̃^q, m and W̃^k. What a head's bias of
queries adds to its scores becomes w_i; a bias of keys shifts whole rows, which the softmax ignores.

>>> blocks(h=2, d_k=4).tolist()
[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.dense_attention import attention
from tfviz.models.blocks import MultiHeadAttention

__all__ = ["Factors", "SharedKeys", "collaborative", "collaborative_definition", "parafac"]

Model = TypeVar("Model", bound=nn.Module)
SPREAD = 0.2
"""Of the mixing vectors at the start, as in the official code."""


@named
def collaborative_definition(
    X: Float[Tensor, "*batch L d"],
    W_q: Float[Tensor, "d dk"],
    W_k: Float[Tensor, "d dk"],
    m: Float[Tensor, "h dk"],
    W_v: Float[Tensor, "h d dv"],
    content: Float[Tensor, "h d"] | None = None,
    scale: float | None = None,
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch h L dv"], Float[Tensor, "*batch h L L"]]:
    """(what each head finds, A of each head), head by head. `scale`: √(d̃_k/h) without it."""
    scale = math.sqrt(W_q.shape[1] / len(m)) if scale is None else scale
    heads, maps = [], []
    for i in range(len(m)):
        Q, K = X @ W_q * m[i], X @ W_k
        bias = None if content is None else (X @ content[i])[..., None, :] / scale
        grown = math.sqrt(W_q.shape[1]) / scale  # `attention` divides by the width of a key
        out, A = attention(grown * Q, K, X @ W_v[i], pattern, bias)
        heads.append(out)
        maps.append(A)
    return torch.stack(heads, -3), torch.stack(maps, -3)


def blocks(h: int, d_k: int) -> Float[Tensor, "h d_k"]:
    """Mixing vectors that share nothing: head i has features i d_k/h up to (i + 1) d_k/h."""
    if _arguments.integer("d_k", d_k, 1) % _arguments.integer("h", h, 1):
        raise ValueError(f"h = {h}, d_k = {d_k}; h must divide d_k, so that blocks are equal")
    return torch.eye(h).repeat_interleave(d_k // h, 1)


class SharedKeys(Dense):
    """Attention whose heads may share one head of keys while each has its own values.

    A cache keeps the shared keys once, where a grouped model would share the values too.
    """

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        return super().attend(Q, K, V, where)


class Shared(nn.Module):
    """X → Q = X W̃^q diag(m_i) for each head, one K = X W̃^k for all, V for each head.

    With a content bias, queries and keys have h numbers more: those of head i are all 0 but one,
    which meets X w_i. Q is scaled for a core that divides by the root of the width of a key.
    """

    def __init__(
        self, d: int, h: int, d_k: int, *, content: bool = True, mixing: Tensor | None = None
    ) -> None:
        super().__init__()
        d, h = _arguments.integer("d", d, 1), _arguments.integer("h", h, 1)
        d_k = _arguments.integer("d_k", d_k, 1)
        if d % h:
            raise ValueError(f"d = {d}, h = {h}; h must divide d, so that values have one width")
        if mixing is not None and mixing.shape != (h, d_k):
            raise ValueError(f"mixing has shape {tuple(mixing.shape)}; give ({h}, {d_k})")
        self.h, self.scale = h, math.sqrt(d_k / h)
        self.W_q, self.W_k = (nn.Linear(d, d_k, bias=False) for _ in "qk")
        self.W_v = nn.Linear(d, d)
        self.m = nn.Parameter(SPREAD * torch.randn(h, d_k) if mixing is None else mixing.clone())
        self.content = nn.Linear(d, h, bias=False) if content else None

    def forward(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        Y = X if memory is None else memory
        Q, K = self.W_q(X)[:, None] * self.m[:, None], self.W_k(Y)[:, None]
        if self.content is not None:
            own = torch.eye(self.h).to(Q)[:, None].expand(len(X), -1, X.shape[1], -1)
            Q, K = torch.cat([Q, own], -1), torch.cat([K, self.content(Y)[:, None]], -1)
        V = self.W_v(Y).unflatten(-1, (self.h, -1)).transpose(1, 2)
        return math.sqrt(K.shape[-1]) / self.scale * Q, K, V


@named
def collaborative(d: int, h: int, d_k: int, **more: Any) -> dict[str, Any]:
    """What a model of width d is told to have h heads that share d_k features; `more`: of `Shared`.

    `GPT(vocab, d, h, N, **collaborative(d, h, d_k=16))`
    """
    return {"project": partial(Shared, d, h, d_k, **more), "core": SharedKeys}


def parameters(d: int, h: int, d_k: int, content: bool = True) -> int:
    """2 d d̃_k + h d̃_k, and d h for the content bias: queries, keys and mixing of a layer.

    Multi-head attention has 2 d², without biases.

    >>> parameters(d=768, h=12, d_k=192), 2 * 768**2
    (306432, 1179648)
    """
    d, h = _arguments.integer("d", d, 1), _arguments.integer("h", h, 1)
    return (2 * d + h) * _arguments.integer("d_k", d_k, 1) + (d * h if content else 0)


# --- a trained layer that becomes collaborative ---------------------------------------------------


class Factors(NamedTuple):
    """T_i ≈ W_q diag(m_i) W_kᵀ for each head i."""

    W_q: Float[Tensor, "d dk"]
    m: Float[Tensor, "h dk"]
    W_k: Float[Tensor, "d dk"]

    def product(self) -> Float[Tensor, "h d d"]:
        return torch.einsum("qr,ir,kr->iqk", *self)

    def balanced(self) -> Factors:
        """The same product with columns of length 1 in W_q and W_k, so that m alone says how much a
        feature counts in each head, and the features that count most first."""
        lengths = self.W_q.norm(dim=0), self.W_k.norm(dim=0)
        W_q, W_k = (
            W / n.clamp(min=1e-30) for W, n in zip((self.W_q, self.W_k), lengths, strict=True)
        )
        m = self.m * lengths[0] * lengths[1]
        order = m.norm(dim=0).argsort(descending=True, stable=True)
        return Factors(W_q[:, order], m[:, order], W_k[:, order])


Decompose = Callable[[Float[Tensor, "h d d"], int, int], Factors]
"""(T, d_k, seed) → factors of rank d_k."""


@torch.no_grad()
@named
def parafac(T: Float[Tensor, "h d d"], d_k: int, seed: int = 0, steps: int = 100) -> Factors:
    """PARAFAC, as the authors: a random start, and each factor in turn by least squares.

    It stops where a step lowers the relative error by less than 1e-6. The heads share features.
    """
    T = _layer(T)
    rank = _arguments.integer("d_k", d_k, 1)
    rng = Generator().manual_seed(_arguments.integer("seed", seed, 0))
    h, d = T.shape[:2]
    W_q, m, W_k = (torch.rand(n, rank, generator=rng).to(T) for n in (d, h, d))
    size, before = T.norm(), math.inf
    for _ in range(_arguments.integer("steps", steps, 1)):
        W_q = _least_squares(torch.einsum("iqk,ir,kr->qr", T, m, W_k), m, W_k)
        m = _least_squares(torch.einsum("iqk,qr,kr->ir", T, W_q, W_k), W_q, W_k)
        W_k = _least_squares(torch.einsum("iqk,qr,ir->kr", T, W_q, m), W_q, m)
        error = float((Factors(W_q, m, W_k).product() - T).norm() / size.clamp(min=1e-30))
        if before - error < 1e-6:
            break
        before = error
    return Factors(W_q, m, W_k)


def _least_squares(target: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """The factor that fits best with the two others: `target` (AᵀA ∘ BᵀB)⁺."""
    return target @ torch.linalg.pinv((A.T @ A) * (B.T @ B), hermitian=True)


@torch.no_grad()
def svd(T: Float[Tensor, "h d d"], d_k: int, seed: int = 0) -> Factors:
    """The plain way: of all heads the d_k largest singular values. No feature serves two heads.

    That is the best that mixing vectors with a single entry that is not 0 can do (Eckart–Young in
    each head). Nothing is random in it; `seed` is there because `parafac` has one.
    """
    T = _layer(T)
    rank = _arguments.integer("d_k", d_k, 1)
    U, S, Vh = torch.linalg.svd(T)
    order = S.flatten().argsort(descending=True, stable=True)[:rank]
    i, n = order // S.shape[1], order % S.shape[1]
    root = S[i, n].sqrt()
    short = rank - len(order)  # more features than there are singular values: the rest are 0
    W_q, W_k = (
        nn.functional.pad((X * root[:, None]).T, (0, short)) for X in (U[i, :, n], Vh[i, n])
    )
    m = nn.functional.pad((i == torch.arange(len(T), device=T.device)[:, None]).to(T), (0, short))
    return Factors(W_q, m, W_k)


def _layer(T: Tensor) -> Tensor:
    _arguments.finite("T", _arguments.tensor("T", T, "(h, d, d)"))
    if T.dim() != 3 or T.shape[1] != T.shape[2]:
        raise ValueError(f"T has shape {tuple(T.shape)}; give W_i^q W_i^kᵀ of each head, (h, d, d)")
    return T


def products(attend: Any) -> Float[Tensor, "h d d"]:
    """T_i = W_i^q W_i^kᵀ for each head of a trained attention."""
    W_q, W_k = _queries_and_keys(attend)[:2]
    return W_q @ W_k.mT


def _queries_and_keys(attend: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(W_q, W_k, b_q): (h, d, d_h) both, and the biases of queries, (h, d_h)."""
    if not hasattr(attend, "W_qkv") or attend.h_kv != attend.h:
        raise TypeError(
            f"{type(attend).__name__} has no W_qkv with as many heads of keys as of queries; give "
            "a MultiHeadAttention without a `project` of its own, and without h_kv"
        )
    shape = (attend.h, attend.d_head)
    W_q, W_k, _ = (W.T.unflatten(1, shape) for W in attend.W_qkv.weight.split(attend.widths))
    b_q = attend.W_qkv.bias[: attend.widths[0]].unflatten(0, shape)
    return W_q.transpose(0, 1), W_k.transpose(0, 1), b_q


def convert(model: Model, d_k: int, decompose: Decompose = parafac, seed: int = 0) -> Model:
    """A copy of the model whose attentions share d_k features each; with d_k = d nothing is lost.

    Scores are divided by √d_h as before. The official code divides by √(d̃_k/h), so that its scores
    grow where d̃_k < d. Raises TypeError for a model that has no ordinary attention with a core that
    leaves queries and keys as they are.
    """
    model = copy.deepcopy(model)
    attentions: list[Any] = [x for x in model.modules() if isinstance(x, MultiHeadAttention)]
    if not attentions or any(type(x.core) is not Dense for x in attentions):
        raise TypeError(
            f"model = {type(model).__name__} has no attention, or one with a core of its own; give "
            "a GPT, or a BERT, whose core is Dense"
        )
    for attend in attentions:
        _convert(attend, _arguments.integer("d_k", d_k, 1), decompose, seed)
    return model


@torch.no_grad()
def _convert(attend: Any, d_k: int, decompose: Decompose, seed: int) -> None:
    W_q, W_k, b_q = _queries_and_keys(attend)
    h, d, d_head = W_q.shape
    if d_k == h * d_head:  # as the authors: the matrices themselves, in blocks
        whole = (W.transpose(0, 1).flatten(1) for W in (W_q, W_k))
        factors = Factors(next(whole), blocks(h, d_k).to(W_q), next(whole))
    else:
        factors = decompose(W_q @ W_k.mT, d_k, seed)
    shared = Shared(d, h, d_k, mixing=factors.m).to(W_q)
    shared.scale = math.sqrt(d_head)
    shared.W_q.weight.copy_(factors.W_q.T)
    shared.W_k.weight.copy_(factors.W_k.T)
    assert shared.content is not None
    shared.content.weight.copy_((W_k @ b_q[..., None]).squeeze(-1))
    for ours, theirs in (("weight", attend.W_qkv.weight), ("bias", attend.W_qkv.bias)):
        getattr(shared.W_v, ours).copy_(theirs[-attend.widths[2] :])
    del attend.W_qkv
    attend.project, attend.core = shared, SharedKeys()
