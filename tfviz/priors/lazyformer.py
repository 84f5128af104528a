"""LazyFormer: one layer in m computes an attention map, and the next m − 1 layers use it again.

Ying, Ke, He, Liu 2021 (arXiv 2102.12702). The N layers of a model form lazy blocks of m. The first
layer of a block attends as usual and hands its map up; the others apply this map to values of their
own:

    A^n = softmax(Q^n K^nᵀ/√d_h) if m divides n, else A^{n−1}          out^n = A^n V^n

Layers are counted from 0. A lazy layer has no W^q and no W^k, and computes no scores. A cache keeps
its values alone. `lazy_blocks(m)` says so to a model: `GPT(…, layer=lazy_blocks(2))`.

>>> from tfviz.models.gpt import GPT
>>> stack = GPT(vocab=11, d=8, h=2, N=4, layer=lazy_blocks(2)).stack
>>> [type(block.attend).__name__ for block in stack.blocks]
['MultiHeadAttention', 'LazyAttention', 'MultiHeadAttention', 'LazyAttention']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, in_stack
from tfviz.dense_attention import attention
from tfviz.models.blocks import MultiHeadAttention
from tfviz.patterns.pattern import Pattern

__all__ = ["LazyAttention", "Sharing", "lazy_blocks", "lazyformer_definition", "saved_flops"]


@named
def lazyformer_definition(
    Q: Float[Tensor, "N *b Lq d"],
    K: Float[Tensor, "N *b Lk d"],
    V: Float[Tensor, "N *b Lk dv"],
    m: int,
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
) -> tuple[Float[Tensor, "N *b Lq dv"], Float[Tensor, "N *b Lq Lk"]]:
    """(out, A) of every layer; queries and keys of a lazy layer are there and not looked at."""
    m = _arguments.integer("m", m, 1)
    maps = [attention(Q[n - n % m], K[n - n % m], V[n], mask)[1] for n in range(len(V))]
    A = torch.stack(maps)
    return A @ V, A


class Shared(NamedTuple):
    """What is handed up: the map, and the pattern that it was made for."""

    pattern: Pattern
    A: Float[Tensor, "b h Lq Lk"]


class Sharing(Dense):
    """The core of the first layer of a lazy block: attention, whose map is handed up."""

    def mix(self, A: Float[Tensor, "b h Lq Lk"], where: Where) -> Tensor:
        if in_stack():
            where.hand_up(Shared(where.pattern, A))
        return A


class Reusing(nn.Module):
    """The core of a lazy layer: the map from below, applied to its own values."""

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        _, V = where.joined(V[..., :0], V)  # there is no key to be kept
        if not isinstance(where.below, Shared):
            raise ValueError(
                "no layer below has handed up its map; give the first layer of each lazy block "
                "the core Sharing, as lazy_blocks(m) does"
            )
        pattern, A = where.below
        if pattern != where.pattern or A.shape[-1] != V.shape[2]:
            raise ValueError(
                f"the map from below is for {pattern!r} and {A.shape[-1]} keys, this layer has "
                f"{where.pattern!r} and {V.shape[2]}; give all layers of a lazy block one pattern"
            )
        V = V.repeat_interleave(A.shape[1] // V.shape[1], 1)
        out = (A @ V.to(A.dtype)).to(V.dtype)
        return out, A.to(V.dtype) if where.need_weights else None


class OnlyValues(nn.Module):
    """X → the values, which also stand where queries and keys would."""

    def __init__(self, d: int, h_kv: int, d_head: int) -> None:
        super().__init__()
        self.d_head, self.W_v = d_head, nn.Linear(d, h_kv * d_head)

    def forward(self, X: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        V = self.W_v(X if memory is None else memory)
        V = V.unflatten(-1, (-1, self.d_head)).transpose(1, 2)
        return V, V, V


class LazyAttention(MultiHeadAttention):
    """The attention of a lazy layer: W^v and W^o, and no W^q, W^k."""

    @named
    def __init__(self, d: int, h: int, *, h_kv: int | None = None, **more: Any) -> None:
        told = more | {
            "core": Reusing,
            "project": OnlyValues,
        }
        super().__init__(d, h, h_kv=h_kv, **told)


@named
def lazy_blocks(m: int) -> Callable[[int], dict[str, Any]]:
    """The option `layer` of a model: what layer n = 0, 1, … is told where m layers share a map."""
    m = _arguments.integer("m", m, 1)
    return lambda n: {"mix": LazyAttention} if n % m else {"core": Sharing}


@named
def saved_flops(L: int, d: int, N: int, m: int) -> int:
    """What N layers save by sharing maps: queries, keys and scores of the lazy ones.

    2 Ld² for the queries of a layer, as much for its keys, 2 L²d for its scores.

    >>> saved_flops(L=4, d=3, N=2, m=2)
    240
    """
    L, d, N, m = (
        _arguments.integer(name, x, 1) for name, x in (("L", L), ("d", d), ("N", N), ("m", m))
    )
    return (N - -(-N // m)) * (4 * L * d**2 + 2 * L**2 * d)
