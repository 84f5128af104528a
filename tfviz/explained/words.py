"""What a formula from outside may call, beyond what the library's own formulas do.

A mask of somebody else's compares truths, takes powers of two, or makes ones and zeros of another
tensor's kind. These words are added to `tfviz.formula.SYMBOLIC` when something is explained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
import torch

from tfviz.formula import SYMBOLIC

CONDITIONS = (
    sp.logic.boolalg.BooleanFunction,
    sp.logic.boolalg.BooleanAtom,
    sp.core.relational.Relational,
)
"""The kinds of expressions that hold or do not hold."""


def _alike(a: Any, b: Any) -> Any:
    """Whether two conditions hold or fail together."""
    return sp.Or(sp.And(a, b), sp.And(sp.Not(a), sp.Not(b)))


def _equal(a: Any, b: Any) -> Any:
    return _alike(a, b) if isinstance(a, CONDITIONS) and isinstance(b, CONDITIONS) else sp.Eq(a, b)


def _constant(value: int, *, dtype: Any = None, **more: Any) -> Any:
    return sp.true if dtype == torch.bool and value else sp.false if dtype == torch.bool else value


WORDS: dict[str, Callable[..., Any]] = {
    "getattr": lambda x, name: None if name in ("device", "dtype") else getattr(x, name),
    "eq": _equal,
    "ne": lambda a, b: sp.Not(_equal(a, b)),
    **dict.fromkeys(("xor", "logical_xor"), lambda a, b: sp.Not(_alike(a, b))),
    "bool": lambda x: x if isinstance(x, CONDITIONS) else sp.Ne(x, 0),
    "exp2": lambda x: 2**x,
    "square": lambda x: x**2,
    "clamp_min": sp.Max,
    "new_ones": lambda x, *shape, **kind: _constant(1, **kind),
    "new_zeros": lambda x, *shape, **kind: _constant(0, **kind),
    **dict.fromkeys(("to", "long", "int", "float"), lambda x, *kind, **more: x),
}
"""By name, as in `SYMBOLIC`."""

SYMBOLIC.update(WORDS)
