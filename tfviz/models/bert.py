"""BERT: an encoder alone. Devlin et al. 2018 (arXiv 1810.04805); no next-sentence prediction.

>>> t, real = torch.tensor([[3, 1, 4, 0]]), torch.tensor([[True, True, True, False]])
>>> BERT(vocab=11, d=8, h=2, N=1)(t, real).shape
torch.Size([1, 4, 11])
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfviz.models.blocks import Embedding, Logits, Real, Stack, Tokens, post_norm


class BERT(nn.Module):
    """Logits of the token that belongs at every position, from both sides of it."""

    def __init__(self, vocab: int, d: int, h: int, N: int, positions: Any = None, **more: Any):
        super().__init__()
        self.embed, self.segment = Embedding(vocab, d, positions), nn.Embedding(2, d)
        self.stack = Stack(N, d, h, **{"order": post_norm} | more)
        self.first_norm, self.last_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.last, self.b = nn.Linear(d, d), nn.Parameter(torch.zeros(vocab))

    def forward(self, t: Tokens, real: Real = None, segment: Tokens | int = 0) -> Logits:
        X = self.first_norm(self.embed(t) + self.segment(torch.zeros_like(t) + segment))
        H = F.gelu(self.last(self.stack(X, None, real)))
        return self.last_norm(H) @ self.embed.weight.T + self.b
