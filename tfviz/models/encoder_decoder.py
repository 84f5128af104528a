"""The encoder–decoder of Vaswani et al. 2017 (arXiv 1706.03762).

>>> import torch
>>> s, t = torch.tensor([[3, 1, 4, 1]]), torch.tensor([[5, 9]])
>>> EncoderDecoder(vocab=11, d=8, h=2, N=1)(s, t).shape
torch.Size([1, 2, 11])
"""

from __future__ import annotations

from functools import partial
from typing import Unpack

from torch import nn

from tfviz._arguments import named, spelled_out
from tfviz.models.blocks import (
    AttentionMask,
    Block,
    Cache,
    Embedding,
    FeedForward,
    Logits,
    MultiHeadAttention,
    Options,
    Order,
    Positions,
    Seq,
    Stack,
    Tokens,
    post_norm,
)
from tfviz.models.padding import encoded_alone
from tfviz.patterns import causal

__all__ = ["EncoderDecoder"]

WITH_RELU = partial(FeedForward, phi=nn.ReLU)


class EncoderDecoder(nn.Module):
    """Logits of the target's next token, from its tokens so far and the whole source.

    The options are those of `GPT`, for encoder and decoder alike, but for the pattern: it is the
    encoder's, full unless it is given; the decoder's is causal. Cross-attention is plain.
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
        options.setdefault("feed", WITH_RELU)
        later: Options = {**options, "pattern": causal()}
        self.embed = Embedding(vocab, d, positions, scale=d**0.5)  # one table for source and target
        self.encoder = Stack(N, d, h, order, **options)
        self.decoder = Stack(N, d, h, order, crosses=True, **later)

    @encoded_alone
    def encode(self, s: Tokens, attention_mask: AttentionMask = None) -> Seq:
        return self.encoder(self.embed(s), None, attention_mask)

    def decode(
        self, t: Tokens, memory: Seq, attention_mask: AttentionMask = None, cache: Cache = None
    ) -> Logits:
        return (
            self.decoder(self.embed(t, cache), memory, attention_mask, cache) @ self.embed.weight.T
        )

    @named
    def forward(self, s: Tokens, t: Tokens, attention_mask: AttentionMask = None) -> Logits:
        return self.decode(t, self.encode(s, attention_mask), attention_mask)
