"""An expression of SymPy as a function: evaluated by Python's operators, so that it takes whatever
has them (whole numbers, tensors, the intervals of sub-quadratic attention, recording proxies).

>>> i, size = sp.symbols("i size", integer=True)
>>> value(sp.floor(i / size) + 1, {"i": torch.tensor([5, 6]), "size": 3})
tensor([2, 3])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import sympy as sp
import torch
from torch import Tensor, fx

from tfviz.formula import FormulaError


def value(tree: Any, values: Mapping[str, Any]) -> Any:
    """The expression with `values` for its symbols. Raises FormulaError for what it cannot hold."""
    if isinstance(tree, sp.Symbol):
        return values[tree.name]
    if tree.is_Integer:
        return int(tree)
    if tree.is_number:
        return float(tree)
    if tree in (sp.true, sp.false):
        always = (values["i"] >= 0) & (values["j"] >= 0)
        return always if tree is sp.true else ~always
    if isinstance(tree, sp.floor):
        over, under = (value(part, values) for part in sp.together(tree.args[0]).as_numer_denom())
        return over // under
    if isinstance(tree, sp.Indexed):
        return values[str(tree.base.label)][tuple(value(k, values) for k in tree.indices)]
    if isinstance(tree, sp.Piecewise):
        *cases, (otherwise, _) = tree.args
        result = value(otherwise, values)
        for one, condition in reversed(cases):
            result = torch.where(value(condition, values), value(one, values), result)
        return result
    if isinstance(tree, sp.Pow):
        base, power = (value(part, values) for part in tree.args)
        return 1 / base if tree.exp == -1 else base**power
    if isinstance(tree, sp.Add):
        return _sum(tree, values)
    for kind, join in JOINED.items():
        if isinstance(tree, kind):
            parts = tree.args if kind is sp.Mod else sorted(tree.args, key=sp.default_sort_key)
            return reduce(join, (value(part, values) for part in parts))
    for kind, one in ONE.items():
        if isinstance(tree, kind):
            return one(value(tree.args[0], values))
    if isinstance(tree, sp.core.relational.Relational):
        return COMPARED[tree.rel_op](*(value(side, values) for side in tree.args))
    raise FormulaError(f"{tree} has no value: {type(tree).__name__} is not known here")


def _sum(tree: Any, values: Mapping[str, Any]) -> Any:
    """Positions before numbers, and a difference as one: i - j, not i + (-1) j."""

    def last(part: Any) -> Any:
        free = {symbol.name for symbol in part.free_symbols}
        return not free & {"i", "j"}, part.could_extract_minus_sign(), sp.default_sort_key(part)

    first, *others = sorted(tree.args, key=last)
    total = value(first, values)
    for part in others:
        if part.could_extract_minus_sign():
            total = total - value(-part, values)
        else:
            total = total + value(part, values)
    return total


def _product(a: Any, b: Any) -> Any:
    return -b if isinstance(a, int) and a == -1 else a * b


def _either(name: str, plain: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def chosen(a: Any, b: Any) -> Any:
        if isinstance(a, fx.Proxy) or isinstance(b, fx.Proxy):
            for one, number in ((a, b), (b, a)):  # torch.minimum takes no plain number
                if isinstance(number, int | float):
                    low, high = (None, number) if name == "minimum" else (number, None)
                    return torch.clamp(one, min=low, max=high)
            return getattr(torch, name)(a, b)
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            device = a.device if isinstance(a, Tensor) else b.device
            pair = (torch.as_tensor(x, device=device) for x in (a, b))
            return getattr(torch, name)(*pair)
        if isinstance(a, int | float) and isinstance(b, int | float):
            return plain(a, b)
        raise TypeError(f"{name} of {type(a).__name__} and {type(b).__name__}")

    return chosen


def _function(name: str) -> Callable[[Any], Any]:
    def applied(x: Any) -> Any:
        return getattr(torch, name)(x if isinstance(x, Tensor | fx.Proxy) else torch.as_tensor(x))

    return applied


JOINED: dict[Any, Callable[[Any, Any], Any]] = {
    sp.Mul: _product,
    sp.Mod: operator.mod,
    sp.And: operator.and_,
    sp.Or: operator.or_,
    sp.Xor: operator.xor,
    sp.Max: _either("maximum", max),
    sp.Min: _either("minimum", min),
}
ONE: dict[Any, Callable[[Any], Any]] = {
    sp.Not: operator.invert,
    sp.Abs: abs,
    **{getattr(sp, name): _function(name) for name in ("exp", "log", "sin", "cos", "tanh")},
}
COMPARED = {
    **{"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt},
    **{"==": operator.eq, "!=": operator.ne},
}
