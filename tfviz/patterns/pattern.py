"""The machinery of patterns: families of formulas with ranged parameters, and the `Pattern` they
make, which has every face of its formula. The formulas themselves are in `families`.

>>> from tfviz import patterns
>>> patterns.band(radius=1) & patterns.causal()
(band(radius=1) & causal())
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import sympy as sp
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfviz import _arguments
from tfviz.formula import Formula, Index, javascript, latex, text
from tfviz.patterns.cost import Cost, count
from tfviz.patterns.reach import Reach, reach

LENGTH = "length"
"""Name of the parameter that a pattern fills in with the sequence length L."""

FACES = {"plot": "tfviz.plots.mask", "explore": "tfviz.explorers.SparseLab"}
"""Faces of a pattern that are made of it further up: found by name when they are asked for, so that
this room imports nothing that is built on it."""


@dataclass(frozen=True)
class Domain:
    """The values a parameter may take, the slider's first position, and its letter."""

    low: int
    default: int | tuple[int, ...]
    letter: str
    high: Callable[[Mapping[str, Any]], int] | None = None  # of the other values and the length
    is_list: bool = False

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


class _Named:
    """An index without a value: a formula that does more with it than hand it on is not made of
    other formulas."""


QUERY, KEY = _Named(), _Named()


_BY_NAME: dict[str, Family] = {}
"""Every family that was made, also by rooms further up: what a spec may name."""


class Family:
    """A formula with named, ranged parameters.

    Called with parameters only it makes a `Pattern`; called with indices it is the formula.
    """

    def __init__(
        self, function: Callable[..., Any], title: str, bibkey: str, domains: dict[str, Domain]
    ) -> None:
        self.name, self.title, self.bibkey = function.__name__, title, bibkey
        self.function, self.domains = function, domains
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self.__wrapped__ = function
        letters = {name: domain.letter for name, domain in domains.items()} | {LENGTH: "L"}
        self.formula = Formula(
            function,
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

    def __call__(self, *indices: Index, **parameters: Any) -> Any:
        if indices and indices[0] is QUERY:  # asked by a formula that is made of this one
            return Pattern(self, self._values(parameters))
        if indices:
            return self.function(*indices, **self._tensors(parameters))
        return Pattern(self, self._values(parameters))

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        wanted = self.formula.parameters
        unknown = [name for name in given if name not in wanted]
        missing = [n for n in wanted if n not in given and n not in self.defaults and n != LENGTH]
        if unknown or missing:
            need = ", ".join(name for name in wanted if name != LENGTH) or "no parameters"
            wrong = f"unknown {unknown}" if unknown else f"missing {missing}"
            raise TypeError(f"{self.name}() takes {need}; {wrong}")
        values = {**self.defaults, **given}
        checked = {n: d.check(n, values[n]) for n, d in self.domains.items()}
        if LENGTH in given:
            checked[LENGTH] = _arguments.integer(LENGTH, given[LENGTH], 1)
        self._check_high(checked)
        return checked

    def _check_high(self, values: Mapping[str, Any]) -> None:
        for name, domain in self.domains.items():
            if domain.high is not None:
                try:
                    high = domain.high(values)
                except KeyError:  # the bound is a matter of the length, which comes with .mask(L)
                    continue
                _arguments.integer(name, values[name], domain.low, high)

    def _tensors(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {n: torch.as_tensor(v) if isinstance(v, tuple) else v for n, v in values.items()}

    def __repr__(self) -> str:
        return f"<family {self.name}({', '.join(self.domains)})>"


FAMILIES: dict[str, Family] = {}
"""Every pattern with a formula, by name."""


def family(
    title: str, bibkey: str = "lin2021survey", **domains: Domain
) -> Callable[[Callable[..., Any]], Family]:
    """Decorator: register a formula as a family of patterns."""

    def register(function: Callable[..., Any]) -> Family:
        FAMILIES[function.__name__] = Family(function, title, bibkey, domains)
        return FAMILIES[function.__name__]

    return register


class Pattern:
    """A set of allowed (query, key) pairs for every length, made by a family, a combinator or a
    table. Immutable; two patterns are equal if their specs are."""

    def __init__(
        self,
        family: Family | None = None,
        values: Mapping[str, Any] | None = None,
        op: str | None = None,
        parts: tuple[Pattern, ...] = (),
        bits: Bool[Tensor, "L L"] | None = None,
    ) -> None:
        self.family, self.values, self.op, self.parts = family, dict(values or {}), op, parts
        self.bits = bits

    # --- combinators ---

    def __and__(self, other: Pattern) -> Pattern:
        return _combine("and", self, other)

    def __or__(self, other: Pattern) -> Pattern:
        return _combine("or", self, other)

    def __invert__(self) -> Pattern:
        return Pattern(op="not", parts=(self,))

    def at(self, length: int) -> Pattern:
        """The same pattern with its length fixed, for faces that do not take one (mask_mod)."""
        if self.op:
            return Pattern(op=self.op, parts=tuple(p.at(length) for p in self.parts))
        self.check_length(_arguments.integer("length", length, 1))
        if self.family and LENGTH in self.family.formula.parameters:
            return self.family(**{**self.values, LENGTH: length})
        return self

    def written_out(self, length: int) -> Pattern:
        """What its formula is made of, if that is other patterns: `strided(stride=8)` is
        `sliding_window(lookback=8) | column(stride=8)`. Else the pattern itself."""
        if self.family is None:
            return self
        values = dict(self.values)
        if LENGTH in self.family.formula.parameters:
            values.setdefault(LENGTH, length)
        try:
            made = self.family.function(QUERY, KEY, **values)
        except (TypeError, AttributeError):  # it computes with the indices
            return self
        return made if isinstance(made, Pattern) else self

    # --- dense faces ---

    def check_length(self, L: int) -> None:
        for part in self.parts:
            part.check_length(L)
        if self.family:
            self.family._check_high({**self.values, LENGTH: L})
            fixed_length = self.values.get(LENGTH, L)
            if fixed_length != L:
                raise ValueError(f"{self!r} is fixed at length {fixed_length}; L = {L} was asked")
            order = self.values.get("permutation", ())
            if len(order) > L:
                raise ValueError(f"permutation has {len(order)} blocks; L = {L} must be as long")
        if self.bits is not None and self.bits.shape[-1] != L:
            raise ValueError(f"the table is for L = {self.bits.shape[-1]}; L = {L} was asked")

    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        """The formula on ints or broadcastable index tensors (not for per-head patterns)."""
        if self.op == "heads":
            raise ValueError(f"{self!r} differs by head; use .mask(L) or .mask_mod")
        if self.op:
            values = [p.holds(i, j, length) for p in self.parts]
            if self.op == "not":
                return ~values[0] if isinstance(values[0], Tensor) else not values[0]
            first, *rest = values
            for value in rest:
                first = first & value if self.op == "and" else first | value
            return first
        if length is not None:
            self.check_length(length)
        if self.bits is not None:
            return self.bits[i, j]
        assert self.family is not None
        values_ = dict(self.values)
        if LENGTH in self.family.formula.parameters:
            length = values_.get(LENGTH, length)
            if length is None:
                raise ValueError(f"{self!r} depends on the length; say pattern.at(L) first")
            values_[LENGTH] = length
        return self.family(i, j, **values_)

    def mask(self, L: int) -> Bool[Tensor, "*h L L"]:
        """The dense mask, True = query i (row) may attend to key j (column).

        Shape (L, L), or (h, L, L) for a pattern that differs by head.
        Raises ValueError if L is not a whole number >= 1 or a parameter does not fit it.
        """
        return self.rows(torch.arange(_arguments.integer("L", L, 1)), L)

    def rows(self, i: Int[Tensor, " n"], L: int) -> Bool[Tensor, "*h n L"]:
        """The rows of the mask for the queries i alone: n·L numbers instead of L².

        Raises ValueError if the pattern is not made for L, or i is outside 0 … L - 1.
        """
        self.check_length(L)
        if len(i) and (int(i.min()) < 0 or int(i.max()) >= L):
            raise ValueError(
                f"i = {int(i.min())} … {int(i.max())} leaves the positions 0 … {L - 1}; queries "
                "are among the L keys: give no more queries than keys, or a Boolean mask instead"
            )
        return self._rows(i, L)

    def _rows(self, i: Tensor, L: int) -> Tensor:
        if self.op == "heads":
            return torch.stack([p._rows(i, L) for p in self.parts])
        if self.op:  # heads may lie below: combine masks, not formulas
            masks = [p._rows(i, L) for p in self.parts]
            if self.op == "not":
                return ~masks[0]
            first, *rest = masks
            for mask in rest:
                first = first & mask if self.op == "and" else first | mask
            return first
        return self.holds(i[:, None], torch.arange(L)[None, :], L).expand(len(i), L)

    def key_sets(self, L: int) -> list[list[int]]:
        """S_i for every query i: the sorted keys it may use."""
        mask = self.mask(L)
        if mask.dim() != 2:
            raise ValueError(f"{self!r} differs by head; ask each of its .parts for key_sets")
        return [row.nonzero().flatten().tolist() for row in mask]

    @property
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        """mask_mod(b, h, q_idx, kv_idx) for torch.nn.attention.flex_attention.

        A pattern that depends on the length must be fixed first: `pattern.at(L).mask_mod`.
        """
        if self.op == "heads":
            mods = [p.mask_mod for p in self.parts]

            def by_head(b: Index, h: Index, q_idx: Index, kv_idx: Index) -> Any:
                allowed = mods[0](b, h, q_idx, kv_idx) & (h == 0)
                for head, mod in enumerate(mods[1:], start=1):
                    allowed = allowed | (mod(b, h, q_idx, kv_idx) & (h == head))
                return allowed

            return by_head
        if self.op == "not":
            inner = self.parts[0].mask_mod
            return lambda b, h, q_idx, kv_idx: ~inner(b, h, q_idx, kv_idx)
        if self.op:
            mods = [p.mask_mod for p in self.parts]
            both = self.op == "and"

            def combined(b: Index, h: Index, q_idx: Index, kv_idx: Index) -> Any:
                first = mods[0](b, h, q_idx, kv_idx)
                for mod in mods[1:]:
                    other = mod(b, h, q_idx, kv_idx)
                    first = first & other if both else first | other
                return first

            return combined
        if self.family and LENGTH in self.family.formula.parameters and LENGTH not in self.values:
            raise ValueError(f"{self!r} depends on the length; use pattern.at(L).mask_mod")
        if self.family is None:
            return lambda b, h, q_idx, kv_idx: self.holds(q_idx, kv_idx)
        # lists become tensors here: a compiled function may use tensors, but not make them of data
        function, values = self.family.function, self.family._tensors(self.values)
        return lambda b, h, q_idx, kv_idx: function(q_idx, kv_idx, **values)

    # --- symbolic faces ---

    @cached_property
    def _symbolic(self) -> tuple[Any, dict[str, Any], dict[str, str], bool]:
        """(expression, parameters, letters, does it depend on the length), parts renamed apart."""
        if self.op == "heads":
            raise ValueError(f"{self!r} differs by head; ask each of its .parts for its formula")
        if self.bits is not None:
            bits = Formula(lambda i, j, *, bits: bits[i, j] == 1, lists={"bits": 2})
            return bits.sympy, {"bits": self.bits.int().tolist()}, {"bits": "B"}, False
        if self.family:
            formula = self.family.formula
            plain = {n: v for n, v in self.values.items() if n != LENGTH}
            return formula.sympy, plain, formula.letters, LENGTH in formula.parameters
        merged: dict[str, Any] = {}
        letters: dict[str, str] = {}
        expressions, needs_length = [], False
        for part in self.parts:
            expression, values, names, needs = part._symbolic
            needs_length |= needs
            renamed: dict[str, str] = {}
            for name, value in values.items():
                fresh, k = name, 1
                while fresh in merged and merged[fresh] != value:
                    k += 1
                    fresh = f"{name}_{k}"
                merged[fresh] = value
                letters[fresh] = names.get(name, name) + (f"_{k}" if k > 1 else "")
                if fresh != name:
                    renamed |= {name: fresh, f"{name}.length": f"{fresh}.length"}
            for name in (LENGTH, *(f"{n}.length" for n in values)):
                if name in names:
                    letters[renamed.get(name, name)] = names[name]
            expressions.append(_rename(expression, renamed))
            operation = {"and": sp.And, "or": sp.Or, "not": sp.Not}[str(self.op)]
        return operation(*expressions), merged, letters, needs_length

    @property
    def sympy(self) -> Any:
        """The condition on i and j as a SymPy expression, parameters symbolic."""
        return self._symbolic[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and values of all parameters; names that collide get the suffix _2, _3, …"""
        if self.op == "heads":
            return {}
        return dict(self._symbolic[1])

    @property
    def latex(self) -> str:
        """LaTeX of the condition under which i attends to j, parameters as letters."""
        return latex(self.sympy, self._symbolic[2])

    @property
    def latex_with_values(self) -> str:
        """LaTeX of the condition with this pattern's numbers in place."""
        shown = {n: v for n, v in self.parameters.items() if not isinstance(v, tuple | list)}
        return latex(self.sympy, self._symbolic[2], **shown)

    def text(self, **values: Any) -> str:
        """The condition as plain text, numbers in place: `pattern.text(i=12)`."""
        shown = {n: v for n, v in self.parameters.items() if not isinstance(v, tuple | list)}
        return text(self.sympy, **(shown | values))

    @property
    def javascript_arguments(self) -> list[str]:
        """The arguments of `javascript`: i, j, the parameters in order, and length if needed."""
        _, parameters, _, needs_length = self._symbolic
        return ["i", "j", *parameters, *([LENGTH] if needs_length else [])]

    @property
    def javascript(self) -> str:
        """A JavaScript arrow function of `javascript_arguments`."""
        return javascript(self.sympy, self.javascript_arguments)

    # --- cost and depth ---

    def cost(self, L: int, d: int = 64, h: int = 1, block: int = 64) -> Cost:
        """Pairs, FLOPs and bytes of one layer of total width d with h heads.

        Counted row block by row block, so memory stays at block·L.
        Raises ValueError if d is not divisible by h or h does not fit a per-head pattern.
        """
        return count(self, L, d, h, block)

    def reach(self, L: int, layers: int | None = None) -> Reach:
        """Hops between all pairs when every layer uses this pattern; see `patterns.reach`."""
        return reach([self], L, layers)

    # --- words ---

    @property
    def name(self) -> str:
        return self.family.name if self.family else "table" if self.bits is not None else repr(self)

    @property
    def title(self) -> str:
        """The name for a figure's caption or a menu."""
        if self.family:
            return self.family.title
        if self.bits is not None:
            return "table"
        if self.op == "not":
            return f"not ({self.parts[0].title})"
        if self.op == "heads":
            return " · ".join(p.title for p in self.parts)
        return f" {self.op} ".join(f"({p.title})" if p.op else p.title for p in self.parts)

    def __repr__(self) -> str:
        if self.family:
            return f"{self.name}({', '.join(f'{n}={v!r}' for n, v in self.values.items())})"
        if self.bits is not None:
            return f"table(<{self.bits.shape[-1]}×{self.bits.shape[-1]}>)"
        if self.op == "not":
            return f"~{self.parts[0]!r}"
        if self.op == "heads":
            return f"per_head({', '.join(map(repr, self.parts))})"
        sign = " & " if self.op == "and" else " | "
        return f"({sign.join(map(repr, self.parts))})"

    def spec(self) -> dict[str, Any]:
        """The pattern as JSON; `from_spec` reads it back."""
        if self.op:
            return {"op": self.op, "parts": [p.spec() for p in self.parts]}
        if self.bits is not None:
            packed = np.packbits(self.bits.numpy().astype(np.uint8).ravel()).tobytes()
            return {
                "table": base64.b64encode(packed).decode(),
                "shape": list(self.bits.shape),
            }
        values = {n: list(v) if isinstance(v, tuple) else v for n, v in self.values.items()}
        return {"name": self.name, "params": values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> str:
        return json.dumps(self.spec(), sort_keys=True)

    # --- pictures ---

    def plot(self, L: int, **options: Any) -> Any:
        """The mask as a figure; options as in `tfviz.plots.mask`."""
        return _face("plot")(self, L, **options)

    def explore(self, L: int = 64, **options: Any) -> Any:
        """The pattern in the Sparse Lab; options as in `tfviz.explorers.SparseLab`."""
        return _face("explore")(left=self, L=L, **options)


def _face(name: str) -> Callable[..., Any]:
    room, _, made = FACES[name].rpartition(".")
    return getattr(import_module(room), made)


def _heads(pattern: Pattern) -> set[int]:
    """The numbers of heads of which a pattern is made; none if no part of it differs by head."""
    if pattern.op == "heads":
        return {len(pattern.parts)}
    return set().union(*map(_heads, pattern.parts))


def _combine(op: str, *patterns: Pattern) -> Pattern:
    parts: list[Pattern] = []
    for pattern in patterns:
        if not isinstance(pattern, Pattern):
            raise TypeError(f"{pattern!r} is not a Pattern; make one with tfviz.patterns")
        parts += pattern.parts if pattern.op == op else [pattern]
    counts = set().union(*map(_heads, patterns))
    if len(counts) > 1:
        joined = " and ".join(map(repr, patterns))
        raise ValueError(f"{joined} have {sorted(counts)} heads; join patterns of one number")
    return Pattern(op=op, parts=tuple(parts))


def _rename(expression: Any, names: Mapping[str, str]) -> Any:
    swap = {}
    for node in expression.atoms(sp.Symbol, sp.IndexedBase):
        label = node.label if isinstance(node, sp.IndexedBase) else node
        if label.name in names:
            fresh = sp.Symbol(names[label.name], **label.assumptions0)
            swap[node] = (
                sp.IndexedBase(fresh, shape=node.shape)
                if isinstance(node, sp.IndexedBase)
                else fresh
            )
    return expression.xreplace(swap)


def per_head(*patterns: Pattern) -> Pattern:
    """One pattern for each head: head n uses patterns[n]. The mask is (h, L, L)."""
    if not patterns or any(not isinstance(p, Pattern) or p.op == "heads" for p in patterns):
        raise ValueError(f"per_head({patterns!r}): give one plain Pattern for each head")
    return Pattern(op="heads", parts=patterns)


def table(bits: Bool[Tensor, "L L"]) -> Pattern:
    """A pattern given by its mask: for sets that depend on the content (buckets, clusters, nearest
    neighbours). It has the same faces; its bits travel to the browser.

    Raises ValueError unless bits is a square Boolean tensor.
    """
    if not isinstance(bits, Tensor) or bits.dtype != torch.bool or bits.dim() != 2:
        kind = f"{bits.dtype} {tuple(bits.shape)}" if isinstance(bits, Tensor) else type(bits)
        raise ValueError(f"bits is {kind}; give a Boolean tensor of shape (L, L)")
    if bits.shape[0] != bits.shape[1] or not len(bits):
        raise ValueError(f"bits has shape {tuple(bits.shape)}; a table is square and not empty")
    return Pattern(bits=bits.clone())


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
            return _combine(spec["op"], *parts) if len(parts) > 1 else parts[0]
        raise ValueError(f"spec {spec!r}: op is and, or (≥ 1 part), not (1 part) or heads")
    if "table" in spec:
        return _table_of(spec)
    if spec.get("name") not in _BY_NAME:
        known = ", ".join(_BY_NAME)
        raise ValueError(
            f"spec {spec!r} names no family; choose one of {known}, or import the room of another"
        )
    try:
        return _BY_NAME[spec["name"]](**spec.get("params", {}))
    except TypeError as error:
        raise ValueError(f"spec {spec!r}: {error}") from None


def _table_of(spec: Mapping[str, Any]) -> Pattern:
    shape = spec.get("shape")
    if not isinstance(shape, list | tuple) or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"spec of a table: shape = {shape!r}; a table is square: give [L, L]")
    L = _arguments.integer("shape[0]", shape[0], 1)
    try:
        packed = base64.b64decode(spec["table"], validate=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"spec of a table: its bits are no base64 text: {error}") from None
    if len(packed) != -(-L * L // 8):
        raise ValueError(
            f"spec of a table: {len(packed)} bytes for {L} × {L} bits; give {-(-L * L // 8)}"
        )
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=L * L).astype(bool)
    return table(torch.from_numpy(bits.reshape(L, L)))
