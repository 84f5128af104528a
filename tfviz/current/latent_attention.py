"""Multi-head latent attention: one short note of each token is kept, and all heads read it.

DeepSeek-AI 2024 (arXiv 2405.04434), section 2.1, equations 9 to 19, in row vectors. Of a token x_j
two things are kept, a note c_j of d_c numbers and a key r_j of d_r numbers that all heads share:

    c_j = RMSNorm(x_j W^DKV)            r_j = x_j W^KR R_jᵀ
    k_jm = [c_j W_m^UK; r_j]            v_jm = c_j W_m^UV
    q_im = [c_i^Q W_m^UQ; z_im]         z_im = c_i^Q W_m^QR R_iᵀ
    s_ijm = q_im k_jmᵀ / √(d_head + d_r)

R_j turns by the position, as in `rope`, and c_i^Q = RMSNorm(x_i W^DQ) is a note of d_q numbers, or
the token itself. No head's keys or values need to be made. As q (c W^UK)ᵀ = (q W^UKᵀ) cᵀ, the
matrix can be applied to the query, and W^UV after the sum over tokens:

    s_ijm = [c_i^Q W_m^UQ W_m^UKᵀ; z_im] [c_j; r_j]ᵀ / √(d_head + d_r)
    o_im = (Σ_j a_ijm c_j) W_m^UV

This is attention with one key [c_j; r_j] for all heads, and its first d_c numbers are also the
value. A cache holds d_c + d_r numbers a token, where h heads of keys and values are 2 h d_head. If
R_j turned c_j W^UK, it would stand between W^UK and the query, and W^UK could not change sides:
that is why the numbers that are turned are apart from the note. The norms are those of section
3.1.2.

>>> from tfviz import GPT
>>> model, cache = GPT(11, 16, 2, 1, **mla(d_c=6, d_r=2)), {}
>>> _ = model(torch.tensor([[3, 1, 4]]), cache)
>>> [x.shape for kept in cache.values() for x in kept.state if x.numel()]
[torch.Size([1, 1, 3, 8])]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.dense_attention import FULL, attention, heads_attention
from tfviz.patterns.pattern import Pattern
from tfviz.position.rope import Rope

__all__ = [
    "LatentAttention",
    "LatentHeads",
    "Latents",
    "absorbed",
    "absorbed_attention",
    "expanded_attention",
    "mla",
]


@named
def expanded_attention(
    Q: Float[Tensor, "b h L d_head"],
    Z: Float[Tensor, "b h L d_r"],
    C: Float[Tensor, "b 1 L d_c"],
    R: Float[Tensor, "b 1 L d_r"],
    W_uk: Float[Tensor, "h d_head d_c"],
    W_uv: Float[Tensor, "h d_head d_c"],
    pattern: Pattern = FULL,
) -> tuple[Float[Tensor, "b h L d_head"], Float[Tensor, "b h L L"]]:
    """(out, A) with keys and values of every head made from the notes C, as the equations say.

    Z and R are the parts of queries and keys that are turned already.
    """
    keys = torch.cat([C @ W_uk.mT, R.expand(-1, Q.shape[1], -1, -1)], -1)
    return attention(torch.cat([Q, Z], -1), keys, C @ W_uv.mT, pattern)


@named
def absorbed_attention(
    Q: Float[Tensor, "b h L d_head"],
    Z: Float[Tensor, "b h L d_r"],
    C: Float[Tensor, "b 1 L d_c"],
    R: Float[Tensor, "b 1 L d_r"],
    W_uk: Float[Tensor, "h d_head d_c"],
    W_uv: Float[Tensor, "h d_head d_c"],
    pattern: Pattern = FULL,
) -> Float[Tensor, "b h L d_head"]:
    """The same without them: queries come down to the notes, which all heads read."""
    found = heads_attention(absorbed(Q, Z, W_uk), torch.cat([C, R], -1), C, pattern)[0]
    return found @ W_uv.mT


@named
def absorbed(
    Q: Float[Tensor, "b h L d_head"],
    Z: Float[Tensor, "b h L d_r"],
    W_uk: Float[Tensor, "h d_head d_c"],
) -> Float[Tensor, "b h L d_c+d_r"]:
    """[Q W^UKᵀ; Z], of such a length that attention, which divides its scores by √(d_c + d_r),
    divides them by √(d_head + d_r)."""
    d_head, d_c = W_uk.shape[1:]
    d_r = Z.shape[-1]
    return torch.cat([Q @ W_uk, Z], -1) * math.sqrt((d_c + d_r) / (d_head + d_r))


class LatentAttention(Dense):
    """What all heads do with the notes, as a core: `GPT(…, **mla(d_c=…, d_r=…))`.

    Keys are [c; r], one head of them, and values their first numbers, c. The last d_r numbers of
    queries and keys are turned, by what `rope` makes for d_r numbers: `partial(Rope, speeds=…)` for
    other speeds. Keys alone are kept, and values of kept tokens are read in them.
    """

    @named
    def __init__(self, d_r: int, rope: Callable[[int], Dense] = Rope) -> None:
        super().__init__()
        self.d_r = _even(d_r)
        self.rope = rope(d_r) if d_r else Dense()

    def turn_queries(self, X: Float[Tensor, "b h L d"], where: Where) -> Float[Tensor, "b h L d"]:
        still, turned = X.split((X.shape[-1] - self.d_r, self.d_r), -1)
        return torch.cat([still, self.rope.turn_queries(turned, where)], -1)

    def turn_keys(self, X: Float[Tensor, "b 1 L d"], where: Where) -> Float[Tensor, "b 1 L d"]:
        return self.turn_queries(X, where)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        d_c = V.shape[-1]
        if d_c + self.d_r != K.shape[-1]:
            raise ValueError(
                f"V has shape {tuple(V.shape)}, K {tuple(K.shape)}; values are the keys without "
                f"their last d_r = {self.d_r} numbers: give V = K[..., :{K.shape[-1] - self.d_r}]"
            )
        if not where.crosses:
            Q, K = self.turn_queries(Q, where), self.turn_keys(K, where)
        K, _, where = where.followed(K, K[..., :0], gaps=True)
        V = K[..., :d_c] if K.shape[2] > V.shape[2] else V
        out, A = self.attend(Q, K, V, where)
        return out, where.of_all_positions(A)


class Latents(nn.Module):
    """In the place of W_qkv: absorbed queries, [c; r] as one head of keys, and c as its values.

    d_q is the width of the note that queries are made of; None makes them of the token.
    """

    @named
    def __init__(
        self, d: int, h: int, d_head: int, *, d_c: int, d_r: int, d_q: int | None = None
    ) -> None:
        super().__init__()
        self.d_c, self.d_r = _arguments.integer("d_c", d_c, 1), _even(d_r)
        self.h, self.d_head = h, d_head
        self.query_note: nn.Module = nn.Identity()
        if d_q is not None:
            down = nn.Linear(d, _arguments.integer("d_q", d_q, 1), bias=False)
            self.query_note = nn.Sequential(down, nn.RMSNorm(d_q, eps=1e-6))
        self.W_q = nn.Linear(d if d_q is None else d_q, h * (d_head + d_r), bias=False)
        self.W_kv = nn.Linear(d, d_c + d_r, bias=False)
        self.norm = nn.RMSNorm(d_c, eps=1e-6)
        self.W_uk = nn.Parameter(torch.randn(h, d_head, d_c) / math.sqrt(d_c))

    @named
    def forward(
        self, X: Float[Tensor, "b L d"], memory: Float[Tensor, "b Lk d"] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        Q, Z = (
            self.W_q(self.query_note(X))
            .unflatten(-1, (self.h, -1))
            .transpose(1, 2)
            .split((self.d_head, self.d_r), -1)
        )
        C, R = self.W_kv(X if memory is None else memory).split((self.d_c, self.d_r), -1)
        K = torch.cat([self.norm(C), R], -1)[:, None]
        return absorbed(Q, Z, self.W_uk), K, K[..., : self.d_c]


class LatentHeads(nn.Module):
    """In the place of W^o: what the heads found among the notes, times W^UV, times W^o."""

    @named
    def __init__(self, d: int, h: int, d_head: int, *, d_c: int) -> None:
        super().__init__()
        _arguments.integer("d_c", d_c, 1)
        self.W_uv = nn.Parameter(torch.randn(h, d_head, d_c) / math.sqrt(d_c))
        self.W_o = nn.Linear(h * d_head, d, bias=False)

    @named
    def forward(
        self, heads: Float[Tensor, "b h L d_c"], X: Tensor | None = None
    ) -> Float[Tensor, "b L d"]:
        out: Tensor = self.W_o((heads @ self.W_uv.mT).transpose(1, 2).flatten(2))
        return out


def mla(
    *, d_c: int, d_r: int, d_q: int | None = None, rope: Callable[[int], Dense] = Rope
) -> dict[str, Any]:
    """The options of a model with latent attention: `GPT(…, **mla(d_c=…, d_r=…))`.

    Raises ValueError, when the model is made, for d_r that is odd or negative, d_c and d_q below 1.
    """
    return {
        "core": partial(LatentAttention, d_r=d_r, rope=rope),
        "project": partial(Latents, d_c=d_c, d_r=d_r, d_q=d_q),
        "join": partial(LatentHeads, d_c=d_c),
    }


def _even(d_r: int) -> int:
    if _arguments.integer("d_r", d_r, 0) % 2:
        raise ValueError(f"d_r = {d_r} is odd, and numbers are turned in pairs; give an even d_r")
    return d_r
