"""GPT: a decoder alone. Radford et al. 2018, 2019.

>>> import torch
>>> GPT(vocab=11, d=8, h=2, N=1)(torch.tensor([[3, 1, 4]])).shape
torch.Size([1, 3, 11])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tfviz._arguments import named
from tfviz.cores import Dense, Make
from tfviz.models.blocks import (
    Block,
    Cache,
    Embedding,
    Layer,
    Logits,
    MultiHeadAttention,
    Order,
    Positions,
    Project,
    Stack,
    Tokens,
    alike,
    pre_norm,
)
from tfviz.models.padding import each_text_alone
from tfviz.patterns import Pattern, causal

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
        attend: makes each attention from (d, h, core=…, pattern=…, h_kv=…, project=…, join=…).
        project, join: make what stands in the place of W_qkv and of W_o.
        block: makes each block from (d, h, order, …).
        layer: layer(n) gives the options of block n = 0, 1, … that differ from those of the others.

    Raises TypeError or ValueError for what does not fit, and says what would.
    """

    @named
    def __init__(
        self,
        vocab: int,
        d: int,
        h: int,
        N: int,
        *,
        positions: Positions = None,
        core: Make = Dense,
        pattern: Pattern | None = None,
        order: Order = pre_norm,
        h_kv: int | None = None,
        d_ff: int | None = None,
        phi: Callable[[], nn.Module] = nn.GELU,
        attend: Callable[..., MultiHeadAttention] = MultiHeadAttention,
        project: Callable[[], Project] | None = None,
        join: Callable[[], Layer] | None = None,
        block: Callable[..., nn.Module] = Block,
        layer: Callable[[int], dict[str, Any]] = alike,
    ) -> None:
        super().__init__()
        self.embed = Embedding(vocab, d, positions)
        self.stack = Stack(
            N,
            d,
            h,
            order,
            block=block,
            layer=layer,
            core=core,
            pattern=causal() if pattern is None else pattern,
            h_kv=h_kv,
            d_ff=d_ff,
            phi=phi,
            attend=attend,
            project=project,
            join=join,
        )

    @each_text_alone
    @named
    def forward(self, t: Tokens, cache: Cache = None) -> Logits:
        return self.stack(self.embed(t, cache), None, None, cache) @ self.embed.weight.T
