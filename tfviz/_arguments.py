"""Checks of arguments: every message names the argument, its value and the remedy."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any


def integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """`value` as an int within [low, high]; ValueError that names the range otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ValueError(f"{name} = {value!r} is not a whole number; {_range(name, low, high)}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"{name} = {number} is out of range; {_range(name, low, high)}")
    return number


def real(name: str, value: Any, low: float | None = None, high: float | None = None) -> float:
    """`value` as a finite float within [low, high]; ValueError that names the range otherwise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} = {value!r} is not a number; {_range(name, low, high)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} = {number} is not finite; {_range(name, low, high)}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"{name} = {number} is out of range; {_range(name, low, high)}")
    return number


def _range(name: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"give {name} a number"
    if high is None:
        return f"choose {name} >= {low}"
    return f"choose {'' if low is None else f'{low} <= '}{name} <= {high}"
