"""The encoder–decoder of Vaswani et al. 2017 (arXiv 1706.03762).

>>> import torch
>>> s, t = torch.tensor([[3, 1, 4, 1]]), torch.tensor([[5, 9]])
>>> EncoderDecoder(vocab=11, d=8, h=2, N=1)(s, t).shape
torch.Size([1, 2, 11])
"""

from typing import Any

from torch import nn

from tfviz.models.blocks import Cache, Embedding, Logits, Real, Seq, Stack, Tokens, post_norm
from tfviz.patterns import causal


class EncoderDecoder(nn.Module):
    """Logits of the target's next token, from its tokens so far and the whole source."""

    def __init__(self, vocab: int, d: int, h: int, N: int, positions: Any = None, **more: Any):
        super().__init__()
        options: dict[str, Any] = {"order": post_norm, "phi": nn.ReLU} | more
        self.embed = Embedding(vocab, d, positions, scale=d**0.5)  # one table for source and target
        self.encoder = Stack(N, d, h, **options)
        self.decoder = Stack(N, d, h, crosses=True, pattern=causal(), **options)

    def encode(self, s: Tokens, real: Real = None) -> Seq:
        return self.encoder(self.embed(s), None, real)

    def decode(self, t: Tokens, memory: Seq, real: Real = None, cache: Cache = None) -> Logits:
        return self.decoder(self.embed(t, cache), memory, real, cache) @ self.embed.weight.T

    def forward(self, s: Tokens, t: Tokens, real: Real = None) -> Logits:
        return self.decode(t, self.encode(s, real), real)
