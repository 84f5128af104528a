"""GPT: a decoder alone. Radford et al. 2018, 2019.

>>> import torch
>>> GPT(vocab=11, d=8, h=2, N=1)(torch.tensor([[3, 1, 4]])).shape
torch.Size([1, 3, 11])
"""

from typing import Any

from torch import nn

from tfviz.models.blocks import Cache, Embedding, Logits, Stack, Tokens
from tfviz.patterns import causal


class GPT(nn.Module):
    """Logits of the next token at every position, from this one and those before it."""

    def __init__(self, vocab: int, d: int, h: int, N: int, positions: Any = None, **more: Any):
        super().__init__()
        self.embed = Embedding(vocab, d, positions)
        self.stack = Stack(N, d, h, **{"pattern": causal()} | more)

    def forward(self, t: Tokens, cache: Cache = None) -> Logits:
        return self.stack(self.embed(t, cache), None, None, cache) @ self.embed.weight.T
