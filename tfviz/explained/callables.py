"""What a callable says, read as a formula: it is run once on symbols in the place of its indices
and of the whole numbers in its closure.

Nothing that was typed is parsed or executed here. The function itself runs, with other cells: a
number becomes a symbol, a tensor one that may be indexed, and functions in its closure or beside
it in its module are treated in the same way.

>>> def window(size):
...     return lambda b, h, q, k: (q >= k) & (q - k < size)
>>> read(window(4)).parameters
{'size': 4}
"""

from __future__ import annotations

import copy
import inspect
import itertools
import keyword
import math
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from tfviz.explained import words  # noqa: F401  # what a formula may call
from tfviz.formula import Formula, FormulaError

RESERVED = frozenset({"i", "j", "b", "h", "score", "length", "new", "var", "let", "const", "this"})
RESERVED |= {"function", "delete", "typeof", "void", "switch", "case", "default", "do", "catch"}
"""Names that a number of a closure may not have: those of the indices, and JavaScript's words."""

CONTAINERS = (list, tuple, dict, set, frozenset, np.ndarray)

KINDS = {2: ("i", "j"), 4: ("b", "h", "i", "j"), 5: ("score", "b", "h", "i", "j")}
"""What a callable of so many positional arguments is given."""


class _Brought(Formula):
    """A formula in whose function another one is called, which an error quotes."""

    def _place(self, error: Exception) -> str:
        quoted = copy.copy(self)
        quoted.function = inspect.unwrap(self.function)
        return Formula._place(quoted, error)


@dataclass
class Captured:
    """What a function takes from around it, by a name of its own."""

    numbers: dict[str, int | float] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    containers: dict[str, Any] = field(default_factory=dict)
    """Lists, dictionaries and arrays, which no position can look into."""

    def in_words(self) -> str:
        """What to give in the place of the containers: sentences, none if there are none."""
        return "".join(
            f"{name} is a {type(x).__name__}, and positions are tensors, which cannot look into "
            f"it; give a tensor, torch.tensor({_listed(name, x)}). "
            for name, x in self.containers.items()
        )

    def named(self, where: dict[str, Any], name: str, value: Any) -> str:
        """The name for this value: as it is written, with _2, _3, … if others have it."""
        wanted = name + "_" * (name in RESERVED or keyword.iskeyword(name))
        known = self.numbers | self.tensors
        fresh, n = wanted, 1
        while fresh in known and known[fresh] is not value and not _same(known[fresh], value):
            n += 1
            fresh = f"{wanted}_{n}"
        where[fresh] = value
        return fresh


def _listed(name: str, container: Any) -> str:
    if isinstance(container, Mapping):
        return f"[{name}[n] for n in range({len(container)})]"
    return name if isinstance(container, list | tuple | np.ndarray) else f"sorted({name})"


def _same(a: Any, b: Any) -> bool:
    numbers = not isinstance(a, Tensor) and not isinstance(b, Tensor)
    return numbers and type(a) is type(b) and bool(a == b)


def with_values(
    function: Any, captured: Captured, values: Mapping[str, Any], seen: dict[int, Any]
) -> Any:
    """The same function, with `values` in the place of the numbers and tensors around it. Notes in
    `captured` which there are."""

    def other(name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            return values.get(captured.named(captured.tensors, name, value), value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return values.get(captured.named(captured.numbers, name, value), value)
        if isinstance(value, tuple | list) and any(map(callable, value)):
            return type(value)(other(f"{name}_{n}", x) for n, x in enumerate(value))
        if isinstance(value, types.MethodType):
            inner = with_values(value.__func__, captured, values, seen)
            return types.MethodType(inner, other(name, value.__self__))
        if _is_ours(value):
            return with_values(value, captured, values, seen)
        if isinstance(value, CONTAINERS) and len(value):
            captured.containers[name] = value
        return like(value) if _holds_values(value) else value

    def like(thing: Any) -> Any:
        """The same object, with other numbers and tensors where this code asks for them."""
        copy = object.__new__(type(thing))
        copy.__dict__.update(thing.__dict__)
        for name in sorted({*asked} & thing.__dict__.keys()):
            if isinstance(thing.__dict__[name], int | float | Tensor):
                copy.__dict__[name] = other(name, thing.__dict__[name])
        return copy

    asked: list[str] = []

    if isinstance(function, partial):
        names = _positional(function.func)[: len(function.args)]
        if isinstance(function.func, types.FunctionType):
            asked += _globals_of(function.func.__code__)
        inner = with_values(function.func, captured, values, seen)
        args = [other(n, x) for n, x in zip(names, function.args, strict=False)]
        return partial(inner, *args, **{n: other(n, x) for n, x in function.keywords.items()})
    if not isinstance(function, types.FunctionType):
        return function
    if id(function) in seen:
        return seen[id(function)]
    code, around = function.__code__, dict(function.__globals__)
    asked += _globals_of(code)
    cells = tuple(types.CellType() for _ in code.co_freevars)
    copy = types.FunctionType(code, around, function.__name__, None, cells)
    seen[id(function)] = copy
    for name in sorted({*asked} & around.keys()):
        around[name] = other(name, around[name])
    for name, cell, new in zip(code.co_freevars, function.__closure__ or (), cells, strict=True):
        with suppress(ValueError):  # an empty cell: a name that is bound later
            new.cell_contents = other(name, cell.cell_contents)
    defaults = function.__defaults__ or ()
    last = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    copy.__defaults__ = tuple(other(n, x) for n, x in zip(last, defaults, strict=True))
    copy.__kwdefaults__ = {n: other(n, x) for n, x in (function.__kwdefaults__ or {}).items()}
    return copy


def _is_ours(value: Any) -> bool:
    """A plain function that is run again, and none of torch's own operations."""
    if isinstance(value, partial):
        return _is_ours(value.func)
    return isinstance(value, types.FunctionType) and not (value.__module__ or "").startswith(
        ("torch._", "torch.functional", "torch.nn.functional", "math", "builtins")
    )


def _holds_values(value: Any) -> bool:
    """An object with attributes, as a configuration or `self`; no class, module or tensor."""
    none = (type, types.ModuleType, types.FunctionType, types.MethodType, partial, Tensor)
    inside = type(value).__module__.split(".")[0] in ("torch", "builtins", "functools")
    return hasattr(value, "__dict__") and not isinstance(value, none) and not inside


def _globals_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals_of(inner)


def _positional(function: Any) -> list[str]:
    kinds = inspect.signature(function).parameters.values()
    kept = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in kinds if p.kind in kept and p.default is p.empty]


def roles(function: Callable[..., Any]) -> tuple[str, ...]:
    """Which indices a callable takes, by the number of its positional arguments without a default.

    Raises TypeError that says which kinds of callables can be explained.
    """
    name = name_of(function)
    try:
        names = _positional(function)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} has no signature ({error}); give a Python function") from None
    if len(names) not in KINDS:
        raise TypeError(
            f"{name} takes {len(names)} positional arguments ({', '.join(names) or 'none'}); give "
            "mask_mod(b, h, q, k), score_mod(score, b, h, q, k) or a formula of (i, j)"
        )
    return KINDS[len(names)]


def name_of(function: Any) -> str:
    """The name of a callable as an identifier."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    kept = "".join(c if c.isalnum() else "_" for c in str(name)).strip("_")
    return kept if kept and not kept[0].isdigit() and kept != "lambda" else "own"


class _Truths:
    """A recorded tensor of truth values: what is found in it is a condition, not a number."""

    def __init__(self, proxy: Any) -> None:
        self.proxy = proxy

    def __getitem__(self, at: Any) -> Any:
        return self.proxy[at] == 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.proxy, name)


@dataclass
class Read:
    """A callable as an expression of i, j, b, h, score and its numbers."""

    name: str
    roles: tuple[str, ...]
    expression: Any
    parameters: dict[str, int | float]
    fixed: dict[str, int | float]
    tensors: dict[str, Tensor]
    by_batch: dict[str, tuple[str, ...]]
    """Tensors that stand for a number of each batch entry or head, and the axes: ("b",), …"""

    def uses(self, name: str) -> bool:
        """Whether an index, or one of the tensors, has to do with the value."""
        return any(str(s) == name for s in self.expression.free_symbols)


def read(function: Callable[..., Any]) -> Read:
    """The callable as an expression. As many of its numbers as possible stay symbols; those that
    Python itself uses, in a range or a branch, stay numbers.

    Raises TypeError for what is no such callable, FormulaError that names the line and the
    operation that is no formula of the indices.
    """
    indices = roles(function)
    captured = Captured()
    with_values(plain(function), captured, {}, {})
    numbers = {n: v for n, v in captured.numbers.items() if math.isfinite(v)}
    free: list[str] = list(numbers)
    try:
        expression = _traced(function, indices, captured.tensors, free)
    except FormulaError:
        free, expression = [], _traced(function, indices, captured.tensors, [])
        for name in numbers:
            try:
                expression = _traced(function, indices, captured.tensors, [*free, name])
                free.append(name)
            except FormulaError:
                continue
    expression, by_batch = _numbers_by_batch(expression, captured.tensors)
    present = {str(s) for s in expression.free_symbols}
    return Read(
        name_of(function),
        indices,
        expression,
        {n: v for n, v in numbers.items() if n in free and n in present},
        {n: v for n, v in numbers.items() if n not in free},
        {n: x for n, x in captured.tensors.items() if n in present and n not in by_batch},
        by_batch,
    )


def plain(function: Any) -> Any:
    """A method, or an object that is called, as a function of the indices alone."""
    if _is_ours(function):
        return function
    own = type(function).__dict__.get("__call__")
    if isinstance(own, types.FunctionType):
        return partial(own, function)
    if isinstance(function, types.MethodType):
        return partial(function.__func__, function.__self__)
    return lambda *indices: function(*indices)


def _traced(
    function: Any, indices: tuple[str, ...], tensors: Mapping[str, Tensor], free: list[str]
) -> Any:
    captured = Captured()
    with_values(plain(function), captured, {}, {})
    others = [name for name in indices if name not in ("i", "j")]

    def of_indices(i: Any, j: Any, **named: Any) -> Any:
        truths = {n: _Truths(named[n]) for n, x in tensors.items() if x.dtype == torch.bool}
        values = {n: named[n] for n in (*free, *tensors)} | truths
        same = with_values(plain(function), Captured(), values, {})
        given = {"i": i, "j": j} | {n: named[n] for n in others}
        answer = same(*(given[name] for name in indices))
        if answer is None or isinstance(answer, str | tuple | list | dict):
            raise FormulaError(
                f"{name_of(function)} returns a {type(answer).__name__}; return "
                "truth values or numbers, such as q >= k"
            )
        return answer

    of_indices.__name__ = name_of(function)
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("i", "j")]
    parameters += [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in (*others, *free, *tensors)
    ]
    of_indices.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    if isinstance(inner, types.FunctionType):  # an error quotes its line
        of_indices.__wrapped__ = inner  # type: ignore[attr-defined]
    whole = frozenset(n for n in free if isinstance(captured.numbers[n], int))
    formula = _Brought(
        of_indices,
        lists={n: max(1, x.dim()) for n, x in tensors.items()},
        positive=frozenset(n for n in whole if captured.numbers[n] > 0),
        reals=frozenset(free) - whole | {"score"},
    )
    try:
        expression = formula.sympy
    except FormulaError:
        raise
    except ZeroDivisionError:
        raise FormulaError(f"{formula.name} divides by 0; {NONZERO}") from None
    except Exception as error:  # SymPy: a tensor with too few indices, a comparison of truths, …
        raise FormulaError(f"{formula.name} cannot be read as a formula: {error}") from error
    if expression.has(sp.zoo):
        raise FormulaError(f"{formula.name} divides by 0; {NONZERO}")
    return expression


NONZERO = "write a divisor that is not 0 at any position"


def _numbers_by_batch(expression: Any, tensors: Mapping[str, Tensor]) -> tuple[Any, dict[str, Any]]:
    """Where only the batch entry or the head looks into a tensor, it is a number by that name."""
    found: dict[str, tuple[str, ...]] = {}
    swap: dict[Any, Any] = {}
    uses: dict[str, list[Any]] = {}
    for use in expression.atoms(sp.Indexed):
        uses.setdefault(str(use.base.label), []).append(use)
    for name, all_uses in uses.items():
        axes = {tuple(str(k) for k in use.indices) for use in all_uses}
        only = len(axes) == 1 and {*next(iter(axes))} <= {"b", "h"}
        if name in tensors and only:
            whole = not tensors[name].is_floating_point()
            found[name] = next(iter(axes))
            number = sp.Symbol(name, integer=True) if whole else sp.Symbol(name, real=True)
            swap |= {use: number for use in all_uses}
    return expression.xreplace(swap), found


def by_pairs(function: Callable[..., Any], indices: tuple[str, ...], **given: int) -> Any:
    """f(i, j) → what the callable itself says, pair by pair as FlexAttention calls it: i and j are
    tensors that broadcast."""
    fixed = {n: torch.tensor(given.get(n, 0)) for n in indices if n not in ("i", "j")}
    if "score" in indices:
        fixed["score"] = torch.tensor(float(given.get("score", 0)))

    def of_pair(i: Tensor, j: Tensor) -> Tensor:
        pair = {**fixed, "i": i, "j": j}
        return torch.as_tensor(function(*(pair[name] for name in indices)))

    def of_pairs(i: Tensor, j: Tensor) -> Tensor:
        i, j = torch.broadcast_tensors(i, j)
        return torch.vmap(of_pair)(i.flatten(), j.flatten()).reshape(i.shape)

    return of_pairs


class _Watched(Tensor):
    """An index that notes whether anything is computed with it."""

    used: bool

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name not in MAKERS:
            for x in pytree.tree_leaves((args, kwargs)):
                if isinstance(x, cls):
                    x.used = True
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


MAKERS = frozenset(["new_ones", "new_zeros", "new_full", "new_tensor", "new_empty", "__get__"])
"""What asks a tensor for its kind alone, and not for its value."""


def uses(function: Callable[..., Any], indices: tuple[str, ...], axis: str, L: int) -> bool:
    """Whether a callable computes anything with its batch entry or head, at the first, middle or
    last positions."""
    some = sorted({0, L // 2, L - 1})
    for q, k in itertools.product(some, some):
        given = {"i": q, "j": k, "b": 0, "h": 0, "score": 0.0}
        index = torch.tensor(0).as_subclass(_Watched)
        index.used = False
        pair = {n: index if n == axis else torch.tensor(given[n]) for n in indices}
        with suppress(Exception):  # the call itself says what is wrong
            function(*(pair[n] for n in indices))
        if index.used:
            return True
    return False


def entries_of(function: Callable[..., Any], indices: tuple[str, ...], axis: str) -> int | None:
    """How many batch entries or heads a callable knows, by the first that it has none for; None if
    it knows `MANY` of them."""
    for n in range(1, MANY):
        try:
            function(*(torch.tensor(n if name == axis else 0) for name in indices))
        except (IndexError, KeyError):
            return n
        except Exception:
            return None
    return None


MANY = 1024
"""More heads and texts than anybody has."""
