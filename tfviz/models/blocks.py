"""What the models are made of. Vaswani et al. 2017 (arXiv 1706.03762), sections 3.1 to 3.5.

>>> import torch
>>> X = torch.randn(1, 5, 8)
>>> Stack(2, d=8, h=2)(X).shape
torch.Size([1, 5, 8])
>>> MultiHeadAttention(8, 4, h_kv=2).widths  # one product makes Q, K and V
[8, 4, 4]
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz._arguments import indices, integer, named, tokens
from tfviz.cores import (
    FULL,
    Cache,
    Dense,
    Kept,
    Make,
    Seen,
    Where,
    build,
    levels,
    outside_inference,
    places,
    stored,
    stored_before_cores,
)
from tfviz.patterns import Pattern

__all__ = [
    "Block",
    "Embedding",
    "FeedForward",
    "MultiHeadAttention",
    "Stack",
    "post_norm",
    "pre_norm",
]

Tokens = Int[Tensor, "b L"]
Logits = Float[Tensor, "b L vocab"]
Seq = Float[Tensor, "b L d"]
Memory = Seq | None  # what an encoder made of the source
AttentionMask = Bool[Tensor, "b Lk"] | None  # True at tokens, False at padding
Layer = Callable[[Tensor], Tensor]
Order = Callable[..., Any]  # (X, F, LN) → Y, or a class of such modules, made from d
Positions = Callable[[Int[Tensor, "L"]], Float[Tensor, "L d"]] | None
Project = Callable[[Seq, Memory], tuple[Tensor, Tensor, Tensor]]


class MultiHeadAttention(nn.Module):
    """[head_1; …; head_h] W^o, head_n = softmax(Q_n K_nᵀ/√d_head) V_n; h_kv heads for K and V.

    `project` and `join` make what stands in the place of W_qkv, (X, memory or None) → Q, K, V, and
    of W^o, (b, h, L, d_head) → (b, L, d).
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        *,
        core: Make = Dense,
        pattern: Pattern | None = None,
        h_kv: int | None = None,
        project: Callable[[], Project] | None = None,
        join: Callable[[], Layer] | None = None,
    ) -> None:
        super().__init__()
        h = integer("h", h, 1)
        h_kv = h if h_kv is None else integer("h_kv", h_kv, 1)
        d = integer("d", d, 1)
        if d % h or h % h_kv:
            raise ValueError(f"d = {d}, h = {h}, h_kv = {h_kv}; h must divide d, and h_kv divide h")
        self.h, self.h_kv, self.d_head = h, h_kv, d // h
        self.pattern, self.core = checked(pattern), build(core, self.d_head, h)
        self.widths = [d, h_kv * self.d_head, h_kv * self.d_head]  # of Q, K, V, from one product
        self.project: Project = project() if project else self._one_product
        if not project:
            self.W_qkv = nn.Linear(d, sum(self.widths))
        self.join: Layer = join() if join else self._side_by_side
        if not join:
            self.W_o = nn.Linear(d, d)
        self.watched, self.seen = False, cast(Seen | None, None)  # `watched` in `use` turns it on
        self.register_load_state_dict_pre_hook(stored_before_cores)

    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        """X asks itself, or `memory` if there is one. With a cache, X is what comes after it."""
        kept, new = (cache or {}).get(self, Kept()), list[Any]()
        crosses, keep = memory is not None, None if cache is None else new.append
        where = Where(
            self.pattern, kept.length, crosses, attention_mask, self.watched, kept.state, keep
        )
        heads, A = self.attended(X, memory, where)
        if self.watched:
            self.seen = Seen(A, heads)
        if cache is not None:
            cache[self] = kept.followed_by(new, X.shape[1])
        return self.join(heads)

    def __getstate__(self) -> dict[str, Any]:
        return stored(self)

    def attended(self, X: Seq, memory: Memory, where: Where) -> tuple[Tensor, Tensor | None]:
        """(heads, A), before W^o."""
        if memory is None:
            return self.core(*self.project(X, None), where)
        # keys and values of a memory stay the same from token to token
        Q, K, V = self.project(X, memory if where.state is None else memory[:, :0])
        K, V = outside_inference(where.state) or (K, V)
        if where.keep:
            where.keep((K, V))
        return self.core(Q, K, V, where)

    def _one_product(self, X: Seq, memory: Memory = None) -> tuple[Tensor, Tensor, Tensor]:
        """Q of X, and K and V of X, or of `memory`."""
        d, W = self.widths[0], list(self.W_qkv.parameters())  # the matrix, and its bias
        if memory is None:
            Q, K, V = self.W_qkv(X).split(self.widths, -1)
        else:
            Q = F.linear(X, *(x[:d] for x in W))
            K, V = F.linear(memory, *(x[d:] for x in W)).chunk(2, -1)
        Q, K, V = (Y.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for Y in (Q, K, V))
        return Q, K, V  # (b, h, L, d_head), (b, h_kv, L, d_head) both

    def _side_by_side(self, heads: Float[Tensor, "b h L d_head"]) -> Seq:
        return self.W_o(heads.transpose(1, 2).flatten(2))


def checked(pattern: Any) -> Pattern:
    """The pattern, full attention for None. Raises TypeError for what is none, and says why."""
    if pattern is None:
        return FULL
    if isinstance(pattern, Tensor):
        raise TypeError("pattern is a tensor; make a pattern of a mask: tfviz.patterns.table(mask)")
    if callable(pattern) and not isinstance(pattern, Pattern):
        name = getattr(pattern, "__name__", type(pattern).__name__)
        raise TypeError(f"pattern = {name} makes patterns; call it: pattern={name}(…)")
    if not isinstance(pattern, Pattern):
        raise TypeError(
            f"pattern = {pattern!r} is a {type(pattern).__name__}; give one that tfviz.patterns "
            "makes, e.g. pattern=patterns.causal()"
        )
    return pattern


class FeedForward(nn.Sequential):
    """φ(X W_1 + b_1) W_2 + b_2: each row for itself."""

    @named
    def __init__(self, d: int, d_ff: int, phi: nn.Module) -> None:
        super().__init__(OrderedDict(W_1=nn.Linear(d, d_ff), phi=phi, W_2=nn.Linear(d_ff, d)))


@named
def pre_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return X + F(LN(X))


@named
def post_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return LN(X + F(X))


class Block(nn.Module):
    """Self-attention, cross-attention if it `crosses`, feed-forward; each in a skip, by `order`.

    An order with weights is a class of modules, made as order(d) for each of them. `attention` is
    what `attend` takes: for MultiHeadAttention core, pattern, h_kv, project and join.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        order: Order = pre_norm,
        *,
        crosses: bool = False,
        d_ff: int | None = None,
        phi: Callable[[], nn.Module] = nn.GELU,
        attend: Callable[..., MultiHeadAttention] = MultiHeadAttention,
        **attention: Any,
    ) -> None:
        super().__init__()
        if not callable(order):
            raise TypeError(f"order = {order!r}; give pre_norm, post_norm, or a class of modules")
        if isinstance(phi, nn.Module):
            raise TypeError(
                f"phi = {phi!r} is made already; give its class, phi=nn.{type(phi).__name__}"
            )
        self.attend, self.order = attend(d, h, **attention), order
        self.cross = MultiHeadAttention(d, h, h_kv=self.attend.h_kv) if crosses else None
        self.feed = FeedForward(d, 4 * d if d_ff is None else integer("d_ff", d_ff, 1), phi())
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 + crosses))
        if isinstance(order, nn.Module):
            raise TypeError("order is one module for all sublayers; give its class, made for each")
        self.orders: Any = [order] * len(self.norms)
        if isinstance(order, type):
            self.orders = nn.ModuleList(order(d) for _ in self.norms)

    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        """`attention_mask` is about the keys of the memory if there is one, else about X."""
        own, cross = None if self.cross else attention_mask, self.cross
        X = self.orders[0](X, lambda X: self.attend(X, None, own, cache), self.norms[0])
        if cross is not None:
            X = self.orders[1](X, lambda X: cross(X, memory, attention_mask, cache), self.norms[1])
        return self.orders[-1](X, self.feed, self.norms[-1])


def alike(n: int) -> dict[str, Any]:
    """No options of its own for block n."""
    return {}


class Stack(nn.Module):
    """N blocks. In pre-norm order the sum that leaves the last one is normalised too.

    `layer(n)` gives what block n = 0, 1, … is told besides what all are, `block` makes it.
    """

    @named
    def __init__(
        self,
        N: int,
        d: int,
        h: int,
        order: Order = pre_norm,
        *,
        block: Callable[..., nn.Module] = Block,
        layer: Callable[[int], dict[str, Any]] = alike,
        **more: Any,
    ) -> None:
        super().__init__()
        layers = range(integer("N", N, 0))
        self.blocks = nn.ModuleList(block(d, h, order, **more | layer(n)) for n in layers)
        self.norm = nn.Identity() if order is post_norm else nn.LayerNorm(d)

    @levels()  # what a core hands up, the next layer's finds below
    @named
    def forward(self, X: Seq, *rest: Any) -> Seq:
        for block in self.blocks:
            X = block(X, *rest)
        return self.norm(X)


class Embedding(nn.Embedding):
    """scale · E[t_i] + p_i for the tokens t_i; `positions` gives the rows p_i for the places i.

    Places are 0, 1, …, or those of `given(positions=…)`.
    """

    @named
    def __init__(self, vocab: int, d: int, positions: Positions = None, scale: float = 1.0) -> None:
        super().__init__(integer("vocab", vocab, 1), integer("d", d, 1))
        self.positions, self.scale = encoding(positions), scale
        nn.init.normal_(self.weight, std=d**-0.5)

    @named
    def forward(self, t: Tokens, cache: Cache = None) -> Seq:
        past = next((kept.length for kept in (cache or {}).values()), 0)
        b, L = indices("t", t, 2).shape
        X = self.scale * super().forward(tokens("t", t, self.num_embeddings))
        if self.positions is None:
            return X
        return X + self.positions(places(past, b, L, t.device)).to(X.dtype)


def encoding(positions: Any) -> Positions:
    """What makes a row for each place, or None. Raises TypeError for a class, a core, a name."""
    kind = positions if isinstance(positions, type) else type(positions)
    name = kind.__name__
    if issubclass(kind, Dense):
        raise TypeError(f"positions = {name} acts inside of attention; give it as core={name}")
    if isinstance(positions, type):
        raise TypeError(f"positions = {name} is a class; give one that is made: {name}(…)")
    if positions is not None and not callable(positions):
        raise TypeError(
            f"positions is a {name}; give what makes a row of d numbers for each place, e.g. "
            "Sinusoidal(d) or Learned(max_length, d) of tfviz.position; rotary ones are core=Rope"
        )
    return positions
