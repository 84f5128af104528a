"""GPT: a decoder alone. Radford et al. 2018, 2019.

>>> import torch
>>> GPT(vocab=11, d=8, h=2, N=1)(torch.tensor([[3, 1, 4]])).shape
torch.Size([1, 3, 11])
"""

from __future__ import annotations

from typing import Unpack

from torch import nn

from tfviz._arguments import named, spelled_out
from tfviz.models.blocks import (
    Block,
    Cache,
    Embedding,
    Logits,
    MultiHeadAttention,
    Options,
    Order,
    Positions,
    Stack,
    Tokens,
    pre_norm,
)
from tfviz.models.padding import each_text_alone
from tfviz.patterns import causal

__all__ = ["GPT"]


class GPT(nn.Module):
    """Logits of the next token at every position, from this one and those before it.

    Args:
        vocab, d, h, N: how many tokens there are, the width, heads and blocks.
        positions: what is added to the embeddings: a module or a function that makes a row of d
            numbers for each place, such as Sinusoidal(d) or Learned(max_length, d).
        core: how queries find values: a class, such as Rope or Sparse, or a function that makes a
            core, with or without d_head and h; each attention gets its own.
        pattern: who may attend to whom; causal unless it is given.
        order: where skips and norms stand: pre_norm, post_norm, or a class of modules.
        h_kv: heads of keys and values, each shared by h / h_kv heads of queries; as many as h.
        d_ff, phi: the width between the two layers of a feed-forward, 4 d, and what stands there.
        project, join: make what stands in the place of W_qkv and of W_o.
        mix: makes what stands in the place of multi-head attention: a `Mixer`.
        feed, norm: make what stands in the place of the feed-forward network and of LayerNorm.
        layer: layer(n) gives the options of block n = 0, 1, … that differ from those of the others.
        block: makes each block from (d, h, order, …).
        streams: how many residual streams there are; more than one need an order that carries them.

    Raises TypeError or ValueError for what does not fit, and says what would.
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
        order: Order = pre_norm,
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        self.embed = Embedding(vocab, d, positions)
        if options.get("pattern") is None:
            options["pattern"] = causal()
        self.stack = Stack(N, d, h, order, **options)

    @each_text_alone
    @named
    def forward(self, t: Tokens, cache: Cache = None) -> Logits:
        return self.stack(self.embed(t, cache), None, None, cache) @ self.embed.weight.T
