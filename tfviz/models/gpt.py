"""GPT: a decoder alone. Radford et al. 2018, 2019.

An embedding with positions, N blocks of causal attention and feed-forward networks, a norm; the
logits are products with the embeddings of all tokens.

>>> import torch
>>> from tfviz.position import Learned
>>> model = GPT(vocab=11, d=8, h=2, N=1, positions=Learned(32, 8))
>>> model(torch.tensor([[3, 1, 4]])).shape
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
    """Logits of the next token at every position, from the tokens up to it.

    Args:
        vocab, d, h, N: the number of tokens, the width, the numbers of heads and of blocks.
        positions: what is added to the embeddings: a module or a function that makes a row of d
            numbers for each place, such as Sinusoidal(d) or Learned(max_length, d); none unless
            it is given.
        core: the attention function of Q, K, V: a class, such as Rope or Sparse, or a function that
            makes a core, with or without d_head and h; each attention gets its own.
        pattern: who may attend to whom; causal unless it is given.
        order: where skips and norms stand: pre_norm, post_norm, or an nn.Module class.
        h_kv: heads of keys and values, each shared by h / h_kv heads of queries; h unless given.
        d_ff, phi: the width between the two layers of a feed-forward network, 4 d unless given, and
            what makes the activation there, nn.GELU unless given.

    To replace parts, see `Block`:
        mix: makes a `Mixer` in place of multi-head attention; project, join replace its matrices
            W_qkv and W_o.
        feed, norm: make what replaces feed-forward networks and LayerNorm.
        layer: layer(n) gives the options in which block n = 0, 1, … differs, but order and streams.
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

    @each_text_alone  # takes an attention_mask, and reads texts with padding as if alone
    @named  # errors from within torch name the argument
    def forward(self, t: Tokens, cache: Cache = None) -> Logits:
        """(b, L) → (b, L, vocab). With a cache, t holds the new tokens alone."""
        X = self.stack(self.embed(t, cache), None, None, cache)
        return X @ self.embed.weight.T
