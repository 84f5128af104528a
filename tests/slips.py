"""Everyday slips in the arguments of whatever is public, and good arguments to begin with."""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch
from public import SIZES, VOCAB, D, H, L
from torch import Generator, Tensor, nn

from tfviz import patterns
from tfviz.cores import Where
from tfviz.models.blocks import Block, MultiHeadAttention, Stack, pre_norm
from tfviz.models.gpt import GPT
from tfviz.patterns.pattern import Pattern

DIMS = {
    "b": 2, "h": H, "L": L, "Lq": L, "Lk": L, "Ly": L, "Lx": L, "d": D, "dk": 4, "d_k": 4,
    "dv": 4, "d_v": 4, "d_head": 4, "h_kv": H, "V": VOCAB, "vocab": VOCAB, "n": L, "dff": D,
    "d_out": D, "T": 6, "K": 3, "labels": 5, "distances": 2 * L - 1, "m": 4, "k": 2, "r": 2,
    "l": 3, "z": 3, "B": 2 * L - 1, "N": 2, "M": 2, "h_k": H, "h_v": H, "share": 2, "u": 2,
    "E": 3, "outputs": 3, "L_max": 2 * L, "width": 3, "c": 2, "S": 5,
}  # fmt: skip
"""What a dimension of an annotation is by its name, everywhere."""

NUMBERS = {
    "share": 0.5, "p": 0.5, "tau": 1.0, "alpha": 0.5, "beta": 0.5, "eps": 1e-5, "delta": 0.1,
    "epsilon": 0.1, "threshold": 0.5, "base": 100.0, "price": 0.1, "risk": 0.1, "gain": 2.0,
    "factor": 2.0,
}  # fmt: skip


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    with suppress(NameError, AttributeError):
        return typing.get_type_hints(function)
    return {}


class Sizes(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 4


def drawn(hint: Any, name: str) -> Tensor:
    """A tensor as an annotation asks for it: `Float[Tensor, "*batch L d"]`."""
    shape: list[int] = []
    for part in hint.dim_str.split():
        text = part.lstrip("#")
        if text.startswith("*") or text == "...":
            text = text.lstrip("*#")
            shape += {"heads": [H], "L": [L], "pairs": [L, L], "K": [3]}.get(text, [2])
        else:
            shape.append(int(eval(text.replace("/", "//"), {}, Sizes(DIMS))))
    rng = Generator().manual_seed(len(name))
    kinds = {str(x) for x in hint.dtypes}
    if kinds <= {"bool", "bool_"}:
        return torch.ones(shape, dtype=torch.bool)
    if any("float" in x for x in kinds):
        return torch.randn(shape, generator=rng)
    return torch.randint(2, shape, generator=rng)


class Unknown:
    """In the place of an argument that no walk can make: a slip in itself."""


def good(hint: Any, name: str) -> Any:
    """An argument that is right for an annotation and a name, `Unknown()` if none is known."""
    if hasattr(hint, "dim_str"):
        return drawn(hint, name)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return good(typing.get_args(hint)[0], name)
    if hint is int:
        return SIZES.get(name, 2)
    if hint is float:
        return NUMBERS.get(name, 0.5)
    known: dict[Any, Callable[[], Any]] = {
        bool: lambda: True,
        Generator: lambda: Generator().manual_seed(1),
        GPT: lambda: GPT(VOCAB, D, H, 2),
        Block: lambda: Block(D, H, pre_norm),
        Stack: lambda: Stack(2, D, H),
        MultiHeadAttention: lambda: MultiHeadAttention(D, H),
        nn.Module: lambda: nn.Linear(D, D),
        Pattern: patterns.causal,
        str: lambda: "some words",
        Tensor: lambda: torch.randn(2, L, D),
        Where: lambda: Where(patterns.causal()),
    }
    if hint in known:
        return known[hint]()
    if name in ("F", "LN", "function", "phi", "f"):
        return torch.relu
    if name in ("i", "j", "c") and hint is Any:
        return torch.arange(3)
    return Unknown()


def arguments(function: Callable[..., Any], **own: Any) -> dict[str, Any]:
    """Good arguments for all that has no default."""
    annotated = hints(function)
    found = {}
    for x in inspect.signature(function).parameters.values():
        if x.name == "self" or x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD):
            continue
        if x.name in own:
            found[x.name] = own[x.name]
        elif x.default is x.empty:
            found[x.name] = good(annotated.get(x.name), x.name)
    return found


def slips(value: Any) -> Iterator[tuple[str, Any]]:
    """What people give by mistake in the place of a good argument."""
    yield "nothing", None
    yield "a text", "three"
    if isinstance(value, Tensor):
        yield "a list", value.tolist()
        yield "an array", value.numpy()
        yield "a number", 3
        yield "no batch", value[0] if value.dim() else value[None]
        yield "a dimension more", value[None]
        yield "another width", torch.cat([value, value], -1) if value.dim() else value[None]
        yield "another length", torch.cat([value, value], -2) if value.dim() > 1 else value[None]
        yield "an empty batch", value[:0] if value.dim() else value
        if value.dim() > 1:
            yield "no rows", value[..., :0, :]
        yield "shapes alone", value.to("meta")
        if value.is_floating_point():
            yield "whole numbers", value.long()
            yield "another type", value.double()
        else:
            yield "real numbers", value.float()
            if value.dtype != torch.bool:
                yield "numbers beyond", value + 1000
                yield "a label to ignore", torch.full_like(value, -100)
    elif isinstance(value, bool) or callable(value):
        return
    elif isinstance(value, int | float):
        yield "a list", [value]
        yield "less than nothing", -3
        yield "zero", 0
        yield "a half", 2.5
        yield "no number", math.nan
        yield "a tensor", torch.ones(2)


def clear(error: Exception, names: Iterable[str]) -> bool:
    """A sentence that names an argument, or one of the library's own, with what to do."""
    text = str(error)
    named = any(re.search(rf"(?<![A-Za-z_]){re.escape(n)}(?![A-Za-z_])", text) for n in names)
    return isinstance(error, ValueError | TypeError) and (named or "; " in text)
