"""BERT: an encoder alone. Devlin et al. 2018 (arXiv 1810.04805); no next-sentence prediction.

>>> t, attention_mask = torch.tensor([[3, 1, 4, 0]]), torch.tensor([[True, True, True, False]])
>>> BERT(vocab=11, d=8, h=2, N=1)(t, attention_mask).shape
torch.Size([1, 4, 11])
"""

from __future__ import annotations

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import nn

from tfviz._arguments import named, spelled_out, tokens
from tfviz.models.blocks import (
    AttentionMask,
    Block,
    Embedding,
    Logits,
    MultiHeadAttention,
    Options,
    Order,
    Positions,
    Stack,
    Tokens,
    post_norm,
)
from tfviz.models.padding import encoded_alone

__all__ = ["BERT"]


class BERT(nn.Module):
    """Logits of the token that belongs at every position, from both sides of it.

    The options are those of `GPT`; here attention is full unless there is a pattern, and norms come
    after the sum.
    """

    @spelled_out(Options, Stack, Block, MultiHeadAttention)
    @named
    def __init__(
        self,
        vocab: int,
        d: int,
        h: int,
        N: int,
        *,
        positions: Positions = None,
        order: Order = post_norm,
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        self.embed, self.segment = Embedding(vocab, d, positions), nn.Embedding(2, d)
        self.stack = Stack(N, d, h, order, **options)
        self.first_norm, self.last_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.last, self.b = nn.Linear(d, d), nn.Parameter(torch.zeros(vocab))

    @encoded_alone
    @named
    def forward(
        self, t: Tokens, attention_mask: AttentionMask = None, segment: Tokens | int = 0
    ) -> Logits:
        X = self.first_norm(
            self.embed(t)
            + self.segment(tokens("segment", torch.zeros_like(t) + segment, 2, "segments"))
        )
        H = F.gelu(self.last(self.stack(X, None, attention_mask)))
        return self.last_norm(H) @ self.embed.weight.T + self.b
