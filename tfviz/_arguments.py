"""Checks of arguments: every message names the argument, its value and the remedy."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import torch
from torch import Tensor


def integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """`value` as an int. Raises ValueError unless it is one within [low, high]."""
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
    """`value` as a float. Raises ValueError unless it is finite and within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} = {value!r} is not a number; {_range(name, low, high)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} = {number} is not finite; {_range(name, low, high)}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"{name} = {number} is out of range; {_range(name, low, high)}")
    return number


def indices(name: str, value: Tensor, dim: int | None = None) -> Tensor:
    """`value` if it holds whole numbers, and has `dim` dimensions if that is given.

    Raises TypeError for Booleans and bytes, which torch would take for a mask, and for what is no
    tensor of numbers. Raises ValueError for other dimensions.
    """
    if not isinstance(value, Tensor) or value.dtype not in (torch.int64, torch.int32, torch.int16):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} is {kind}; give whole numbers, {name}.long()")
    if dim is not None and value.dim() != dim:
        raise ValueError(
            f"{name} has shape {tuple(value.shape)}; give {dim} dimensions, e.g. "
            + (f"{name}[None] for one row" if value.dim() < dim else f"{name}[0], one row of it")
        )
    return value


def numbers_of(name: str, value: Tensor, n: int) -> Tensor:
    """`value` as int64, if it holds whole numbers from 0 to n − 1. Raises TypeError for what are no
    whole numbers, and ValueError beyond."""
    found = indices(name, value).long()
    low, high = (int(found.min()), int(found.max())) if found.numel() else (0, 0)
    if low < 0 or high >= n:
        raise ValueError(
            f"{name} holds numbers from {low} to {high}; choose 0 <= {name} <= {n - 1}"
        )
    return found


def tensor(name: str, value: Any, shape: str) -> Tensor:
    """`value` if it is a tensor of real numbers, `shape` says of which sizes. Raises TypeError for
    everything else: an array, a text, a number, whole numbers."""
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"{name} is a {kind}; give a tensor of shape {shape}: torch.as_tensor")
    if not value.is_floating_point():
        raise TypeError(f"{name} has dtype {value.dtype}; give real numbers, e.g. {name}.float()")
    return value


def only_zeros_and_ones(x: Tensor) -> bool:
    """Whether numbers look like truth values: 0 and 1, both of them, and no other."""
    if x.is_meta or x.dtype == torch.bool:
        return False
    zeros, ones = x == 0, x == 1
    return bool((zeros | ones).all()) and bool(zeros.any()) and bool(ones.any())


def finite(name: str, value: Tensor) -> Tensor:
    """`value` if it holds neither NaN nor infinity. Raises ValueError otherwise; on the meta device
    there is nothing to look at."""
    # one pass without a temporary; the slower look only if the sum overflowed or is not finite
    if value.is_meta or torch.isfinite(value.detach().sum()) or torch.isfinite(value).all():
        return value
    raise ValueError(f"{name} holds NaN or infinity; look where it was computed")


def like(name: str, value: Any, Q: Tensor, shape: str) -> Tensor:
    """`value` if it is a tensor of finite numbers of the type of the queries; `shape` says of which
    sizes. Raises TypeError or ValueError otherwise."""
    if tensor(name, value, shape).dtype != Q.dtype:
        raise TypeError(f"{name} has dtype {value.dtype}, Q {Q.dtype}; give {name}.to(Q.dtype)")
    return finite(name, value)


def _range(name: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"give {name} a number"
    if high is None:
        return f"choose {name} >= {low}"
    return f"choose {'' if low is None else f'{low} <= '}{name} <= {high}"
