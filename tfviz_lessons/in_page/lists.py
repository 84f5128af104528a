"""The part of torch that `tfviz.checks` needs for an answer made of Python's numbers and lists.

In the page there is no torch. The checks run there as they are, with this module in its place:
numbers and nested lists with a shape. Learners never meet it: `judge` hides it again. A test
compares what the checks say with it to what they say with torch.
"""

from __future__ import annotations

import builtins
import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

bool = builtins.bool  # also the name of a type of tensors: torch.bool
_INT, _FLOAT, _DOUBLE = "int64", "float32", "float64"
_LARGEST = 2**63


class Tensor:
    """Numbers of one type with a shape, row by row."""

    def __init__(self, values: list[Any], shape: tuple[int, ...], dtype: Any) -> None:
        self.values, self.shape, self.dtype = values, shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tensor:  # torch calls it so
        return self.transpose(-1, -2)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[n] for n in range(len(self)))

    def __getitem__(self, at: Any) -> Tensor:
        if isinstance(at, slice):
            return _stacked([self[n] for n in range(*at.indices(len(self)))], self)
        places = at if isinstance(at, tuple) else (at,)
        values, shape = self.values, self.shape
        for place in places:
            size = math.prod(shape[1:])
            start = range(shape[0])[place] * size
            values, shape = values[start : start + size], shape[1:]
        return Tensor(values, shape, self.dtype)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._with(other, lambda x, y: x == y)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._with(other, lambda x, y: x != y)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Tensor) -> Tensor:
        return self._with(other, lambda x, y: x and y)

    def __or__(self, other: Tensor) -> Tensor:
        return self._with(other, lambda x, y: x or y)

    def __invert__(self) -> Tensor:
        return Tensor([not x for x in self.values], self.shape, bool)

    def _with(self, other: Any, call: Callable[[Any, Any], Any]) -> Tensor:
        values = other.values if isinstance(other, Tensor) else itertools.repeat(other)
        return Tensor([call(x, y) for x, y in zip(self.values, values)], self.shape, bool)  # noqa: B905

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> builtins.bool:
        return builtins.bool(self.item())

    def item(self) -> Any:
        (value,) = self.values
        return value

    def tolist(self) -> Any:
        return [row.tolist() for row in self] if self.ndim else self.item()

    def numel(self) -> int:
        return len(self.values)

    def any(self) -> builtins.bool:
        return builtins.any(self.values)

    def all(self) -> builtins.bool:
        return builtins.all(self.values)

    def sum(self) -> Any:
        return builtins.sum(self.values)

    def isnan(self) -> Tensor:
        return Tensor([x != x for x in self.values], self.shape, bool)

    def nonzero(self) -> list[tuple[int, ...]]:
        places = itertools.product(*map(range, self.shape))
        return [place for place, x in zip(places, self.values, strict=True) if x]

    def transpose(self, one: int, other: int) -> Tensor:
        if {one, other} != {-1, -2} or self.ndim < 2:
            raise ValueError(f"transpose({one}, {other}): only the last two axes of at least two")
        *before, rows, columns = self.shape
        size, values = rows * columns, []
        for start in range(0, len(self.values), size or 1):
            for column in range(columns):
                values += self.values[start + column : start + size : columns]
        return Tensor(values, (*before, columns, rows), self.dtype)

    def detach(self) -> Tensor:
        return self

    def double(self) -> Tensor:
        return Tensor([float(x) for x in self.values], self.shape, _DOUBLE)

    def bool(self) -> Tensor:
        return Tensor([builtins.bool(x) for x in self.values], self.shape, bool)


def as_tensor(value: Any) -> Tensor:
    """Numbers, or lists of them, all of one length; raises as torch does for anything else."""
    values: list[Any] = []
    shape = _shape(value, values)
    kinds = set(map(type, values))
    if float in kinds or not values:
        return Tensor([_rounded(x) for x in values], shape, _FLOAT)
    if int not in kinds:
        return Tensor(values, shape, bool)
    if any(not -_LARGEST <= x < _LARGEST for x in values):
        raise RuntimeError("Overflow when unpacking long")
    return Tensor([int(x) for x in values], shape, _INT)


def _shape(value: Any, values: list[Any]) -> tuple[int, ...]:
    """The shape of nested lists; puts their numbers into `values`."""
    if isinstance(value, builtins.bool | int | float):
        values.append(value)
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(f"invalid data type {type(value).__name__!r}")
    inner = [_shape(row, values) for row in value]
    if any(shape != inner[0] for shape in inner):
        raise ValueError("expected sequences of one length")
    return (len(inner), *(inner[0] if inner else ()))


def _rounded(x: float) -> float:
    """In 32 bits, as torch keeps it."""
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def _stacked(parts: list[Tensor], like: Tensor) -> Tensor:
    values = [x for part in parts for x in part.values]
    return Tensor(values, (len(parts), *like.shape[1:]), like.dtype)


def isclose(
    mine: Tensor, target: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    def near(x: float, y: float) -> builtins.bool:
        if x != x or y != y:
            return equal_nan and x != x and y != y
        return x == y or (math.isfinite(y) and abs(x - y) <= atol + rtol * abs(y))

    return mine._with(target, near)


def allclose(mine: Tensor, target: Tensor) -> builtins.bool:
    return isclose(mine, target).all()


def equal(mine: Tensor, target: Tensor) -> builtins.bool:
    return mine.shape == target.shape and mine.values == target.values
