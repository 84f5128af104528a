"""Synthesizers: scores that compare nothing, learned outright or guessed from one token alone.

Tay, Bahri, Metzler, Juan, Zhao, Zheng 2020 (arXiv 2005.00743). In softmax(B) V the scores B are not
Q Kᵀ/√d_head. There are four ways to make them, all for texts of up to `length` tokens:

    random              B = R, a learned table of length × length, the same for every text
    factorized random   B = R₁ R₂ᵀ, two tables of length × k
    dense               b_i = ReLU(q_i) W, the whole row of query i, from that token alone
    factorized dense    b_ij = u_{⌊j/b⌋} w_{j mod b}, with a numbers u and b numbers w that are
                        made of q_i; a b = length

and a mixture of each with what content says, (1 − σ(α)) Q Kᵀ/√d_head + σ(α) B. Keys are needed for
that alone. R is a table for each head; W is shared by the heads, whose q_i differ.

That is what the authors' code does (Mesh TensorFlow, `synthetic_attention`), apart from factorized
dense, which is not in it, and from factorized random: there both factors are indexed by the key, so
every row of B is the same. See `tests/priors/test_synthesizer.py`.

>>> import torch
>>> q, W = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.0, 1.0, 2.0], [9.0, 9.0, 9.0]])
>>> dense_scores(q, W)  # the second number of q is below 0, so it says nothing
tensor([[0., 1., 2.]])
>>> outer_scores(q, W[:, :2], W[:, 1:])
tensor([[0., 0., 1., 2.]])
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Where
from tfviz.dense_attention import heads_attention

__all__ = ["Synthesizer", "dense_scores", "outer_scores"]

KINDS = ("random", "factorized random", "dense", "factorized dense")
START = 0.5
"""Standard deviation of the numbers with which tables begin."""


@named
def dense_scores(
    Q: Float[Tensor, "*b Lq d"], W: Float[Tensor, "d length"]
) -> Float[Tensor, "*b Lq length"]:
    """ReLU(q_i) W: query i guesses the score of each place without a look at its key."""
    return F.relu(Q) @ W


@named
def outer_scores(
    Q: Float[Tensor, "*b Lq d"], W_a: Float[Tensor, "d a"], W_b: Float[Tensor, "d b"]
) -> Float[Tensor, "*b Lq a*b"]:
    """The score of place j: number ⌊j/b⌋ of ReLU(q_i) W_a times number j mod b of ReLU(q_i) W_b."""
    outer = dense_scores(Q, W_a)[..., :, None] * dense_scores(Q, W_b)[..., None, :]
    return outer.flatten(-2)


def factors(length: int) -> tuple[int, int]:
    """(a, b) with ab = length and a ≤ b, as near to each other as can be.

    >>> factors(64), factors(12), factors(13)
    ((8, 8), (3, 4), (1, 13))
    """
    a = max(n for n in range(1, math.isqrt(length) + 1) if length % n == 0)
    return a, length // a


class Synthesizer(nn.Module):
    """Scores that are learned or guessed, as a core for texts of up to `length` tokens:
    `GPT(…, core=partial(Synthesizer, length=64))`.

    kind      random, factorized random, dense, factorized dense
    k         numbers of a row of a factor of "factorized random"
    content   mixed with scores of queries and keys; α begins at 0, so in equal parts
    trained   False leaves the tables as they were drawn

    A cache keeps values, and keys only with `content`. L² scores are made; cross-attention is
    refused, since a place in this text is none in another.
    """

    R: Tensor
    R_1: Tensor
    R_2: Tensor
    W: Tensor
    W_a: Tensor
    W_b: Tensor

    @named
    def __init__(
        self,
        d_head: int,
        h: int,
        length: int,
        kind: str = "random",
        k: int = 8,
        content: bool = False,
        trained: bool = True,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind = {kind!r}; choose from {', '.join(KINDS)}")
        self.kind, self.h = kind, _arguments.integer("h", h, 1)
        self.length = _arguments.integer("length", length, 1)
        d = _arguments.integer("d_head", d_head, 1)
        a, b = factors(self.length)
        rows = (self.h, self.length, _arguments.integer("k", k, 1))
        sizes: dict[str, dict[str, tuple[int, ...]]] = {
            "random": {"R": (self.h, self.length, self.length)},
            "factorized random": {"R_1": rows, "R_2": rows},
            "dense": {"W": (d, self.length)},
            "factorized dense": {"W_a": (d, a), "W_b": (d, b)},
        }
        for name, size in sizes[kind].items():
            table = nn.Parameter(START * torch.randn(size), requires_grad=trained)
            self.register_parameter(name, table)
        self.alpha = nn.Parameter(torch.zeros(1)) if content else None

    def scores(self, Q: Float[Tensor, "b h Lq d"], start: int) -> Float[Tensor, "*b h Lq length"]:
        """B of the queries at places start, start + 1, …, and of all places as keys."""
        rows = slice(start, start + Q.shape[2])
        if self.kind == "random":
            return self.R[:, rows]
        if self.kind == "factorized random":
            return self.R_1[:, rows] @ self.R_2.mT
        if self.kind == "dense":
            return dense_scores(Q, self.W)
        return outer_scores(Q, self.W_a, self.W_b)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.crosses:
            raise ValueError(
                "scores of places in a text mean nothing for another sequence; leave "
                "cross-attention as it is"
            )
        if Q.shape[1] != self.h:
            raise ValueError(f"the tables are for {self.h} heads, Q has {Q.shape[1]}; give h")
        K, V = where.joined(K[..., :0] if self.alpha is None else K, V)
        Lq, Lk = Q.shape[2], V.shape[2]
        if Lk > self.length:
            raise ValueError(
                f"the text has {Lk} tokens, and this synthesizer learns scores for length = "
                f"{self.length}; make it with length={Lk}, or shorten the text"
            )
        if Lq > Lk:
            raise ValueError(f"{Lq} queries and {Lk} values; give each token a value")
        B = self.scores(Q, Lk - Lq)[..., :Lk]
        if self.alpha is None:  # scores of 0, to which B is added
            Q, K = torch.zeros_like(Q[..., :1]), torch.zeros_like(V[..., :1])
        else:
            share = torch.sigmoid(self.alpha)
            Q, B = (1 - share) * Q, share * B
        return heads_attention(Q, K, V, where.pattern, B, where.attention_mask, where.need_weights)
