"""What the models are made of. Vaswani et al. 2017 (arXiv 1706.03762), sections 3.1 to 3.5.

>>> X = torch.randn(1, 5, 8)
>>> Stack(2, d=8, h=2)(X).shape
torch.Size([1, 5, 8])
>>> MultiHeadAttention(8, 4, h_kv=2).widths  # one product makes Q, K and V
[8, 4, 4]
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz._arguments import indices, integer
from tfviz.cores import (
    FULL,
    Cache,
    Dense,
    Kept,
    Make,
    Where,
    outside_inference,
    stored_before_cores,
)

Tokens = Int[Tensor, "b L"]
Logits = Float[Tensor, "b L vocab"]
Seq = Float[Tensor, "b L d"]
Memory = Seq | None  # what an encoder made of the source
Real = Bool[Tensor, "b Lk"] | None  # which keys are real; False at padding
Layer = Callable[[Tensor], Tensor]


class MultiHeadAttention(nn.Module):
    """[head_1; …; head_h] W^o, head_n = softmax(Q_n K_nᵀ/√d_head) V_n; h_kv heads for K and V."""

    def __init__(
        self, d: int, h: int, *, core: Make = Dense, pattern: Any = FULL, h_kv: int = 0
    ) -> None:
        super().__init__()
        h, h_kv = integer("h", h, 1), integer("h_kv", h_kv or h, 1)
        if d % h or h % h_kv:
            raise ValueError(f"d = {d}, h = {h}, h_kv = {h_kv}; h must divide d, and h_kv divide h")
        self.h, self.h_kv, self.d_head = h, h_kv, d // h
        self.pattern, self.core = pattern or FULL, core()  # which may be another mechanism
        self.widths = [d, h_kv * self.d_head, h_kv * self.d_head]  # of Q, K, V, from one product
        self.W_qkv, self.W_o = nn.Linear(d, sum(self.widths)), nn.Linear(d, d)
        self.see: Callable[[Tensor | None], None] | None = None  # who wants A, as the core made it
        self.register_load_state_dict_pre_hook(stored_before_cores)

    def forward(self, X: Seq, memory: Memory = None, real: Real = None, cache: Cache = None) -> Seq:
        """X asks itself, or `memory` if there is one. With a cache, X is what comes after it."""
        kept, new = (cache or {}).get(self, Kept()), list[Any]()
        asked, keep = self.see is not None, None if cache is None else new.append
        where = Where(self.pattern, kept.length, memory is not None, real, asked, kept.state, keep)
        if memory is None:
            Q, K, V = map(self._heads, self.W_qkv(X).split(self.widths, -1))  # (b, h, L, d_head)
        else:  # which stays the same from token to token
            d, W, b = X.shape[-1], self.W_qkv.weight, self.W_qkv.bias
            Q = self._heads(F.linear(X, W[:d], b[:d]))
            K, V = outside_inference(kept.state) or map(
                self._heads, F.linear(memory, W[d:], b[d:]).chunk(2, -1)
            )
            new.append((K, V))
        out, A = self.core(Q, K, V, where)
        if self.see:
            self.see(A)
        if cache is not None:
            cache[self] = kept.followed_by(new, X.shape[1])
        return self.W_o(out.transpose(1, 2).flatten(2))

    def _heads(self, X: Seq) -> Float[Tensor, "b h L d_head"]:
        return X.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


class FeedForward(nn.Sequential):
    """φ(X W_1 + b_1) W_2 + b_2: each row for itself."""

    def __init__(self, d: int, d_ff: int, phi: nn.Module) -> None:
        super().__init__(OrderedDict(W_1=nn.Linear(d, d_ff), phi=phi, W_2=nn.Linear(d_ff, d)))


def pre_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return X + F(LN(X))


def post_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return LN(X + F(X))


class Block(nn.Module):
    """Self-attention, cross-attention if it `crosses`, feed-forward; each in a skip, by `order`."""

    def __init__(
        self, d: int, h: int, order: Any = pre_norm, *, crosses: bool = False, d_ff: int = 0,
        phi: Callable[[], nn.Module] = nn.GELU, **attention: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.attend, self.order = MultiHeadAttention(d, h, **attention), order
        self.cross = MultiHeadAttention(d, h, h_kv=self.attend.h_kv) if crosses else None
        self.feed = FeedForward(d, d_ff or 4 * d, phi())
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 + crosses))

    def forward(self, X: Seq, memory: Memory = None, real: Real = None, cache: Cache = None) -> Seq:
        """`real` is about the keys of the memory if there is one, else about X."""
        own, cross = None if self.cross else real, self.cross
        X = self.order(X, lambda X: self.attend(X, None, own, cache), self.norms[0])
        if cross is not None:
            X = self.order(X, lambda X: cross(X, memory, real, cache), self.norms[1])
        return self.order(X, self.feed, self.norms[-1])


class Stack(nn.Module):
    """N blocks. In pre-norm order the sum that leaves the last one is normalised too."""

    def __init__(self, N: int, d: int, h: int, order: Any = pre_norm, **block: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(d, h, order, **block) for _ in range(integer("N", N, 0)))
        self.norm = nn.Identity() if order is post_norm else nn.LayerNorm(d)

    def forward(self, X: Seq, *rest: Any) -> Seq:
        for block in self.blocks:
            X = block(X, *rest)
        return self.norm(X)


class Embedding(nn.Embedding):
    """scale · E[t_i] + p_i for the tokens t_i; `positions` gives the rows p_i for the places i."""

    def __init__(self, vocab: int, d: int, positions: Any = None, scale: float = 1.0) -> None:
        super().__init__(integer("vocab", vocab, 1), integer("d", d, 1))
        self.positions, self.scale = positions, scale
        nn.init.normal_(self.weight, std=d**-0.5)

    def forward(self, t: Tokens, cache: Cache = None) -> Seq:
        past = next((kept.length for kept in (cache or {}).values()), 0)
        i = torch.arange(past, past + indices("t", t, 2).shape[1], device=t.device)
        X = self.scale * super().forward(t)
        return X if self.positions is None else X + self.positions(i).to(X.dtype)
