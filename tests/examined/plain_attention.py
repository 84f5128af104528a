"""A plain causal attention with rotary positions, padding and a cache, which the tests break."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def turned(X: Tensor, start: int) -> Tensor:
    """Pairs of numbers turned by the position."""
    i = torch.arange(start, start + X.shape[-2], dtype=X.dtype)[:, None]
    angle = i * 0.3 ** torch.arange(X.shape[-1] // 2, dtype=X.dtype)
    a, b = X.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class PlainAttention(nn.Module):
    def __init__(self, d: int = 8, h: int = 2) -> None:
        super().__init__()
        self.d, self.h = d, h
        self.W_qkv, self.W_o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(
        self, X: Tensor, mask: Tensor | None = None, past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        b, L, d = X.shape
        Q, K, V = self.W_qkv(X).chunk(3, -1)
        Q, K, V = (Y.unflatten(-1, (self.h, -1)).transpose(1, 2) for Y in (Q, K, V))
        start = 0 if past is None else past[0].shape[2]
        Q, K = turned(Q, start), turned(K, start)
        if past is not None:
            K, V = torch.cat([past[0], K], 2), torch.cat([past[1], V], 2)
        s = Q @ K.mT / math.sqrt(Q.shape[-1])
        later = torch.arange(start + L) > torch.arange(start, start + L)[:, None]
        s = s.masked_fill(later, -math.inf)
        if mask is not None:
            s = s.masked_fill(~mask[:, None, None], -math.inf)
        A = s.softmax(-1)
        out = A @ V
        Y = self.W_o(out.transpose(1, 2).reshape(b, L, d))
        return Y, (K, V)
