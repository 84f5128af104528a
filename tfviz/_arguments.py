"""Checks of arguments: every message names the argument, its value and the remedy."""

from __future__ import annotations

import difflib
import inspect
import linecache
import math
import numbers
import operator
import os
import types
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch
from jaxtyping import jaxtyped
from torch import Tensor

HERE, TORCH = (os.path.dirname(str(file)) + os.sep for file in (__file__, torch.__file__))


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


def tokens(name: str, value: Tensor, vocab: int, of: str = "vocab") -> Tensor:
    """`value` if it holds numbers of tokens, 0 to vocab − 1. Raises ValueError for others, and
    looks at them only where it can: not on the meta device, nor while torch compiles."""
    value = value.long() if value.dtype == torch.int16 else value  # which torch looks nothing up by
    if torch.compiler.is_compiling() or value.is_meta or not value.numel():
        return value
    least, most = (int(x) for x in value.aminmax())
    if least < 0 or most >= vocab:
        wrong = least if least < 0 else most
        remedy = f"a larger {of} has more"
        if wrong == -100:
            remedy = "-100 marks labels that a loss ignores, and no token is read so"
        raise ValueError(
            f"{name} holds {wrong}, and {of} = {vocab}: give numbers from 0 to {vocab - 1}; "
            f"{remedy}"
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


# --- errors from within, told by the argument that is to blame ------------------------------------


F = typing.TypeVar("F", bound=Callable[..., Any])


def named(function: F) -> F:
    """Decorator: where torch or Python stop on an argument, the error says which one and why.

    Looks at nothing before something has gone wrong. Then it tells the first argument that is not
    what its annotation says, with its value or shape; if all are, the values or shapes of all.
    Errors that a room raises itself, and those of functions that were given, stay as they are.

    Raises TypeError for an argument of another kind, ValueError for everything else.
    """

    @wraps(function)
    def call(*given: Any, **more: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*given, **more)
        try:
            return function(*given, **more)
        except _FROM_WITHIN as error:
            within = getattr(error, "within", None)  # what a room below has told in its own names
            told = _told(function, given, more, error) if within or _is_raw(error) else None
            if told is None:
                raise
            told.within = True  # type: ignore[attr-defined]
            raise told from error

    return typing.cast(F, call)


def spelled_out(options: Any, *makers: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator of a function that ends with `**options: Unpack[…]`: its signature names each of
    these, with the default that it has in the first of the makers that it reaches.

    Raises TypeError for an option that there is not, and names the nearest one.
    """
    signatures = [inspect.signature(make).parameters for make in makers]

    def decorated(function: F) -> F:
        *own, _ = inspect.signature(function).parameters.values()
        named = [x.name for x in own]
        spelled = [
            next(s[name] for s in signatures if name in s).replace(
                kind=inspect.Parameter.KEYWORD_ONLY
            )
            for name in typing.get_type_hints(options)
            if name not in named
        ]
        known = [x.name for x in (*own, *spelled) if x.name != "self"]

        @wraps(function)
        def call(*given: Any, **more: Any) -> Any:
            for name in more:
                if name not in known:
                    near = difflib.get_close_matches(name, known, 1, 0.5) or [", ".join(known)]
                    raise TypeError(f"there is no option {name}; did you mean {near[0]}?")
            return function(*given, **more)

        call.__signature__ = inspect.Signature([*own, *spelled])  # type: ignore[attr-defined]
        return typing.cast(F, call)

    return decorated


_FROM_WITHIN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


def _is_raw(error: Exception) -> bool:
    """Whether it was raised by torch or Python on a line of the library that raises nothing."""
    if isinstance(error, torch.OutOfMemoryError | RecursionError):
        return False
    trace, last = error.__traceback__, None
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(TORCH):
            last = trace
        trace = trace.tb_next
    if last is None or not last.tb_frame.f_code.co_filename.startswith(HERE):
        return False
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno)
    return not line.lstrip().startswith("raise")


def _told(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    more: Mapping[str, Any],
    error: Exception,
) -> Exception | None:
    """A better error, None if there is none."""
    try:
        bound = inspect.signature(function).bind(*given, **more).arguments
    except TypeError:
        return None  # Python has said which argument is missing
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    values = {n: x for n, x in bound.items() if n != "self"}
    with jaxtyped("context"):  # a size that two shapes name is one size
        for name, value in values.items():
            wrong = _misfit(name, value, hints.get(name, Any))
            if wrong is not None:
                return _beside(wrong, name, values)
    meta = [n for n, x in values.items() if isinstance(x, Tensor) and x.is_meta]
    if meta and not hasattr(error, "within"):
        return ValueError(
            f"{', '.join(meta)}: on the meta device, which holds shapes and no numbers, and "
            f"{function.__qualname__} needs numbers; give tensors on a CPU"
        )
    if not values or hasattr(error, "within"):
        return None
    if "unexpected keyword argument" in str(error):  # Python has said which
        return None
    told = ", ".join(f"{name} {_in_words(x)}" for name, x in values.items())
    why = str(error).partition("\n")[0] or type(error).__name__
    return ValueError(f"{function.__qualname__} cannot answer to {told}; look at these: {why}")


def _beside(wrong: Exception, name: str, values: Mapping[str, Any]) -> Exception:
    """With the shapes of the tensors before, if a shape does not fit to those."""
    before = [n for n, x in values.items() if isinstance(x, Tensor)]
    before = before[: before.index(name)] if name in before else []
    if isinstance(wrong, TypeError) or not before:
        return wrong
    shapes = ", ".join(f"{n} {_in_words(values[n])}" for n in before)
    return ValueError(f"{wrong}, with the same sizes as {shapes}")


def _misfit(name: str, value: Any, hint: Any) -> Exception | None:
    """What is wrong with a value by its annotation, None if nothing is known to be."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        found = [_misfit(name, value, one) for one in typing.get_args(hint)]
        return None if None in found else found[0]
    if hasattr(hint, "dim_str"):
        return _no_such_tensor(name, value, hint)
    kinds = {int: ((int,), "a whole number"), float: ((float, int), "a number")}
    if hint in kinds:
        kind, remedy = kinds[hint]
        fits = isinstance(value, kind) and not isinstance(value, bool)
    else:
        kind = typing.get_origin(hint) or hint
        remedy = f"a {getattr(kind, '__name__', kind)}"
        remedy = "something that can be called" if kind is Callable else remedy
        if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
            return None
        fits = isinstance(value, kind)
    return None if fits else TypeError(f"{name} {_in_words(value)}; give {remedy}")


def _no_such_tensor(name: str, value: Any, hint: Any) -> Exception | None:
    shape = f"({', '.join(hint.dim_str.split())})"
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        return TypeError(f"{name} is a {kind}; give a tensor of shape {shape}: torch.as_tensor")
    dtype = str(value.dtype).removeprefix("torch.")
    if hint.dtypes and dtype not in {str(x) for x in hint.dtypes}:
        real = any("float" in str(x) for x in hint.dtypes)
        remedy = f"real numbers, {name}.float()" if real else f"whole numbers, {name}.long()"
        remedy = f"Booleans, {name} != 0" if "bool" in hint.dtypes else remedy
        return TypeError(f"{name} has dtype {value.dtype}; give {remedy}")
    try:
        fits = isinstance(value, hint)
    except Exception:  # the shape is said by sizes that are not known yet
        return None
    if fits:
        return None
    few = "..." not in shape and "*" not in shape and value.dim() + 1 == len(hint.dim_str.split())
    one = f", {name}[None] for one" if few else ""
    return ValueError(f"{name} has shape {tuple(value.shape)}; give {shape}{one}")


def _in_words(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"of shape {tuple(value.shape)}"
    if value is None or isinstance(value, numbers.Number | str):
        return f"= {value!r}"
    if isinstance(value, type):
        return f"is the class {value.__name__}"
    return f"is a {type(value).__name__}"
