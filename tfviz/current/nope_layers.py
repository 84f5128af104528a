"""Layers without positions: rotary positions in most layers, none in every k-th.

A layer without positions compares contents alone, so it finds a token as well from far away as from
near by. Order is still there: the causal mask lets token i see i + 1 tokens, and from the second
layer on that tells an earlier token from a later one. Kazemnejad et al. 2023 (arXiv 2305.19466)
train decoders with no positions at all; SmolLM 3, Llama 4, Cohere's Command A and others leave them
out in every fourth layer, most often in those that see the whole text.

In such layers a long text takes the weight away from what is looked for: each further key adds to
the sum that the softmax divides by. So their queries are made longer with the text:

    q̃_i = (1 + c ln(1 + ⌊(i + 1)/n⌋)) q_i      Llama 4: c = 0.1, n = 8192

i counts from 0. Nakanishi 2025 (arXiv 2501.19399) multiplies all scores of a softmax over n keys by
s ln n, where each head learns its s: then a key whose score leads by a margin keeps its weight.

>>> from tfviz import GPT
>>> model = GPT(vocab=11, d=8, h=2, N=4, layer=every(4, plain=ScaledQueries))
>>> [type(block.attend.core).__name__ for block in model.stack.blocks]
['Rope', 'Rope', 'Rope', 'ScaledQueries']
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.position.rope import Rope

__all__ = ["ScaledQueries", "SoftmaxOfLength", "by_floors", "every"]


@named
def every(k: int, plain: Any = Dense, core: Any = Rope) -> Callable[[int], dict[str, Any]]:
    """`layer` of a model: blocks k − 1, 2k − 1, … from 0 have the core `plain`, the others `core`.

    k = 1 leaves no layer with positions. Raises ValueError for k below 1.
    """
    _arguments.integer("k", k, 1)
    return lambda n: {"core": plain if (n + 1) % k == 0 else core}


@named
def by_floors(i: Int[Tensor, "L"], c: float = 0.1, n: int = 8192) -> Float[Tensor, "L"]:
    """1 + c ln(1 + ⌊(i + 1)/n⌋), 1 for the first n − 1 tokens. Raises ValueError for n below 1."""
    _arguments.integer("n", n, 1)
    return 1 + _arguments.real("c", c) * ((i + 1) // n).double().log1p()


class ScaledQueries(Dense):
    """Attention without positions, whose queries grow with their place: scale(i), (L,) → (L,)."""

    def __init__(self, scale: Callable[[Tensor], Tensor] = by_floors) -> None:
        super().__init__()
        self.scale = scale

    def turn_queries(self, X: Float[Tensor, "b h L d_head"], where: Where) -> Tensor:
        i = torch.arange(where.start, where.start + X.shape[-2], device=X.device)
        return X * self.scale(i).to(X)[:, None]


class SoftmaxOfLength(Dense):
    """The scalable softmax without positions: the scores of query i times s ln(i + 1), with an s
    for each head.

    i + 1 are the keys that a causal mask leaves it; a pattern that leaves fewer changes nothing of
    that. Training begins at s = 1/ln start: a query that sees `start` keys has a plain softmax.
    Raises ValueError for another number of heads, and for a start below 2.
    """

    @named
    def __init__(self, d_head: int, h: int, start: int = 512) -> None:
        super().__init__()
        s = 1 / math.log(_arguments.integer("start", start, 2))
        self.s = nn.Parameter(torch.full((_arguments.integer("h", h, 1),), s))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.s):
            raise ValueError(
                f"Q has {Q.shape[1]} heads, and there are {len(self.s)} numbers s; make it "
                f"SoftmaxOfLength(d_head, {Q.shape[1]})"
            )

    def turn_queries(self, X: Float[Tensor, "b h L d_head"], where: Where) -> Tensor:
        self.check(X, X, where)
        seen = torch.arange(where.start + 1, where.start + 1 + X.shape[-2], device=X.device)
        return X * (self.s[:, None] * seen.to(X).log())[..., None]
