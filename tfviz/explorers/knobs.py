"""Knobs: the parameters of an explorer, each declared once.

    class SinusoidalClocks(Explorer):
        place = knob(5, low=0, high=63, label="place", letter="i")
        base = knob(10_000.0, of=BASES, label="base of the speeds")
        names = given(t.List(t.Unicode()))

From a declaration come the synced trait, its check with a clear error, the argument of the
constructor, the part of the repr, and in the page the slider or menu, its keys, what "reset" and
"copy link" carry, the check of a link, and "copy Python".

A knob that stands for a parameter of a pattern takes its domain from there, and an end may be
another knob, declared above it, or so much more or less than that:

    stride = knob(P.strided.domains["stride"], high=64, label="stride", letter="s")
    N = knob(6, low=1, high=24, label="layers", letter="N")
    layer = knob(3, low=1, high=N, label="look at layer", letter="n")
    query = knob(0, low=0, high=length - 1, label="query", letter="i")

Where N becomes smaller than `layer`, `layer` goes with it, in Python and in the page.

What is assigned later is checked as in the constructor, together with all other values. If it does
not fit, `RefusedError` is raised and nothing has changed. Lists and dicts are held as they were
given; another one is assigned to change them.

>>> from tfviz.explorers import SinusoidalClocks
>>> SinusoidalClocks(d=8)
SinusoidalClocks(place=5, step=3, d=8, base=10000.0)
>>> SinusoidalClocks(place=64)
Traceback (most recent call last):
ValueError: place = 64 is out of range; choose 0 <= place <= 63
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import traitlets as t
from torch import Tensor

from tfviz import _arguments
from tfviz._labels import legal
from tfviz.patterns import Domain

Bound: TypeAlias = "float | Callable[[Any], float] | Knob | None"
"""A number, another knob, or what an explorer's other values make of it, such as
`lambda e: len(e.words) - 1`; the module says the last in its `ends`."""


class RefusedError(t.TraitError, ValueError):  # type: ignore[misc, unused-ignore]
    """A value that an explorer does not take; it keeps the one that it had."""


def _fixed(*_: Any, **__: Any) -> Any:
    raise TypeError(
        "what an explorer holds is not changed in place: the picture would not follow. Assign "
        "another list or dict: explorer.name = …"
    )


class FixedList(list[Any]):
    """A list that only a new one can replace."""

    append = extend = insert = remove = pop = clear = sort = reverse = _fixed
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _fixed

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class FixedDict(dict[Any, Any]):
    """A dict that only a new one can replace."""

    update = pop = popitem = clear = setdefault = _fixed
    __setitem__ = __delitem__ = __ior__ = _fixed

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def held(name: str, value: Any) -> Any:
    """A value as an explorer holds it: lists and dicts as copies that stay as they are.

    Raises RefusedError for what cannot travel to the page: NaN, infinity, half a character.
    """
    if isinstance(value, Mapping):
        for key in value:
            held(name, key)
        return FixedDict((key, held(name, x)) for key, x in value.items())
    if isinstance(value, list | tuple):
        return FixedList(held(name, x) for x in value)
    if isinstance(value, float) and not math.isfinite(value):
        raise RefusedError(f"{name} holds {value}; give finite numbers")
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise RefusedError(f"{name} holds {legal(value)!r}, half a character; give whole ones")
    return value


def numbers_of(value: Any) -> Any:
    """Tensors and arrays, also in a list, as lists and numbers."""
    if isinstance(value, list | tuple):
        return [numbers_of(x) for x in value]
    return value.tolist() if isinstance(value, Tensor | np.ndarray | np.generic) else value


def plain(value: Any) -> Any:
    """What is held as lists and dicts that are somebody's own."""
    if isinstance(value, Mapping):
        return {key: plain(x) for key, x in value.items()}
    return [plain(x) for x in value] if isinstance(value, list | tuple) else value


def guarded(trait: t.TraitType) -> Any:
    """The trait; what is assigned to it later is checked as in the constructor, or refused."""
    kind = type(trait)

    def checked(check: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        def checks(obj: Any, value: Any) -> Any:
            try:
                return check(trait, obj, value)
            except (ValueError, TypeError, OverflowError) as error:
                begun = getattr(obj, "_begun", False)
                if begun and not isinstance(error, t.TraitError):
                    raise RefusedError(str(error)) from None
                if isinstance(error, RefusedError) and not begun:  # as the constructor says it
                    raise ValueError(str(error)) from None
                raise

        return checks

    def validate(_: Any, obj: Any, value: Any) -> Any:
        value = numbers_of(value) if isinstance(trait, t.List) else value
        if isinstance(trait, t.List) and not isinstance(value, list | tuple):
            raise RefusedError(
                f"{trait.name} = {value!r:.80} is a {type(value).__name__}; give a list"
            )
        return held(str(trait.name), kind.validate(trait, obj, value))

    def assign(obj: Any, value: Any) -> None:
        if isinstance(trait, t.List) and isinstance(value, str):
            trait.validate(obj, value)  # else traitlets makes a list of it
        if not getattr(obj, "_begun", False) or obj._cross_validation_lock:
            return kind.set(trait, obj, value)
        with obj.hold_trait_notifications():
            kind.set(trait, obj, value)

    trait.validate = checked(validate)
    trait._cross_validate = checked(kind._cross_validate)
    trait.set = assign
    return trait


@dataclass(frozen=True)
class End:
    """An end that moves: the value of another knob, and `plus`."""

    knob: Knob
    plus: float = 0

    def __call__(self, explorer: Any) -> float:
        return float(getattr(explorer, str(self.knob.name))) + self.plus

    def described(self) -> dict[str, Any]:
        return {"knob": self.knob.name, "plus": self.plus}


class Knob(t.TraitType):  # type: ignore[misc, unused-ignore]
    """A parameter that the reader moves; classes write `knob(…)`.

    Args:
        default: its first value; True or False make a checkbox, a word a choice, a number a slider.
            The `Domain` of a family's parameter gives its first value, its least, and its letter
            where that is no TeX command; each may be said otherwise.
        first: the first value, where it is not that of the domain.
        of: the values it may take, or value -> how a menu writes it. With `between`, numbers
            between the first and the last (or `low` and `high`) too: the slider stops at the
            listed ones only.
        low, high, step: the ends of a slider without a list, and how far apart its values are. An
            end may be another knob (see the module).
        label, letter: how the page names it.

    Raises TypeError for a domain of lists, and for one without `high`: a family has no greatest
    value, a slider must end.
    """

    def __init__(
        self,
        default: Any,
        *,
        first: Any = None,
        of: Sequence[Any] | Mapping[Any, str] | Callable[[Any], Sequence[Any]] | None = None,
        between: bool = False,
        low: Bound = None,
        high: Bound = None,
        step: float | None = None,
        label: str = "",
        letter: str = "",
    ) -> None:
        if isinstance(default, Domain):
            domain = default
            if domain.is_list:
                raise TypeError("a knob is one number, and this parameter is a list; use own(…)")
            if high is None:
                raise TypeError("high is missing: a parameter of a family has no greatest value")
            low = domain.low if low is None else low
            letter = letter or ("" if "\\" in domain.letter else domain.letter)
            default = domain.default
        elif first is not None:
            raise TypeError("first stands beside the domain of a family; else it is the default")
        default = default if first is None else first
        super().__init__(default)
        guarded(self).tag(sync=True, role="knob")
        self.of, self.between = of, between
        self.low, self.high = (End(x) if isinstance(x, Knob) else x for x in (low, high))
        self.words = {"label": label, "letter": letter} | ({} if step is None else {"step": step})
        self.kind = type(default)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name  # traitlets would do it later, after the docstring is written

    def __add__(self, more: float) -> End:
        return End(self, more)

    def __sub__(self, less: float) -> End:
        return End(self, -less)

    @property
    def hangs_on(self) -> set[str]:
        """The names of the knobs that its ends are made of."""
        return {str(x.knob.name) for x in (self.low, self.high) if isinstance(x, End)}

    def ends(self, explorer: Any) -> tuple[float | None, float | None]:
        """Its least and greatest value now, as far as it has them."""
        low, high = (
            bound(explorer) if callable(bound) else bound for bound in (self.low, self.high)
        )
        if self.kind is int:  # an end from another knob comes as a float
            low, high = (None if x is None else int(x) for x in (low, high))
        return low, high

    def kept(self, explorer: Any) -> Any:
        """Its value, moved to the end where a knob that it hangs on has left it outside."""
        value = getattr(explorer, str(self.name))
        low, high = self.ends(explorer)
        if high is not None and value > high:
            value = high
        return low if low is not None and value < low else value

    def choices(self, explorer: Any) -> list[Any] | None:
        """The values of the list, as far as there is one."""
        return (
            None if self.of is None else list(self.of(explorer) if callable(self.of) else self.of)
        )

    def validate(self, obj: Any, value: Any) -> Any:
        """The value. Raises ValueError that names the knob, the value and what it may be."""
        name, listed = str(self.name), self.choices(obj)
        if self.kind is bool:
            if value is not True and value is not False:
                raise ValueError(f"{name} = {value!r}; choose True or False")
            return value
        low, high = self.ends(obj)
        if listed is not None and self.between:
            low, high = listed[0] if low is None else low, listed[-1] if high is None else high
        elif listed is not None:
            single = isinstance(value, str | int | float | np.number)
            if isinstance(value, bool | np.bool_) or not single or value not in listed:
                known = ", ".join(map(str, listed))
                raise ValueError(f"{name} = {value!r:.80}; choose one of {known}")
            return self.kind(value)
        if self.kind is int:
            return _arguments.integer(name, value, low, high)  # type: ignore[arg-type]
        if self.kind is float:
            return _arguments.real(name, value, low, high)
        if not isinstance(value, self.kind):
            raise ValueError(f"{name} = {value!r:.80} is no {self.kind.__name__}")
        return value

    def values(self, explorer: Any) -> list[Any]:
        """Every value that its control in the page can take."""
        listed = self.choices(explorer)
        if self.kind is bool:
            return [False, True]
        if listed is not None:
            return listed
        low, high = (float(end or 0) for end in self.ends(explorer))
        step = float(self.words.get("step", 1 if self.kind is int else 0.1))
        return [self.kind(round(low + k * step, 9)) for k in range(round((high - low) / step) + 1)]

    def described(self) -> dict[str, Any]:
        """What the page needs to know of it; what depends on other values the page finds itself."""
        fixed = {"low": self.low, "high": self.high}
        about: dict[str, Any] = {
            n: x for n, x in fixed.items() if x is not None and not callable(x)
        }
        about |= {n: x.described() for n, x in fixed.items() if isinstance(x, End)}
        if self.of is not None and not callable(self.of):
            about["of"] = list(self.of)
            if isinstance(self.of, Mapping):
                about["texts"] = list(self.of.values())
        kinds = {bool: "switch", int: "whole", float: "number", str: "word"}
        return {"kind": kinds.get(self.kind, "own"), "between": self.between, **about, **self.words}

    def docstring_line(self, name: str) -> str:
        """A line for a docstring: its name, and the values that it may take."""
        words = f"{self.words['label']} {self.words['letter']}".replace("$", "").strip()
        low, high = self.low, self.high
        if self.of is not None and not callable(self.of):
            values = list(self.of)
            low, high = (values[0] if low is None else low), (values[-1] if high is None else high)
            if not self.between:
                return f"{name}    {words}: {', '.join(map(repr, values))}"
        ends = [_written(low), _written(high)]
        return f"{name}    {words}" + (f": {' to '.join(ends)}" if all(ends) else "")


def _written(end: Any) -> str:
    """An end as a docstring writes it: 24, or N − 1; "" for what only a state tells."""
    if isinstance(end, End):
        plus = f" {'+' if end.plus > 0 else '−'} {abs(end.plus):g}" if end.plus else ""
        return f"{end.knob.name}{plus}"
    return f"{end:g}" if isinstance(end, int | float) else ""


knob: Callable[..., Any] = Knob  # in a class it declares a trait, and reads as its value


def own(trait: t.TraitType, *, optional: bool = False) -> Any:
    """A parameter that the reader moves by a control of the explorer's own: a list, a point."""
    return guarded(trait).tag(sync=True, role="own", optional=optional)


def given(trait: t.TraitType, *, optional: bool = False, argument: bool = True) -> Any:
    """What an explorer shows and the reader does not move: tensors as lists, words, maps.

    `optional`: the constructor does without. `argument=False`: the explorer works it out, so
    neither the constructor nor "copy Python" has it.
    """
    role = "given" if argument else "derived"
    return guarded(trait).tag(sync=True, role=role, optional=optional)
