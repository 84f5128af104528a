"""Families: formulas with named, ranged parameters. With numbers for them a family makes a pattern.

The formulas themselves are in `families`.

>>> from tfviz import patterns
>>> patterns.band(radius=1) & patterns.causal()
(band(radius=1) & causal())
"""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import sympy as sp
from torch import Tensor

from tfviz import _arguments
from tfviz.formula import Formula, Index, text
from tfviz.patterns.pattern import LENGTH, Pattern, Symbolic, combined, per_head, table_of_spec


@dataclass(frozen=True)
class Domain:
    """The values a parameter may take, the slider's first position, its letter and what it is."""

    low: int
    default: int | tuple[int, ...]
    letter: str
    meaning: str = ""
    high: Callable[[Mapping[str, Any]], int] | None = None  # of the other values and the length
    is_list: bool = False
    all_beyond: bool = False  # more than high says the same as high: the text is only shorter

    def check(self, name: str, value: Any) -> int | tuple[int, ...]:
        if not self.is_list:
            return _arguments.integer(name, value, self.low)
        if not isinstance(value, Iterable):
            raise ValueError(
                f"{name} = {value!r} is not a permutation; give a sequence such as (1, 2, 3, 0)"
            )
        order = tuple(_arguments.integer(f"{name}[{k}]", v) for k, v in enumerate(value))
        if not order or sorted(order) != list(range(len(order))):
            raise ValueError(
                f"{name} = {order} is not a permutation; list every number from 0 to n - 1 once"
            )
        return order

    def in_words(self, name: str, others: Iterable[str]) -> str:
        """A line of a docstring: range, letter and meaning."""
        if self.is_list:
            values = "each number from 0 to n - 1 once"
        elif self.high is None or self.all_beyond:
            values = f"{self.low} or more"
        else:
            symbols = {other: sp.Symbol(other, integer=True) for other in (*others, LENGTH)}
            high = sp.sympify(self.high(symbols)).rewrite(sp.ceiling)
            values = f"{self.low} to {text(high)}"
        letter = {r"\ell": "ℓ", r"\pi": "π"}.get(self.letter, self.letter)
        spoken = "" if "\\" in letter else f"; {letter} in the formula"
        return f"{name}: {self.meaning} ({values}{spoken})."


class _Index:
    """An index without a value. A formula that is made of other formulas hands it on to them."""


QUERY, KEY = _Index(), _Index()


class FamilyFormula(Formula):
    """The formula of a family. For QUERY and KEY, in the place of numbers, it is the pattern."""

    def __init__(self, family: Family, **options: Any) -> None:
        super().__init__(family.function, **options)
        self.family = family

    def __call__(self, i: Any, j: Any, **parameters: Any) -> Any:
        if i is QUERY and j is KEY:
            return self.family(**parameters)
        return super().__call__(i, j, **parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.family, "formula")


_BY_NAME: dict[str, Family] = {}
"""Every family that was made, also by rooms further up: what a spec may name."""


class Family:
    """A formula with named, ranged parameters. Called with numbers for them it makes a `Pattern`.

    `formula(i, j, …)` is the formula itself, on numbers or tensors, with all its symbolic faces.
    of_patterns: the formula only hands its indices on to other families.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        title: str,
        bibkey: str,
        domains: dict[str, Domain],
        of_patterns: bool = False,
    ) -> None:
        self.name, self.title, self.bibkey = function.__name__, title, bibkey
        self.function, self.domains, self.of_patterns = function, domains, of_patterns
        self.__name__ = function.__name__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self.__wrapped__ = function
        letters = {name: domain.letter for name, domain in domains.items()} | {LENGTH: "L"}
        self.formula = FamilyFormula(
            self,
            lists={name: 1 for name, d in domains.items() if d.is_list},
            positive=frozenset(n for n, d in domains.items() if d.low >= 1) | {LENGTH},
            letters=letters | {f"{n}.length": "n" for n, d in domains.items() if d.is_list},
        )
        _BY_NAME.setdefault(self.name, self)
        self.defaults = {
            name: p.default
            for name, p in inspect.signature(function).parameters.items()
            if p.default is not p.empty
        }

        self.__doc__ = self._in_words()
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=self.defaults.get(name, inspect.Parameter.empty),
                    annotation=tuple[int, ...] if domain.is_list else int,
                )
                for name, domain in domains.items()
            ],
            return_annotation=Pattern,
        )

    def __call__(self, *values: Any, **parameters: Any) -> Pattern:
        return Leaf(self, self._values(self._by_name(values, parameters)))

    def _by_name(self, values: tuple[Any, ...], parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters with those that were given by position. Raises TypeError that names the
        formula if there are too many, as where somebody gives indices."""
        names = list(self.domains)
        twice = [name for name in names[: len(values)] if name in parameters]
        if len(values) > len(names) or twice or any(isinstance(v, Tensor) for v in values):
            kinds = ", ".join("a tensor" if isinstance(v, Tensor) else repr(v) for v in values)
            named = "".join(f", {name}=…" for name in names)
            raise TypeError(
                f"{self.name}() takes {self._needs()}, and got {kinds} by position; it makes a "
                "pattern. For the formula at a query i and a key j write "
                f"{self.name}.formula(i, j{named})"
            )
        return {**dict(zip(names, values, strict=False)), **parameters}

    def _needs(self) -> str:
        return ", ".join(self.domains) or "no parameters"

    def _in_words(self) -> str:
        """The docstring: that of the function, the parameters, and how to reach the formula."""
        lines = [inspect.cleandoc(self.function.__doc__ or "")]
        if self.domains:
            words = (d.in_words(name, self.domains) for name, d in self.domains.items())
            lines += ["", "Args:", *(f"    {line}" for line in words)]
        numbers = "".join(f", {name}=…" for name in self.formula.parameters)
        return "\n".join(
            [*lines, "", f"The formula on numbers: {self.name}.formula(i, j{numbers})."]
        )

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        wanted = self.formula.parameters
        unknown = [name for name in given if name not in wanted]
        missing = [n for n in wanted if n not in given and n not in self.defaults and n != LENGTH]
        if unknown or missing:
            wrong = f"unknown {unknown}" if unknown else f"missing {missing}"
            raise TypeError(f"{self.name}() takes {self._needs()}; {wrong}")
        values = {**self.defaults, **given}
        checked = {n: d.check(n, values[n]) for n, d in self.domains.items()}
        if LENGTH in given:
            checked[LENGTH] = _arguments.integer(LENGTH, given[LENGTH], 1)
        self._check_high(checked)
        return checked

    def _check_high(self, values: Mapping[str, Any]) -> None:
        for name, domain in self.domains.items():
            if domain.high is None or domain.all_beyond:
                continue
            try:
                high = domain.high(values)
            except KeyError:  # the bound is a matter of the length, which comes with .mask(L)
                continue
            if LENGTH in values and values[name] > high:
                raise ValueError(
                    f"{name} = {values[name]} is out of range for L = {values[LENGTH]}; choose "
                    f"{domain.low} <= {name} <= {high}, or a longer text"
                )
            _arguments.integer(name, values[name], domain.low, high)

    def __repr__(self) -> str:
        return f"<family {self.name}({', '.join(self.domains)})>"

    def __copy__(self) -> Family:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Family:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its name, where its module has it; a formula that was brought is made again from what
        it was made of. Raises PicklingError for one that no other process could find."""
        home = sys.modules.get(self.__module__)
        if getattr(home, self.__qualname__, None) is self:
            return self.__qualname__
        again: tuple[Any, ...] | None = getattr(self.function, "again", None)
        if again is not None:
            return again
        raise pickle.PicklingError(
            f"{self!r} cannot be pickled: {self.__module__} has no {self.__qualname__}; make the "
            "family at the top of a module, under the name of its function"
        )


FAMILIES: dict[str, Family] = {}
"""Every pattern with a formula, by name."""

OWN: dict[str, Family] = {}
"""Formulas that were brought from outside (`tfviz.explain`), by names that no other family has."""


def own_family(function: Callable[..., Any], title: str, domains: dict[str, Domain]) -> Family:
    """A family for a formula from outside. The same formula under the same name is one family;
    a name that is taken gets the suffix _2, _3, …"""
    wanted, n = function.__name__, 1
    while (taken := _BY_NAME.get(function.__name__)) is not None:
        new = Family(function, title, "", domains)
        if function.__name__ in OWN and taken.formula.sympy == new.formula.sympy:
            same = {k: d.low for k, d in taken.domains.items()}
            if same == {k: d.low for k, d in domains.items()}:
                return taken
        n += 1
        function.__name__ = f"{wanted}_{n}"
    OWN[function.__name__] = Family(function, title, "", domains)
    return OWN[function.__name__]


def family(
    title: str, bibkey: str = "lin2021survey", **domains: Domain
) -> Callable[[Callable[..., Any]], Family]:
    """Decorator: register a formula as a family of patterns."""
    return partial(_registered, title, bibkey, domains, False)


def compound(
    title: str, bibkey: str = "lin2021survey", **domains: Domain
) -> Callable[[Callable[..., Any]], Family]:
    """Decorator: the same for a formula that only joins the formulas of other families. Given to
    QUERY and KEY it says which patterns it is made of."""
    return partial(_registered, title, bibkey, domains, True)


def _registered(
    title: str,
    bibkey: str,
    domains: dict[str, Domain],
    of_patterns: bool,
    function: Callable[..., Any],
) -> Family:
    FAMILIES[function.__name__] = Family(function, title, bibkey, domains, of_patterns)
    return FAMILIES[function.__name__]


class Leaf(Pattern):
    """A family with a number for each of its parameters."""

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        self.family, self.values = family, dict(values)

    @property
    def depends_on_length(self) -> bool:
        """Whether the length is one of the parameters of the formula."""
        return LENGTH in self.family.formula.parameters

    def values_at(self, length: int | None) -> dict[str, Any]:
        """All parameters of the formula. Raises ValueError if it depends on a length that neither
        the pattern nor `length` says."""
        if not self.depends_on_length or LENGTH in self.values:
            return self.values
        if length is None:
            raise ValueError(f"{self!r} depends on the length; say pattern.at(L) first")
        return {**self.values, LENGTH: length}

    def at(self, length: int) -> Leaf:
        self.check_length(_arguments.integer("length", length, 1))
        return Leaf(self.family, self.values_at(length))

    def _fixed_length(self) -> int | None:
        length: int | None = self.values.get(LENGTH)
        return length

    def written_out(self, length: int) -> Pattern:
        if not self.family.of_patterns:
            return self
        made: Pattern = self.family.function(QUERY, KEY, **self.values_at(length))
        return made

    def check_length(self, L: int) -> None:
        self.family._check_high({**self.values, LENGTH: L})
        fixed_length = self.values.get(LENGTH, L)
        if fixed_length != L:
            raise ValueError(f"{self!r} is fixed at length {fixed_length}; L = {L} was asked")
        order = self.values.get("permutation", ())
        if len(order) > L:
            raise ValueError(f"permutation has {len(order)} blocks; L = {L} must be as long")

    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        if length is not None:
            self.check_length(length)
        return self.family.formula(i, j, **self.values_at(length))

    @property
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        if self.depends_on_length and LENGTH not in self.values:
            raise ValueError(f"{self!r} depends on the length; use pattern.at(L).mask_mod")
        # lists become tensors here: a compiled function may use tensors, but not make them of data
        values = self.family.formula.tensors(self.values)
        return self.family.formula.mask_mod(**values)

    @cached_property
    def _symbolic(self) -> Symbolic:
        formula = self.family.formula
        values = {name: value for name, value in self.values.items() if name != LENGTH}
        return Symbolic(formula.sympy, values, formula.letters, self.depends_on_length)

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def title(self) -> str:
        return self.family.title

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{n}={v!r}' for n, v in self.values.items())})"

    def spec(self) -> dict[str, Any]:
        values = {n: list(v) if isinstance(v, tuple) else v for n, v in self.values.items()}
        return {"name": self.name, "params": values}


def from_spec(spec: Mapping[str, Any]) -> Pattern:
    """The pattern that a spec describes. Raises ValueError that quotes what is wrong in it."""
    if not isinstance(spec, Mapping):
        raise ValueError(f"spec {spec!r} is a {type(spec).__name__}; give what .spec() returns")
    if "op" in spec:
        parts = tuple(from_spec(part) for part in spec.get("parts", ()))
        if spec["op"] == "heads":
            return per_head(*parts)
        if spec["op"] == "not" and len(parts) == 1:
            return ~parts[0]
        if spec["op"] in ("and", "or") and parts:
            return combined(spec["op"], *parts) if len(parts) > 1 else parts[0]
        raise ValueError(f"spec {spec!r}: op is and, or (≥ 1 part), not (1 part) or heads")
    if "table" in spec:
        return table_of_spec(spec)
    if spec.get("name") not in _BY_NAME:
        known = ", ".join(_BY_NAME)
        raise ValueError(
            f"spec {spec!r} names no family; choose one of {known}, or import the room of another"
        )
    try:
        return _BY_NAME[spec["name"]](**spec.get("params", {}))
    except TypeError as error:
        raise ValueError(f"spec {spec!r}: {error}") from None
