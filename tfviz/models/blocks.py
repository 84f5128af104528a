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
from dataclasses import replace
from typing import Any, TypedDict, Unpack, cast

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
    made,
    outside_inference,
    places,
    stored,
    stored_before_cores,
    takes,
)
from tfviz.patterns import Pattern

__all__ = [
    "Block",
    "Embedding",
    "FeedForward",
    "Mixer",
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
Project = Callable[[Seq, Memory], tuple[Any, ...]]
"""(X, memory or None) → Q, K, V, or Q, K, V, more: cores find `more` in `where.more`."""
Join = Callable[[Float[Tensor, "b h L d_head"], Seq], Seq]
"""(what the heads found, X) → Y."""


class AttentionOptions(TypedDict, total=False):
    """What `MultiHeadAttention` can be told besides its sizes."""

    core: Make
    pattern: Pattern | None
    h_kv: int | None
    project: Callable[..., Project] | None
    join: Callable[..., Join] | None


class BlockOptions(AttentionOptions, total=False):
    """What a `Block` can be told besides its sizes and its order."""

    mix: Callable[..., nn.Module]
    feed: Callable[..., nn.Module]
    norm: Callable[[int], nn.Module]
    d_ff: int | None
    phi: Callable[[], nn.Module]


class Options(BlockOptions, total=False):
    """What a `Stack` can be told besides its sizes and its order; `GPT` says what each is."""

    block: Callable[..., nn.Module]
    layer: Callable[[int], dict[str, Any]]
    streams: int


class Mixer(nn.Module):
    """What mixes tokens: (X, memory, mask, cache) → Y. Multi-head attention is one.

    One of your own needs `mixed(X, memory, where)`, which answers with Y, (b, L, d). With a cache
    it calls `where.keep(state)`, and finds the state in `where.state` at the next call. A model
    takes its class, `GPT(…, mix=Yours)`. It gives `pattern`, which says that it is causal, and
    those of the sizes d, h, n that it needs.
    """

    @named
    def __init__(self, pattern: Pattern | None = None) -> None:
        super().__init__()
        self.pattern = checked(pattern)
        self.watched, self.seen = False, cast(Seen | None, None)  # `watched` in `use` turns it on

    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        """X attends to itself, or to `memory` if there is one. With a cache, X holds the new tokens
        alone."""
        if X.dim() != 3:
            one = ", X[None] for one" if X.dim() == 2 else ""
            raise ValueError(f"X has shape {tuple(X.shape)}; give (b, L, d){one}")
        kept, new = (cache or {}).get(self, Kept()), list[Any]()
        crosses, keep = memory is not None, None if cache is None else new.append
        where = Where(
            pattern=self.pattern,
            start=kept.length,
            crosses=crosses,
            attention_mask=attention_mask,
            need_weights=self.watched,
            state=kept.state,
            keep=keep,
        )
        Y = self.mixed(X, memory, where)
        if self.watched and self.seen is None:
            self.seen = Seen(None, Y[:, None])
        if cache is not None:
            cache[self] = kept.followed_by(new, X.shape[1])
        return Y

    def mixed(self, X: Seq, memory: Memory, where: Where) -> Seq:
        """Y, of X and what `where` brings."""
        raise TypeError(f"{type(self).__name__} has no `mixed`; write mixed(X, memory, where) → Y")

    def __getstate__(self) -> dict[str, Any]:
        return stored(self)


class MultiHeadAttention(Mixer):
    """[head_1; …; head_h] W^o, head_n = softmax(Q_n K_nᵀ/√d_head) V_n; h_kv heads for K and V.

    `project` makes what stands in the place of W_qkv: (X, memory or None) → Q, K, V, and, if there
    is a fourth, what the core finds in `where.more`. `join` makes what stands in the place of W^o:
    (heads (b, h, L, d_head), X) → (b, L, d). Both are given those of d, h, d_head, h_kv that they
    need.
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
        project: Callable[..., Project] | None = None,
        join: Callable[..., Join] | None = None,
    ) -> None:
        super().__init__(pattern)
        h = integer("h", h, 1)
        h_kv = h if h_kv is None else integer("h_kv", h_kv, 1)
        d = integer("d", d, 1)
        if d % h or h % h_kv:
            raise ValueError(f"d = {d}, h = {h}, h_kv = {h_kv}; h must divide d, and h_kv divide h")
        self.h, self.h_kv, self.d_head = h, h_kv, d // h
        self.core = build(core, self.d_head, h)
        self.widths = [d, h_kv * self.d_head, h_kv * self.d_head]  # of Q, K, V, from one product
        sizes = {"d": d, "h": h, "d_head": self.d_head, "h_kv": h_kv}
        self.project: Project = made("project", project, sizes) if project else self._one_product
        if not project:
            self.W_qkv = nn.Linear(d, sum(self.widths))
        self.join: Join = made("join", join, sizes) if join else self._side_by_side
        if not join:
            self.W_o = nn.Linear(d, d)
        self.register_load_state_dict_pre_hook(stored_before_cores)

    def mixed(self, X: Seq, memory: Memory, where: Where) -> Seq:
        heads, A = self.attended(X, memory, where)
        if self.watched:
            self.seen = Seen(A, heads)
        return self.join(heads, X)

    def attended(self, X: Seq, memory: Memory, where: Where) -> tuple[Tensor, Tensor | None]:
        """(heads, A), before W^o."""
        # keys and values of a memory stay the same from token to token
        kept = memory is not None and where.state is not None
        Q, K, V, *more = self.project(X, memory[:, :0] if kept and memory is not None else memory)
        if more:
            where = replace(where, more=more[0])
        if memory is not None:
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

    def _side_by_side(self, heads: Float[Tensor, "b h L d_head"], X: Seq) -> Seq:
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
    """φ(X W_1 + b_1) W_2 + b_2: each row for itself. Between is d_ff, 4 d unless it is given."""

    @named
    def __init__(
        self, d: int, d_ff: int | None = None, phi: nn.Module | Callable[[], nn.Module] = nn.GELU
    ) -> None:
        wide = 4 * d if d_ff is None else integer("d_ff", d_ff, 1)
        first, last = nn.Linear(d, wide), nn.Linear(wide, d)
        between = phi if isinstance(phi, nn.Module) else phi()
        super().__init__(OrderedDict(W_1=first, phi=between, W_2=last))


@named
def pre_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return X + F(LN(X))


@named
def post_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return LN(X + F(X))


class Block(nn.Module):
    """A mixer, cross-attention if it `crosses`, feed-forward; each with skip and norm, by `order`.

    An order with weights is an nn.Module class, made for each sublayer from d and, if it carries
    several `streams`, their number m; a `norm` is made from d.
    `mix` and `feed` get those of d, h and the block's number n that they need. Of what else is
    given, d_ff and phi are the feed-forward network's; all others are the mixer's, for
    MultiHeadAttention core, pattern, h_kv, project and join.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        order: Order = pre_norm,
        *,
        n: int = 0,
        streams: int = 1,
        crosses: bool = False,
        mix: Callable[..., nn.Module] = MultiHeadAttention,
        feed: Callable[..., nn.Module] = FeedForward,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        d_ff: int | None = None,
        phi: Callable[[], nn.Module] | None = None,
        **attention: Unpack[AttentionOptions],
    ) -> None:
        super().__init__()
        if not callable(order):
            raise TypeError(f"order = {order!r}; give pre_norm, post_norm, or a class of modules")
        if isinstance(order, nn.Module):
            raise TypeError("order is one module for all sublayers; give its class, made for each")
        if streams > 1 and not (isinstance(order, type) and takes(order, "m")):
            raise TypeError(
                f"streams = {streams}: {getattr(order, '__name__', order)} carries one; give an "
                "order of several, such as tfviz.current.HyperConnections"
            )
        sizes = {"d": d, "h": h, "n": n}
        self.attend, self.order = made("mix", mix, sizes, **attention), order
        h_kv = attention.get("h_kv")
        self.cross = MultiHeadAttention(d, h, h_kv=h_kv) if crosses else None
        self.feed = made_feed(feed, sizes, d_ff, phi)
        self.norms = nn.ModuleList(made_norm(norm, d) for _ in range(2 + crosses))
        self.orders: Any = [order] * len(self.norms)
        if isinstance(order, type):
            widths = (d,) if streams == 1 else (d, streams)
            self.orders = nn.ModuleList(order(*widths) for _ in self.norms)

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


def made_feed(
    feed: Any, sizes: dict[str, int], d_ff: int | None, phi: Callable[[], nn.Module] | None
) -> Any:
    """The feed-forward network of a block, told its width and what stands there if these are given.

    Raises TypeError for a φ that is made already and for what `feed` does not take.
    """
    if isinstance(phi, nn.Module):
        raise TypeError(
            f"phi = {phi!r} is made already; give its class, phi=nn.{type(phi).__name__}"
        )
    asked = {"d_ff": d_ff, "phi": phi}
    return made("feed", feed, sizes, **{k: x for k, x in asked.items() if x is not None})


def made_norm(norm: Any, d: int) -> Any:
    """A normalisation of d numbers. Raises TypeError for one that is made already."""
    if isinstance(norm, nn.Module) or not callable(norm):
        raise TypeError(
            f"norm = {norm!r}; give a class or a function that makes a norm of d numbers, such as "
            "norm=nn.LayerNorm"
        )
    return norm(d)


def alike(n: int) -> dict[str, Any]:
    """No options of its own for block n."""
    return {}


def own_options(layer: Callable[[int], dict[str, Any]], n: int) -> dict[str, Any]:
    """What block n is told of its own. Its pattern is that of all, if it is None.

    Raises TypeError for what all blocks share.
    """
    told = layer(n)
    if shared := [name for name in ("order", "streams", "crosses") if name in told]:
        raise TypeError(
            f"layer({n}) holds {shared[0]}, which all blocks share; give it to the model"
        )
    return {name: x for name, x in told.items() if name != "pattern" or x is not None}


class Stack(nn.Module):
    """N blocks. In every order but post-norm, what leaves the last one is normalised too.

    With m `streams`, m > 1, each begins as a copy of X; an order that carries them says what
    becomes of it, and `order.last(d, m)` makes one of them in the end.

    `layer(n)` gives what block n = 0, 1, … is told besides what all are, or in its place; `block`
    makes it of d, h, order and, if it takes that, n.
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
        crosses: bool = False,
        streams: int = 1,
        **inner: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        self.streams = integer("streams", streams, 1)
        layers, numbered = range(integer("N", N, 0)), takes(block, "n")
        more: dict[str, Any] = {**inner} | ({"crosses": True} if crosses else {})
        more |= {"streams": streams} if streams > 1 else {}
        self.blocks = nn.ModuleList(
            block(d, h, order, **({"n": n} if numbered else {}), **more | own_options(layer, n))
            for n in layers
        )
        norm = inner.get("norm", nn.LayerNorm)
        self.norm = nn.Identity() if order is post_norm else made_norm(norm, d)
        self.last = order.last(d, streams) if streams > 1 else None  # type: ignore[attr-defined]

    @levels()  # a core may read what that of the block below has left for it
    @named
    def forward(self, X: Seq, *rest: Any) -> Seq:
        if self.last is not None:
            X = X[:, :, None].expand(-1, -1, self.streams, -1)
        for block in self.blocks:
            X = block(X, *rest)
        return self.norm(X if self.last is None else self.last(X))


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
