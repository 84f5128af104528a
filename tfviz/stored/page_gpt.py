"""A GPT of the library for a page: what JavaScript needs to run it, with any of its parts.

`handed_over` tells a model as plain JSON: its sizes, its parts by name, the formulas of masks,
biases and positions as the library derives them, and the weights. `explorers/shared/alive.js` runs
what it has told, and `explorers/shared/parts.js` holds the parts. A part is added with an entry
there and a line in the table here that tells of it: POSITIONS, CORES, PROJECTIONS, JOINS, MIXERS,
NORMS, ORDERS, FEEDS.

A part of your own may tell of itself: it has a method `in_page()`, which gives {"name": …, "part":
the JavaScript of such an entry}, and whatever else that entry is to know. A core that only adds a
bias to the scores needs no JavaScript: `Bias(lambda i, j: …)` is read as a formula.

>>> told = handed_over(GPT(vocab=11, d=8, h=2, N=1, core=Rope))
>>> told["blocks"][0]["mixer"]["core"]["turn"]["name"], told["longest"]
('rope', None)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz.basics.layer_norm_pre_post import RMSNorm, no_norm
from tfviz.basics.pointwise_mlp import SwiGLU
from tfviz.compressed.linear_transformer import LinearAttention, positive
from tfviz.cores import Bias, Dense, Sparse, Where
from tfviz.current.gated_delta_rule import DeltaGates, GatedDelta, NormedHeads
from tfviz.current.latent_attention import LatentAttention, LatentHeads, Latents
from tfviz.formula import Formula, FormulaError
from tfviz.heads.grouped_query_attention import Grouped
from tfviz.longer_context.alibi import Alibi, ramp
from tfviz.longer_context.universal_transformer import Universal
from tfviz.models.blocks import (
    Block,
    FeedForward,
    MultiHeadAttention,
    Stack,
    post_norm,
    pre_norm,
)
from tfviz.models.gpt import GPT
from tfviz.patterns import Pattern, causal
from tfviz.patterns.lookback import lookback, never_revised
from tfviz.patterns.pattern import PerHead
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope, Turned
from tfviz.position.shaw_relative import Shaw, label
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoid
from tfviz.position.t5_relative_bias import T5Bias, bucket
from tfviz.priors.average_attention import AverageAttention, Averages
from tfviz.stored.weights import pack, unpack

__all__ = ["as_handed_over", "handed_over", "in_double"]

Told = dict[str, Any]
"""A part as plain JSON: its name, and what else the page must know of it."""

NONE: Told = {"name": "none"}


def handed_over(model: GPT, numbers: str = "int8") -> Told:
    """The model as plain JSON, for `alive` of `explorers/shared/alive.js`.

    `numbers` says how the weights travel: "int8", "half" or "exact", as in `stored.weights.pack`.

    Raises TypeError for what is no GPT, and ValueError for a part that the page does not have; the
    message says where it stands and what the page has in its place.
    """
    if not isinstance(model, GPT):
        raise TypeError(f"model is a {type(model).__name__}; give a GPT of tfviz.models.gpt")
    dtype = model.embed.weight.dtype
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"model is of {dtype}; give model.float()")
    positions = model.embed.positions
    return {
        "vocab": model.embed.num_embeddings,
        "d": model.embed.embedding_dim,
        "scale": model.embed.scale,
        "positions": NONE if positions is None else _told(POSITIONS, "positions", positions),
        "longest": len(positions.P) if isinstance(positions, Learned) else None,
        "blocks": [_block(n, at, block) for n, (at, block) in enumerate(_blocks(model.stack))],
        "norm": _told(NORMS, "norm of the stack", model.stack.norm),
        "bytes": dtype.itemsize,
        "weights": pack(model.state_dict(), numbers),
    }


def in_double(model: GPT) -> GPT:
    """A copy in double precision, for evaluation, in which sinusoids are as exact as a page makes
    them: `Sinusoidal` makes float32. A norm of torch that has no ε of its own keeps the one that
    the model's precision gives it."""
    model = copy.deepcopy(model)
    for norm in model.modules():
        if isinstance(norm, nn.RMSNorm):
            norm.eps = _eps(norm)
    model.double().eval().requires_grad_(False)
    positions = model.embed.positions
    if isinstance(positions, Sinusoidal):
        d, base, scale = positions.d, positions.base, positions.scale
        c = torch.arange(d, dtype=torch.float64)

        def exact(i: Tensor) -> Float[Tensor, "L d"]:
            rows: Tensor = sinusoid(i[..., None].double(), c, d=d, base=base)
            return scale * rows

        del model.embed.positions  # a module; a function takes its place
        model.embed.positions = exact
    return model


def as_handed_over(model: GPT, numbers: str = "int8") -> GPT:
    """`in_double` with the weights as they arrive in the page, rounded as `numbers` says."""
    rounded = in_double(model)
    rounded.load_state_dict(unpack(pack(model.state_dict(), numbers)))
    return rounded


# --- blocks ---------------------------------------------------------------------------------------


def _blocks(stack: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The blocks in the order in which a token passes them, each with the name of its weights; a
    block that is applied several times comes several times, under one name."""
    if isinstance(stack, Universal):
        if stack.signal is not None:
            raise ValueError(
                "the model is told place and step before each step, and a page adds positions at "
                "the input only; make it with universal(…, signal=None)"
            )
        for _ in range(stack.T):
            yield "stack.block", stack.block
    elif isinstance(stack, Stack) and stack.last is None:
        names = dict[nn.Module, str]()
        for n, block in enumerate(stack.blocks):
            yield names.setdefault(block, f"stack.blocks.{n}"), block
    else:
        streams = getattr(stack, "streams", 1)
        raise ValueError(
            f"the stack is a {type(stack).__name__} with {streams} streams; a page runs a Stack of "
            "one stream, or a Universal"
        )


def _block(n: int, at: str, block: Any) -> Told:
    if type(block) is not Block or block.cross is not None:
        raise ValueError(
            f"block {n} is a {type(block).__name__}{' that crosses' * isinstance(block, Block)}; a "
            "page runs a Block of self-attention and feed-forward, without positions of its own"
        )
    if block.order not in ORDERS:
        known = ", ".join(order.__name__ for order in ORDERS)
        raise ValueError(
            f"block {n}: order = {getattr(block.order, '__name__', block.order)}, which the page "
            f"does not have; it has {known}"
        )
    return {
        "at": at,
        "order": {"name": ORDERS[block.order]},
        "norms": [_told(NORMS, f"block {n}: norm", norm) for norm in block.norms],
        "mixer": _told(MIXERS, f"block {n}: mix", block.attend),
        "feed": _feed(f"block {n}: feed", block.feed),
    }


def _told(table: Mapping[type, Callable[[Any], Told]], where: str, part: Any) -> Told:
    """What the table tells of this part, or it of itself. Raises ValueError if neither does."""
    tell = type(part).in_page if hasattr(part, "in_page") else table.get(type(part))
    try:
        if tell:
            return tell(part)
        known = ", ".join(dict.fromkeys(kind.__name__ for kind in table))
        missing = f"a {type(part).__name__}, which the page does not have; it has {known}"
    except _MissingError as error:
        missing = str(error)
    raise ValueError(f"{where} is {missing}")


class _MissingError(Exception):
    """What of a part the page does not have."""


def _feed(where: str, feed: Any) -> Told:
    """Of a network; one without weights that answers 0 is none."""
    known = type(feed) in FEEDS or hasattr(feed, "in_page")
    if not known and isinstance(feed, nn.Module) and not [*feed.parameters()]:
        probe = torch.linspace(-2, 2, 7)
        with torch.no_grad():
            if not feed(probe[None, None]).any():
                return NONE
    return _told(FEEDS, where, feed)


# --- positions, norms, orders, feed-forward -------------------------------------------------------


def _formula(formula: Formula, **values: Any) -> Told:
    """A formula of two indices in JavaScript, and the values of its parameters in their order."""
    return {"code": formula.javascript(), "values": [values[n] for n in formula.parameters]}


def _sinusoidal(positions: Sinusoidal) -> Told:
    entry = _formula(Formula(sinusoid), d=positions.d, base=positions.base)
    return {"name": "formula", **entry, "scale": positions.scale}


def _eps(norm: nn.RMSNorm) -> float:
    return torch.finfo(norm.weight.dtype).eps if norm.eps is None else norm.eps


PHIS: dict[type, str] = {nn.GELU: "gelu", nn.ReLU: "relu", nn.SiLU: "silu"}


def _layers(feed: FeedForward) -> Told:
    phi = feed.phi
    if getattr(phi, "approximate", "none") != "none" or type(phi) not in PHIS:
        raise _MissingError(f"a network with {phi!r}; the page has nn.GELU(), nn.ReLU, nn.SiLU")
    return {"name": PHIS[type(phi)]}


POSITIONS: dict[type, Callable[[Any], Told]] = {
    Learned: lambda positions: {"name": "table"},
    Sinusoidal: _sinusoidal,
}
NORMS: dict[type, Callable[[Any], Told]] = {
    nn.LayerNorm: lambda norm: {"name": "layer", "eps": norm.eps},
    RMSNorm: lambda norm: {"name": "rms", "eps": norm.eps},
    nn.RMSNorm: lambda norm: {"name": "rms", "eps": _eps(norm)},
    nn.Identity: lambda norm: NONE,
}
ORDERS: dict[Any, str] = {pre_norm: "pre", post_norm: "post", no_norm: "none"}
FEEDS: dict[type, Callable[[Any], Told]] = {
    FeedForward: _layers,
    SwiGLU: lambda feed: {"name": "swiglu"},
}


# --- attention ------------------------------------------------------------------------------------


def _attention(attend: MultiHeadAttention) -> Told:
    heads = {"h": attend.h, "h_kv": attend.h_kv}
    one = {"name": "one", "d": attend.h * attend.d_head, **heads}
    project, join = attend.project, attend.join
    inner = attend.core.inner if isinstance(attend.core, Turned) else attend.core
    core = {**heads, **_told(CORES, "core", inner)}
    if inner is not attend.core:
        if core.get("turn") != NONE:
            raise _MissingError(
                f"a Turned around a {type(inner).__name__}; the page turns queries and keys once, "
                "before a softmax or a LinearAttention"
            )
        core["turn"] = _rope(Rope(attend.d_head))["turn"]
    if core["name"] == "softmax" or "part" in core:
        core["masks"] = _masks(attend.pattern)
    elif attend.pattern != causal():
        raise _MissingError(
            f"a {type(inner).__name__} with pattern = {attend.pattern!r}; the page has it "
            "with causal() alone, where it keeps a state of one size"
        )
    if core["name"] == "softmax":
        core["past"] = _past(attend)
    ours = project == attend._one_product, join == attend._side_by_side
    return {
        "name": "attention",
        "h": attend.h,
        "core": core,
        "projection": one if ours[0] else _told(PROJECTIONS, "project", project),
        "join": one if ours[1] else _told(JOINS, "join", join),
    }


def _masks(pattern: Pattern) -> list[Told]:
    """The formula of a pattern, or those of all heads."""
    parts: Sequence[Pattern] = pattern.parts if isinstance(pattern, PerHead) else [pattern]
    try:
        masks = [{"code": x.javascript, "values": [*x.parameters.values()]} for x in parts]
    except ValueError as error:  # a combination of patterns that differ by head
        raise _MissingError(
            f"an attention whose pattern has no formula: {error}; give per_head(…) as it is"
        ) from None
    if not never_revised(pattern):
        raise _MissingError(
            f"an attention with pattern = {pattern!r}, whose formula does not show that no token "
            "reads a later one; combine it with causal()"
        )
    return masks


def _past(attend: MultiHeadAttention) -> Told:
    """How many of the last and of the first rows the core keeps, as it says itself when it is asked
    on the meta device, where nothing is computed; `last` is None if it keeps all."""
    span = lookback(attend.pattern)
    n = sum(span) + 2 if span else 2
    attend = copy.deepcopy(attend).to("meta")
    core = attend.core.inner if isinstance(attend.core, Turned) else attend.core
    dtype = next(attend.parameters()).dtype
    Q, K, V, *_ = attend.project(
        torch.zeros(1, n, attend.widths[0], dtype=dtype, device="meta"), None
    )
    states = list[Any]()
    core(Q, K, V, Where(attend.pattern, keep=states.append))
    if not states:
        raise _MissingError(
            f"a {type(core).__name__} that keeps nothing of what it has read; a core of the page "
            "takes keys and values from where.joined(K, V)"
        )
    past = states[-1]
    if past.is_whole:
        return {"last": None, "first": 0}
    return {"last": past.rows - past.first, "first": past.first}


def _softmax(turn: Told = NONE, bias: Told = NONE) -> Told:
    return {"name": "softmax", "turn": turn, "bias": bias}


def _rope(core: Rope) -> Told:
    if core.axes != 1:
        raise _MissingError(f"a Rope with axes = {core.axes}; the tokens of a page have one place")
    return _softmax(
        turn={
            "name": "rope",
            "speeds": core.speeds.tolist(),
            "interpolate": core.interpolate,
            "length": core.temperature**-0.5,
        }
    )


def _alibi(core: Alibi) -> Told:
    code = Formula(ramp).javascript()
    return _softmax(bias={"name": "formula", "code": code, "heads": [[m] for m in core.m.tolist()]})


def _bias(core: Bias) -> Told:
    try:
        formula = Formula(core.function)
        if not formula.parameters:
            return _softmax(bias={"name": "formula", "code": formula.javascript(), "heads": [[]]})
        why = f"it has parameters, {', '.join(formula.parameters)}"
    except FormulaError as error:
        why = str(error)
    raise _MissingError(f"a Bias that is no formula of i and j: {why}")


def _shaw(core: Shaw) -> Told:
    of = _formula(Formula(label), k=core.k)
    return _softmax(bias={"name": "shaw", "label": of, "k": core.k, "values": core.P_v is not None})


def _t5(core: T5Bias) -> Told:
    n = torch.arange(core.far + 1)  # the bucket of each distance; all beyond have the last one's
    buckets = bucket(n, core.buckets, core.far, bidirectional=core.bidirectional)
    each = {"buckets": buckets.tolist(), "many": core.buckets, "scale": core.scale}
    return _softmax(bias={"name": "t5", **each})


def _notes(core: LatentAttention) -> Told:
    of = _told(CORES, "rope", core.rope)["turn"]
    turn = {"name": "tail", "many": core.d_r, "of": of} if core.d_r else NONE
    return {**_softmax(turn=turn), "h_kv": 1, "within": True}


def _latents(project: Latents) -> Told:
    return {
        "name": "latents",
        "h": project.h,
        "d_head": project.d_head,
        "d_c": project.d_c,
        "d_r": project.d_r,
        "noted": not isinstance(project.query_note, nn.Identity),
        "eps": _eps(project.norm),
    }


def _latent_heads(join: LatentHeads) -> Told:
    _, d_head, d_c = join.W_uv.shape
    return {"name": "latents", "d_head": d_head, "d_c": d_c}


def _delta_gates(project: DeltaGates) -> Told:
    d, of_keys, _ = project.widths
    heads = {"h": d // project.d_head, "h_kv": of_keys // project.d_head}
    return {"name": "gated", "d": d, **heads}


def _gated_heads(join: NormedHeads) -> Told:
    h = join.W_z.out_features // len(join.norm.weight)
    return {"name": "gated", "h": h, "eps": _eps(join.norm)}


def _linear(core: LinearAttention) -> Told:
    if core.phi is not positive:
        raise _MissingError(f"a LinearAttention with phi = {core.phi!r}; the page has `positive`")
    return {"name": "linear", "turn": NONE, "eps": core.eps}


def _average(attend: AverageAttention) -> Told:
    if attend.pattern != causal():
        raise _MissingError(
            f"an AverageAttention with pattern = {attend.pattern!r}, for which it keeps all rows; "
            "the page has it with causal()"
        )
    feed = None if isinstance(attend.feed, nn.Identity) else _layers(cast(Any, attend.feed))
    return {"name": "average", "h": 1, "feed": feed, "gated": attend.gates is not None}


CORES: dict[type, Callable[[Any], Told]] = {
    Dense: lambda core: _softmax(),
    Sparse: lambda core: _softmax(),
    Grouped: lambda core: _softmax(),
    Rope: _rope,
    Alibi: _alibi,
    Bias: _bias,
    Shaw: _shaw,
    T5Bias: _t5,
    LatentAttention: _notes,
    LinearAttention: _linear,
    Averages: lambda core: {"name": "average"},
    GatedDelta: lambda core: {"name": "delta"},
}
PROJECTIONS: dict[type, Callable[[Any], Told]] = {Latents: _latents, DeltaGates: _delta_gates}
JOINS: dict[type, Callable[[Any], Told]] = {LatentHeads: _latent_heads, NormedHeads: _gated_heads}
MIXERS: dict[type, Callable[[Any], Told]] = {
    MultiHeadAttention: _attention,
    AverageAttention: _average,
}
