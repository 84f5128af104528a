"""Knobs: the parameters of an explorer, each declared once.

    class ClockHands(Explorer):
        place = knob(5, low=0, high=63, label="place", letter="i")
        base = knob(10_000.0, of=BASES, label="base of the speeds")
        names = given(t.List(t.Unicode()))

From a declaration come the synced trait, its check with a clear error, the argument of the
constructor, the part of the repr, and in the page the slider or menu, its keys, what "reset" and
"copy link" carry, the check of a link, and "copy Python".

>>> from tfviz.explorers import ClockHands
>>> ClockHands(d=8)
ClockHands(place=5, step=3, d=8, base=10000.0)
>>> ClockHands(place=64)
Traceback (most recent call last):
ValueError: place = 64 is out of range; choose 0 <= place <= 63
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets as t

from tfviz import _arguments

Bound = float | Callable[[Any], float] | None
"""A number, or what an explorer's other values make of it, such as `lambda e: len(e.words) - 1`."""


class Knob(t.TraitType):  # type: ignore[misc, unused-ignore]
    """A parameter that the reader moves; classes write `knob(…)`.

    Args:
        default: its first value; True or False make a checkbox, a word a choice, a number a slider.
        of: the values it may take, or value -> how a menu writes it. With `between`, numbers
            between the first and the last (or `low` and `high`) too: the slider stops at the
            listed ones only.
        low, high, step: the ends of a slider without a list, and how far apart its values are.
        label, letter: how the page names it.
    """

    def __init__(
        self,
        default: Any,
        *,
        of: Sequence[Any] | Mapping[Any, str] | Callable[[Any], Sequence[Any]] | None = None,
        between: bool = False,
        low: Bound = None,
        high: Bound = None,
        step: float | None = None,
        label: str = "",
        letter: str = "",
    ) -> None:
        super().__init__(default)
        self.tag(sync=True, role="knob")
        self.of, self.low, self.high, self.between = of, low, high, between
        self.words = {"label": label, "letter": letter} | ({} if step is None else {"step": step})
        self.kind = type(default)

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
        low, high = (bound(obj) if callable(bound) else bound for bound in (self.low, self.high))
        if listed is not None and self.between:
            low, high = listed[0] if low is None else low, listed[-1] if high is None else high
        elif listed is not None:
            if isinstance(value, bool) or value not in listed:
                known = ", ".join(map(str, listed))
                raise ValueError(f"{name} = {value!r}; choose one of {known}")
            return self.kind(value)
        if self.kind is int:
            return _arguments.integer(name, value, low, high)  # type: ignore[arg-type]
        if self.kind is float:
            return _arguments.real(name, value, low, high)
        if not isinstance(value, self.kind):
            raise ValueError(f"{name} = {value!r} is no {self.kind.__name__}")
        return value

    def values(self, explorer: Any) -> list[Any]:
        """Every value that its control in the page can take."""
        listed = self.choices(explorer)
        if self.kind is bool:
            return [False, True]
        if listed is not None:
            return listed
        low, high = (
            float((bound(explorer) if callable(bound) else bound) or 0)
            for bound in (self.low, self.high)
        )
        step = float(self.words.get("step", 1 if self.kind is int else 0.1))
        return [self.kind(round(low + k * step, 9)) for k in range(round((high - low) / step) + 1)]

    def described(self) -> dict[str, Any]:
        """What the page needs to know of it; what depends on other values the page finds itself."""
        fixed = {"low": self.low, "high": self.high}
        about: dict[str, Any] = {
            n: x for n, x in fixed.items() if x is not None and not callable(x)
        }
        if self.of is not None and not callable(self.of):
            about["of"] = list(self.of)
            if isinstance(self.of, Mapping):
                about["texts"] = list(self.of.values())
        kinds = {bool: "switch", int: "whole", float: "number", str: "word"}
        return {"kind": kinds.get(self.kind, "own"), "between": self.between, **about, **self.words}

    def docstring_line(self, name: str) -> str:
        """A line for a docstring: its name, and the values that it may take."""
        words = f"{self.words['label']} {self.words['letter']}".strip()
        low, high = self.low, self.high
        if self.of is not None and not callable(self.of):
            values = list(self.of)
            low, high = (values[0] if low is None else low), (values[-1] if high is None else high)
            if not self.between:
                return f"{name}    {words}: {', '.join(map(repr, values))}"
        known = isinstance(low, int | float) and isinstance(high, int | float)
        return f"{name}    {words}" + (f": {low:g} to {high:g}" if known else "")


knob: Callable[..., Any] = Knob  # in a class it declares a trait, and reads as its value


def own(trait: t.TraitType, *, optional: bool = False) -> Any:
    """A parameter that the reader moves by a control of the explorer's own: a list, a point."""
    return trait.tag(sync=True, role="own", optional=optional)


def given(trait: t.TraitType, *, optional: bool = False, argument: bool = True) -> Any:
    """What an explorer shows and the reader does not move: tensors as lists, words, maps.

    `optional`: the constructor does without. `argument=False`: the explorer works it out, so
    neither the constructor nor "copy Python" has it.
    """
    role = "given" if argument else "derived"
    return trait.tag(sync=True, role=role, optional=optional)
