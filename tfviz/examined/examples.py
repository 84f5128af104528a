"""Three attentions with a mistake that runs without an error, for the page *Examine yours*.

>>> from tfviz.examined import examine
>>> [verdict.law for verdict in examine(next_token_too, **ASKED["next_token_too"]).broken]
['future']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ASKED", "MADE", "Forgetful", "QuietPadding", "next_token_too"]


def next_token_too(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Causal attention, with a mask that begins one diagonal too late."""
    s = Q @ K.mT / math.sqrt(Q.shape[-1])
    later = torch.ones(s.shape[-2:], dtype=torch.bool).triu(2)
    return s.masked_fill(later, -math.inf).softmax(-1) @ V


class QuietPadding(nn.Module):
    """Self-attention that makes padding less likely in place of forbidding it."""

    def __init__(self, d: int = 16) -> None:
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d, d) for _ in range(3))

    def forward(self, X: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        s = self.W_q(X) @ self.W_k(X).mT / math.sqrt(X.shape[-1])
        if attention_mask is not None:
            s = s - 10 * (1 - attention_mask[:, None].to(s))
        out: Tensor = s.softmax(-1) @ self.W_v(X)
        return out


class Forgetful(nn.Module):
    """Causal self-attention with a cache; a row that comes after it is put at position 0 again."""

    def __init__(self, d: int = 16, length: int = 64) -> None:
        super().__init__()
        self.W_qkv, self.positions = nn.Linear(d, 3 * d), nn.Embedding(length, d)

    def forward(
        self, X: Tensor, kept: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        X = X + self.positions.weight[: X.shape[1]]  # it should begin where the cache ends
        Q, K, V = self.W_qkv(X).chunk(3, -1)
        if kept is not None:
            K, V = torch.cat([kept[0], K], 1), torch.cat([kept[1], V], 1)
        s = Q @ K.mT / math.sqrt(X.shape[-1])
        later = torch.ones_like(s[0], dtype=torch.bool).triu(1 + K.shape[1] - X.shape[1])
        return s.masked_fill(later, -math.inf).softmax(-1) @ V, (K, V)


def in_parts(module: Any, parts: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
    """The answers of `Forgetful`, each part after what was kept of those before."""
    kept, out = None, []
    for (X,) in parts:
        Y, kept = module(X, kept)
        out.append(Y)
    return out


MADE: Mapping[str, Any] = {
    "next_token_too": lambda: next_token_too,
    "QuietPadding": QuietPadding,
    "Forgetful": Forgetful,
}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "next_token_too": {"causal": True},
    "QuietPadding": {},
    "Forgetful": {"causal": True, "in_parts": in_parts},
}
"""What `examine` is told of each."""
