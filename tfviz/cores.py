"""Cores: what stands between the projections of multi-head attention and W^o.

    core(Q, K, V, where) → (out, A or None)

Every mechanism that changes how queries find values is a core, and any model takes it:
`GPT(…, core=Rope)` makes one for each attention, by `build`. A function is a core; a core that
learns something is an nn.Module. Who may attend to whom is not its own: `where` brings the
pattern. `Dense` is attention as it is defined; position encodings are made from it. `implied_map`
finds the matrix that a core applies, also where the core never forms it.

>>> import torch
>>> Q = torch.ones(1, 2, 3, 4)
>>> out, A = Dense()(Q, Q, Q, Where(CAUSAL, need_weights=True))
>>> [[round(a, 2) for a in row] for row in A[0, 0].tolist()]
[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.33, 0.33, 0.33]]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from tfviz import _arguments, _door
from tfviz._arguments import named
from tfviz.dense_attention import CAUSAL, FULL, heads_attention, visible
from tfviz.past import Past
from tfviz.patterns.cost import Cost
from tfviz.patterns.lookback import lookback, never_revised
from tfviz.patterns.pattern import Pattern
from tfviz.sub_quadratic import sparse_attention


class Kept(NamedTuple):
    """What a cache holds for one attention."""

    length: int = 0  # how many positions have passed
    state: Any = None  # what is kept of them: a `Past`, or tensors (b, …) that are replaced

    def followed_by(self, states: list[Any], length: int) -> Kept:
        """After so many positions more, of which the core has kept the last of these states."""
        if not states:
            raise ValueError("this core keeps nothing of the past; call the model without a cache")
        return Kept(self.length + length, states[-1])

    @property
    def bytes(self) -> int:
        """Of all that it holds."""
        if isinstance(self.state, Past):
            return self.state.bytes
        tensors = (x for x in tree_leaves(self.state) if isinstance(x, Tensor))
        return sum(x.numel() * x.element_size() for x in tensors)

    def cut(self, length: int) -> Kept:
        """As it was when so many positions had passed. Raises ValueError for what cannot go back:
        a state that sums them up, and rows that have been left out since."""
        if self.state is not None and not isinstance(self.state, Past):
            raise ValueError(
                "this state sums up what has passed, and cannot take back a part of it; go on from "
                "the cache of that time"
            )
        return Kept(length, self.state and self.state.cut(length))


_GIVEN: ContextVar[Mapping[str, Tensor]] = ContextVar("given", default=MappingProxyType({}))
_BELOW: ContextVar[dict[bool, Any] | None] = ContextVar("below", default=None)


@contextmanager
def given(**tensors: Tensor) -> Iterator[None]:
    """While this lasts, every core finds these in `where.given`: a task's vector, a prior, a route.

    `positions` says where the tokens stand: see `given_positions`.

    >>> with given(task=torch.ones(1, 4)):
    ...     list(Where().given)
    ['task']
    """
    outside = _GIVEN.set({**_GIVEN.get(), **tensors})
    try:
        yield
    finally:
        _GIVEN.reset(outside)


@contextmanager
def levels() -> Iterator[None]:
    """While this lasts, what a core hands up is what the next one finds below."""
    outside = _BELOW.set({})
    try:
        yield
    finally:
        _BELOW.reset(outside)


def in_stack() -> bool:
    """Whether a stack carries what is handed up: a core alone has no layer above it."""
    return _BELOW.get() is not None


Cache = dict[nn.Module, Kept] | None
"""What each attention of a model keeps from call to call; {} at first, None to keep nothing."""


@dataclass(frozen=True)
class Where:
    """What a core must know besides Q, K, V.

    Query n stands at position start + n. So does key n, unless the keys are another sequence's
    (`crosses`): those stand at 0, 1, …
    """

    pattern: Pattern = FULL
    start: int = 0
    crosses: bool = False
    attention_mask: Bool[Tensor, "b Lk"] | None = None  # False at padding; of the kept keys, too
    need_weights: bool = False  # somebody wants to see A
    state: Any = None  # what the core kept in the call before; None at first
    keep: Callable[[Any], None] | None = None  # takes the state for the next call; None: no next
    more: Any = None  # what the projection made of X besides Q, K and V: gates, decays, …
    at: Int[Tensor, "Lk"] | None = None  # where the keys stand, if some are gone; on the CPU

    @property
    def given(self) -> Mapping[str, Tensor]:
        """What comes from outside of the model, by name: `with given(task=…): model(t)`."""
        return _GIVEN.get()

    @property
    def below(self) -> Any:
        """What was handed up last: by the same attention of the layer below, until this one does.

        None in the lowest layer. Self-attention and cross-attention have a line each.
        """
        return (_BELOW.get() or {}).get(self.crosses)

    def hand_up(self, value: Any) -> None:
        """Leave something for the layer above. Raises ValueError where no stack carries it."""
        handed = _BELOW.get()
        if handed is None:
            raise ValueError(
                "a core hands something up, and nobody carries it; call the whole Stack, or its "
                "blocks within `with levels():`"
            )
        handed[self.crosses] = value

    def joined(self, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """The kept K and V with these behind them, and kept in turn: what most cores keep.

        Keys of another sequence are all there from the start.
        """
        if self.crosses:
            return K, V
        past = self._past(K.shape[2]).append(K, V)
        if self.keep:
            self.keep(past)
        K, V = past.gather()
        return K, V

    def followed(self, K: Tensor, V: Tensor, gaps: bool) -> tuple[Tensor, Tensor, Where]:
        """The same for a core that can do without keys that no later query will see, and where it
        then is: `at` says where the keys stand. With `gaps`, first ones may be kept without those
        after them."""
        span = None if self.crosses or self.keep is None else lookback(self.pattern)
        if span is None or (span.first and not gaps) or not never_revised(self.pattern):
            return *self.joined(K, V), self
        past = self._past(K.shape[2]).append(K, V)
        if self.keep:
            self.keep(past.keep(*span))
        K, V = past.gather()
        if past.is_whole:
            return K, V, self
        at, mask = past.at, self.attention_mask
        if mask is not None:
            mask = mask[:, at.to(mask.device)]
        return K, V, replace(self, at=at, attention_mask=mask)

    def _past(self, n: int) -> Past:
        """The rows that were kept; none at first. Raises ValueError where earlier queries, which
        are answered, would see other keys now that n positions more are there."""
        if self.keep and self.start and not never_revised(self.pattern):
            _check_answered(self.pattern, self.start, self.start + n)
        state = self.state if self.state is not None else Past()
        return state if isinstance(state, Past) else Past().append(*state)

    def of_all_positions(self, A: Tensor | None) -> Tensor | None:
        """Weights of the keys that are left, with zeros for those that are gone."""
        if A is None or self.at is None:
            return A
        whole = A.new_zeros(*A.shape[:-1], int(self.at[-1]) + 1)
        return whole.index_copy(-1, self.at.to(A.device), A)

    def whole_text(self, chooses: str, kept: str) -> bool:
        """Whether it is causal, for a core that finds the pairs in a whole text by itself.

        `chooses` says so in words, `kept` is what a cache would have to keep. Raises ValueError for
        a pattern of positions, another sequence's keys, padding or a cache.
        """
        if self.pattern not in (CAUSAL, FULL) or self.crosses or self.attention_mask is not None:
            raise ValueError(
                f"pattern = {self.pattern!r}: {chooses}; give full or causal attention of a text "
                "to itself, without padding"
            )
        if self.keep is not None:
            raise ValueError(f"a cache cannot keep {kept}: call the model without one")
        return self.pattern == CAUSAL


def same_texts(kept: Tensor, new: Tensor) -> None:
    """Raises ValueError if what was kept is of more or fewer texts than go on now."""
    if len(kept) != len(new):
        raise ValueError(
            f"the cache is of {len(kept)} texts, now there are {len(new)}; go on with the same "
            "ones, or begin with an empty cache"
        )


def outside_inference(state: Any) -> Any:
    """A state that may have been kept in inference mode, as tensors that gradients may pass."""
    tensors = (x for x in tree_leaves(state) if isinstance(x, Tensor))
    if torch.is_inference_mode_enabled() or not any(x.is_inference() for x in tensors):
        return state
    return tree_map_only(Tensor, lambda x: x.clone() if x.is_inference() else x, state)


def stored(module: nn.Module) -> dict[str, Any]:
    """What is stored and copied of a module that keeps something of its last call, for its
    `__getstate__`: the numbers, without the graph that made them, which torch cannot copy."""
    bare = tree_map_only(Tensor, lambda x: x if x.is_leaf else x.detach(), vars(module))
    return {**bare}


class Seen(NamedTuple):
    """What an attention did in its last call: A, if its core made one, and what each head found."""

    A: Float[Tensor, "b h Lq Lk"] | None
    heads: Float[Tensor, "b h Lq d_head"]


class Core(Protocol):
    """Q (b, h, Lq, d_head); K and V (b, h_kv, Lk, d_head), where h_kv divides h; out as Q, A
    (b, h, Lq, Lk). With `where.need_weights` A must be made; a core that has none gives None."""

    def __call__(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where, /
    ) -> tuple[Tensor, Tensor | None]: ...


Make = Callable[..., Core]
"""What models take as `core`: a class or a function, with or without d_head and h; see `build`."""


def _no_maker(core: Any) -> str:
    """Why this makes no cores, and what to write instead."""
    name = type(core).__name__
    if isinstance(core, nn.Module):
        return (
            f"core is a {name} that is made already, but each attention needs its own; give the "
            f"class, core={name}, or a function that makes one: core=lambda: {name}(…)"
        )
    home = _door.home(core) if isinstance(core, str) else None
    module, known = home or ("tfviz.position", "Rope")
    return (
        f"core = {core!r} is a {name}; give the class of a core, e.g. core={known} after "
        f"from {module} import {known}"
    )


@_arguments.named
def build(core: Make, d_head: int, h: int) -> Core:
    """The core of one attention with h heads of d_head numbers, made by a class or a function.

    Parameters called d_head and h that have no default are given; others must have one.

    >>> build(Sparse, d_head=16, h=4)
    Sparse()

    Raises TypeError for a core that is made already, a name, and for what needs more than that.
    """
    if isinstance(core, nn.Module) or not callable(core):
        raise TypeError(_no_maker(core))
    if {"Q", "K", "V"} <= {*_needed(core)}:
        raise TypeError(
            f"core = {_called(core)} takes Q, K and V, so it is a core already; give a function "
            f"that returns it: core=lambda: {_called(core)}"
        )
    return made("core", core, {"d_head": d_head, "h": h})


def made(option: str, make: Any, sizes: Mapping[str, Any], **asked: Any) -> Any:
    """What the maker makes that somebody gave as this option: a class or a function.

    Of the sizes it gets those that it has no default for, and all that was asked for besides.

    >>> made("feed", nn.Linear, {"in_features": 3, "out_features": 2, "n": 0}, bias=False)
    Linear(in_features=3, out_features=2, bias=False)

    Raises TypeError for what is made already or no maker, for one that needs more, and for what was
    asked for and the maker does not take.
    """
    if isinstance(make, nn.Module) or not callable(make):
        name = type(make).__name__
        made_already = f"{option} is a {name} that is made already, but each layer needs its own"
        raise TypeError(
            f"{made_already}; give what makes it: {option}=lambda: {name}(…)"
            if isinstance(make, nn.Module)
            else f"{option} = {make!r} is a {name}; give a class, or a function that makes one"
        )
    needed = _needed(make)
    if others := [x for x in needed if x not in sizes and x not in asked]:
        missing = ", ".join(f"{x}=…" for x in others)
        *names, last = sizes
        raise TypeError(
            f"{option} = {_called(make)} needs {', '.join(others)}, and a model only gives "
            f"{', '.join(names)}{' and ' * bool(names)}{last}; say the rest: "
            f"{option}=functools.partial({_called(make)}, {missing})"
        )
    if unknown := [x for x in asked if not takes(make, x)]:
        raise TypeError(
            f"{option} = {_called(make)} takes no {unknown[0]}; leave {unknown[0]} out, or give "
            f"another {option}"
        )
    return make(**{x: sizes[x] for x in needed if x not in asked}, **asked)


def takes(make: Callable[..., Any], name: str) -> bool:
    """Whether something that makes parts of a model can be told this."""
    parameters = inspect.signature(make).parameters
    return name in parameters or any(x.kind is x.VAR_KEYWORD for x in parameters.values())


def _needed(make: Callable[..., Any]) -> list[str]:
    """The names of the parameters without a default."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # some of those that are written in C have none
        return []
    return [
        x.name
        for x in parameters
        if x.default is x.empty and x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
    ]


def _called(make: Any) -> str:
    return getattr(make, "__name__", None) or repr(make)


@lru_cache(maxsize=1024)
def _check_answered(pattern: Pattern, start: int, L: int) -> None:
    """Raises ValueError if queries before `start`, answered already, would now see other keys."""
    before, now = (pattern.rows(torch.arange(start), n) for n in (start, L))
    if not (before.equal(now[..., :start]) and not now[..., start:].any()):
        raise ValueError(
            f"{pattern!r} lets queries before position {start} see other keys once there are {L} "
            "positions, but they were answered already; a cache needs a causal pattern that does "
            "not depend on the length: call the model without one"
        )


@lru_cache(maxsize=1024)
def sees_ahead(pattern: Pattern, Lq: int, Lk: int) -> bool:
    """Whether one of the queries, the last Lq of Lk positions, may use a key behind it."""
    if pattern == CAUSAL:
        return False
    mask = visible(pattern, Lq, Lk)
    return (mask is None and Lk > 1) or (mask is not None and bool(mask.triu(Lk - Lq + 1).any()))


@_arguments.named
def positions(
    Lq: int, Lk: int, device: Any = None
) -> tuple[Int[Tensor, "Lq 1"], Int[Tensor, "Lk"]]:
    """(i, j), which broadcast to all pairs: the queries stand at the last Lq of Lk >= Lq.

    Raises ValueError where `given` brings other positions, which these would contradict.
    """
    _arguments.integer("Lk", Lk, Lq)
    refuse_given_positions("a bias or prior of i and j")
    j = torch.arange(Lk, device=device)
    return j[Lk - Lq :, None], j


def given_positions(start: int, L: int, b: int, axes: int = 1) -> Num[Tensor, "*b L *axes"] | None:
    """Where tokens start … start + L − 1 of b texts stand, as `given(positions=…)` says it; None if
    it says nothing.

    `positions` holds real numbers, one for each token of the whole text: (L,) for all texts alike,
    (b, L), or (b, L, axes) for tokens that stand in a plane or in space. Tokens in a cache have
    theirs too, and those that come later may have theirs already, as `generate` needs it.

    `Rope` turns by them, models of tokens look up by them what they add at the input, and biases
    and priors that count places i and j refuse them. A pattern is of places in any case.

    >>> with given(positions=torch.tensor([0.0, 0.5, 1.0, 1.5])):
    ...     given_positions(2, 2, b=1)
    tensor([1.0000, 1.5000])

    Raises TypeError for what holds no numbers, and ValueError for NaN, another shape and too few.
    """
    P = _GIVEN.get().get("positions")
    if P is None:
        return None
    some = "(b, L)" if axes == 1 else f"(b, L, {axes})"
    if not isinstance(P, Tensor) or P.dtype == torch.bool or P.is_complex():
        kind = P.dtype if isinstance(P, Tensor) else f"a {type(P).__name__}"
        raise TypeError(f"positions is {kind}; give a tensor of real numbers, {some}")
    for_all = P.dim() == 1 and axes == 1
    if not for_all and (P.shape[2:] != (axes,) * (axes > 1) or P.shape[:1] not in ((1,), (b,))):
        raise ValueError(
            f"positions has shape {tuple(P.shape)}, and b = {b}; give {some}"
            + (" or, for all texts alike, (L,)" if axes == 1 else ", or 1 in the place of b")
        )
    column = 0 if for_all else 1
    if P.shape[column] < start + L:
        raise ValueError(
            f"positions has {P.shape[column]} columns, and {start + L} tokens are read by now; "
            "give a position for each of them, those in the cache too"
        )
    if P.is_floating_point():
        _arguments.finite("positions", P)
    return P.narrow(column, start, L)


def places(start: int, b: int, L: int, device: Any = None) -> Num[Tensor, "*b L"]:
    """Where tokens start … start + L − 1 of b texts stand: as it is given, or else as they come."""
    i = given_positions(start, L, b)
    return torch.arange(start, start + L, device=device) if i is None else i.to(device)


def refuse_given_positions(name: str) -> None:
    """Raises ValueError where positions are given, in the name of an encoding that counts."""
    if "positions" in _GIVEN.get():
        raise ValueError(
            f"positions are given, and {name} counts places itself; use an encoding that reads "
            "them, such as core=Rope, or call the model without given(positions=…)"
        )


def identity(V: Float[Tensor, "b h L dv"]) -> Float[Tensor, "b h L L"]:
    """Values that make the output of attention its weights: A I = A."""
    L = V.shape[2]
    return torch.eye(L, dtype=V.dtype, device=V.device).expand(*V.shape[:2], L, L)


@_arguments.named
def implied_map(
    core: Core, Q: Tensor, K: Tensor, V: Tensor, where: Where = Where()
) -> Float[Tensor, "b h Lq Lk"]:
    """The L × L matrix A with A V = out that a core applies, also one that never forms it.

    Column j of A is what the core answers if value j is 1 and all others are 0. It is asked for as
    many columns at a time as V has numbers, in evaluation mode, and nothing that it keeps or hands
    up is changed.

    >>> X = torch.ones(1, 1, 3, 2)
    >>> implied_map(Dense(), X, X, X, Where(CAUSAL))[0, 0, 1]
    tensor([0.5000, 0.5000, 0.0000])

    Raises TypeError for what is no core, and ValueError for queries after kept keys and for a core
    that applies no such matrix: it adds something to A V, looks at V before it decides, mixes the
    values of several heads, or is random.
    """
    if not callable(core) or isinstance(core, type):
        raise TypeError(
            f"core = {core!r} is no core that is made; give one: implied_map(Dense(), Q, K, V)"
        )
    for name, X in (("Q", Q), ("K", K), ("V", V)):
        if _arguments.tensor(name, X, "(b, h, L, d_head)").dim() != 4:
            raise ValueError(f"{name} has shape {tuple(X.shape)}; give (b, h, L, d_head)")
    if where.state is not None:
        raise ValueError(
            "where.state holds kept keys, and their values cannot be replaced; give the queries, "
            "keys and values of the whole text, and no state"
        )
    where = replace(where, keep=None, need_weights=False)
    dv, one = V.shape[-1], identity(V)
    with _undisturbed(core):
        offset = core(Q, K, torch.zeros_like(V), where)[0]
        columns = [
            core(Q, K, nn.functional.pad(part, (0, dv - part.shape[-1])), where)[0][
                ..., : part.shape[-1]
            ]
            for part in one.split(dv, -1)
        ]
        out = core(Q, K, V, where)[0]
    name = type(core).__name__ if isinstance(core, nn.Module) else repr(core)
    if not offset.isfinite().all():
        raise ValueError(
            f"{name} answers NaN or infinity where all values are 0; look at Q, K and its weights"
        )
    if offset.any():
        raise ValueError(
            f"{name} answers {offset.abs().max():.3g} where all values are 0, so it is not linear "
            "in V and no matrix A gives A V; take off what it adds, or ask it for its weights"
        )
    A = torch.cat(columns, -1)
    values = V.repeat_interleave(A.shape[1] // V.shape[1], 1)
    scale = (A.abs() @ values.abs()).detach().amax().clamp(min=1)
    error = ((A @ values - out).detach().abs().amax() / scale).item()
    if not error <= torch.finfo(V.dtype).eps ** (2 / 3):
        raise ValueError(
            f"A V differs from the output of {name} by {error:.1e} of its size, so it is not "
            "linear in V head by head: its answer depends on V in another way, mixes the values of "
            "heads, or is random; fix what V or chance decides, and probe again"
        )
    return A


class _Unheard(dict[bool, Any]):
    """What stands below, for a core that is asked many times: what it hands up reaches nobody, also
    not itself when it is asked again."""

    def __setitem__(self, crosses: bool, value: Any) -> None:
        pass


@contextmanager
def _undisturbed(core: Core) -> Iterator[None]:
    """While this lasts, a module is in evaluation mode, and what it hands up reaches nobody."""
    modes = {m: m.training for m in core.modules()} if isinstance(core, nn.Module) else {}
    below = _BELOW.set(_Unheard(_BELOW.get() or {}))
    try:
        for module in modes:
            module.training = False
        yield
    finally:
        _BELOW.reset(below)
        for module, training in modes.items():
            module.training = training


class Dense(nn.Module):
    """softmax(Q Kᵀ/√d_head) V over the pattern, by torch's fused kernel; K and V are kept.

    A position encoding overrides one method or more, and learns what is its own; here they do
    nothing. `positions(Lq, Lk)` says where queries and keys stand, also with a cache.
    """

    scores: Callable[[Tensor, Where], Tensor] | None = None
    """What becomes of Q Kᵀ/√d_head + bias, (b, h, Lq, Lk), before the pattern and the softmax. With
    it, or `mix`, attention makes all L² scores; None leaves them to the fused kernel."""
    mix: Callable[[Tensor, Where], Tensor] | None = None
    """What becomes of A before it weighs the values."""
    reads_weights = False  # True where `values` is overridden: attention then makes all L² weights
    by_distance = False
    """True where what it does to scores or weights depends on i − j, and on neither i nor j alone:
    keys that a window has passed are not kept then. What overrides nothing needs not say it."""

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        """Raises ValueError for heads, widths or a pattern that the encoding is not made for.

        K are all keys, the kept ones too.
        """

    def turn(self, X: Float[Tensor, "b h L d_head"], start: int) -> Tensor:
        """Queries or keys that stand at start, start + 1, …, rotated. They are kept turned."""
        return X

    def turn_queries(self, X: Float[Tensor, "b h L d_head"], where: Where) -> Tensor:
        """Queries, rotated by `turn`. An encoding that treats queries otherwise than keys, or reads
        `given_positions`, overrides this; for any other that turns, given ones are refused.

        Raises ValueError for positions that are given to an encoding that does not read them.
        """
        if type(self).turn is not Dense.turn:
            refuse_given_positions(type(self).__name__)
        return self.turn(X, where.start)

    def turn_keys(self, X: Float[Tensor, "b h_kv L d_head"], where: Where) -> Tensor:
        """Keys, rotated as `turn_queries` rotates queries. They are kept turned."""
        return Dense.turn_queries(self, X, where)

    def bias(
        self, Q: Float[Tensor, "b h Lq d_head"], K: Float[Tensor, "b h_kv Lk d_head"]
    ) -> Float[Tensor, "*b_h Lq Lk"] | None:
        """What is added to Q Kᵀ/√d_head, a tensor that broadcasts to (b, h, Lq, Lk), or None."""
        return None

    def values(self, A: Float[Tensor, "b h Lq Lk"]) -> Float[Tensor, "b h Lq d_head"]:
        """What is added to A V."""
        raise NotImplementedError(f"{type(self).__name__} reads the weights; give it `values`")

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if not where.crosses:
            Q, K = self.turn_queries(Q, where), self.turn_keys(K, where)
        looks = self._looks_at_places()
        K, V, where = (
            where.followed(K, V, gaps=not looks)
            if self.by_distance or not looks
            else (*where.joined(K, V), where)
        )
        self.check(Q, K, where)
        out, A = self.attend(Q, K, V, where)
        if not self.reads_weights or A is None:
            return out, where.of_all_positions(A)
        more = self.values(A)
        if more.shape[-1] != out.shape[-1]:
            raise ValueError(
                f"V has values of {out.shape[-1]} numbers, and {type(self).__name__} adds vectors "
                f"of {more.shape[-1]} to them; give values as wide as these"
            )
        return out + more, where.of_all_positions(A)

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        """What is left when queries and keys are turned and the kept keys are there."""
        bias, need_weights = self.bias(Q, K), where.need_weights or self.reads_weights
        scores, mix = (step and _told(step, where) for step in (self.scores, self.mix))
        return heads_attention(
            Q, K, V, where.pattern, bias, where.attention_mask, need_weights, scores, mix, where.at
        )

    @classmethod
    @cache
    def _looks_at_places(cls) -> bool:
        """Whether it does something of its own to scores, weights or values."""
        own = ("attend", "bias", "mix", "scores", "values")
        return any(getattr(cls, name) is not getattr(Dense, name) for name in own)

    def cost(self, pattern: Pattern, L: int, d: int, h: int) -> Cost:
        """Pairs, FLOPs and bytes of scores and values for L positions, d numbers in h heads."""
        return FULL.cost(L, d, h)


def _told(step: Callable[[Tensor, Where], Tensor], where: Where) -> Callable[[Tensor], Tensor]:
    return lambda x: step(x, where)


class Bias(Dense):
    """A score bias that is a plain function of the indices, such as `lambda i, j: -0.1 * (i - j)`.

    It may return (Lq, Lk), or (h, Lq, Lk) where heads differ, and holds for every length.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return self.function(*positions(Q.shape[2], K.shape[2], Q.device)).to(Q.dtype)


class Sparse(Dense):
    """The same at the cost of the pattern's pairs, by `sparse_attention`.

    What that does not do is left to `Dense`: padding, weights that are asked for, keys of another
    sequence, and queries that come after kept keys.
    """

    by_distance = True

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        if (
            where.need_weights
            or where.crosses
            or where.attention_mask is not None
            or Q.shape[2] < K.shape[2]
        ):
            return super().attend(Q, K, V, where)
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        return sparse_attention(Q, K, V, where.pattern), None

    def cost(self, pattern: Pattern, L: int, d: int, h: int) -> Cost:
        return pattern.cost(L, d, h)


def stored_before_cores(module: Any, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
    """Weights that were stored when a core was called `positions`."""
    old = prefix + "positions."
    for name in [n for n in state if n.startswith(old)]:
        state[f"{prefix}core.{name.removeprefix(old)}"] = state.pop(name)
