"""Patterns: sets of allowed (query, key) pairs for every length. All have the same faces; there are
four kinds:

    Leaf        a formula with numbers for its parameters (in `family`, where formulas are)
    Combined    a & b, a | b, ~a
    PerHead     a pattern for each head
    Table       a mask, for sets that depend on the content

>>> bits = table(torch.eye(3, dtype=torch.bool))
>>> (~bits).key_sets(3)
[[1, 2], [0, 2], [0, 1]]
"""

from __future__ import annotations

import base64
import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial, reduce
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

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

T = TypeVar("T")


class Symbolic(NamedTuple):
    """A pattern as a condition on the symbols i and j."""

    expression: Any
    parameters: dict[str, Any]
    letters: dict[str, str]
    depends_on_length: bool


class Pattern(ABC):
    """A set of allowed (query, key) pairs for every length. Immutable; two patterns are equal if
    their specs are."""

    parts: tuple[Pattern, ...] = ()

    # --- what each kind says for itself ---

    @abstractmethod
    def at(self, length: int) -> Pattern:
        """The same pattern with its length fixed, for faces that do not take one (mask_mod)."""

    def check_length(self, L: int) -> None:
        """Raises ValueError if the pattern is not made for L positions."""
        for part in self.parts:
            part.check_length(L)

    @abstractmethod
    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        """The formula on ints or broadcastable index tensors (not for per-head patterns)."""

    @property
    @abstractmethod
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        """mask_mod(b, h, q_idx, kv_idx) for torch.nn.attention.flex_attention.

        A pattern that depends on the length must be fixed first: `pattern.at(L).mask_mod`.
        """

    @property
    @abstractmethod
    def _symbolic(self) -> Symbolic:
        """The condition. Raises ValueError for a pattern that differs by head."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The name for a figure's caption or a menu."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The pattern as JSON; `from_spec` reads it back."""

    @property
    def name(self) -> str:
        return repr(self)

    def written_out(self, length: int) -> Pattern:
        """What its formula is made of, if that is other patterns: `strided(stride=8)` is
        `sliding_window(lookback=8) | column(stride=8)`. Else the pattern itself."""
        return self

    def evaluated(self, value_of: Callable[[Pattern], T]) -> T:
        """What `value_of` gives for a pattern, or for each of those that this one combines, joined
        by the same `&`, `|` and `~`."""
        return value_of(self)

    # --- combinators ---

    def __and__(self, other: Pattern) -> Pattern:
        return combined("and", self, other)

    def __or__(self, other: Pattern) -> Pattern:
        return combined("or", self, other)

    def __invert__(self) -> Pattern:
        return Combined("not", (self,))

    # --- dense faces ---

    def mask(self, L: int, device: torch.device | str | None = None) -> Bool[Tensor, "*h L L"]:
        """The dense mask, True = query i (row) may attend to key j (column).

        Shape (L, L), or (h, L, L) for a pattern that differs by head; made on `device`.
        Raises ValueError if L is not a whole number >= 1 or a parameter does not fit it.
        """
        return self.rows(torch.arange(_arguments.integer("L", L, 1), device=device), L)

    def rows(
        self, i: Int[Tensor, " n"], L: int, j: Int[Tensor, " m"] | None = None
    ) -> Bool[Tensor, "*h n m"]:
        """The rows of the mask for the queries i alone: n·L numbers instead of L², where i is; of
        the keys j, if they are given, and all others are left out.

        Raises ValueError if the pattern is not made for L, or i is outside 0 … L - 1.
        """
        self.check_length(L)
        if len(i) and not i.is_meta and (int(i.min()) < 0 or int(i.max()) >= L):
            raise ValueError(
                f"i = {int(i.min())} … {int(i.max())} leaves the positions 0 … {L - 1}; queries "
                "are among the L keys: give no more queries than keys, or a Boolean mask instead"
            )
        return self._rows(i, torch.arange(L, device=i.device) if j is None else j, L)

    def _rows(self, i: Tensor, j: Tensor, L: int) -> Tensor:
        # heads may lie in the parts: combine masks, not formulas
        return self.evaluated(lambda pattern: pattern._own_rows(i, j, L))

    def _own_rows(self, i: Tensor, j: Tensor, L: int) -> Tensor:
        return self.holds(i[:, None], j[None, :], L).expand(len(i), len(j))

    def key_sets(self, L: int) -> list[list[int]]:
        """S_i for every query i: the sorted keys it may use."""
        mask = self.mask(L)
        if mask.dim() != 2:
            raise ValueError(f"{self!r} differs by head; ask each of its .parts for key_sets")
        return [row.nonzero().flatten().tolist() for row in mask]

    # --- symbolic faces ---

    @property
    def sympy(self) -> Any:
        """The condition on i and j as a SymPy expression, parameters symbolic."""
        return self._symbolic.expression

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and values of all parameters; names that collide get the suffix _2, _3, …"""
        return dict(self._symbolic.parameters)

    @property
    def latex(self) -> str:
        """LaTeX of the condition under which i attends to j, parameters as letters."""
        return latex(self.sympy, self._symbolic.letters)

    @property
    def latex_with_values(self) -> str:
        """LaTeX of the condition with this pattern's numbers in place."""
        shown = {n: v for n, v in self.parameters.items() if not isinstance(v, tuple | list)}
        return latex(self.sympy, self._symbolic.letters, **shown)

    def text(self, **values: Any) -> str:
        """The condition as plain text, numbers in place: `pattern.text(i=12)`."""
        shown = {n: v for n, v in self.parameters.items() if not isinstance(v, tuple | list)}
        return text(self.sympy, **(shown | values))

    @property
    def javascript_arguments(self) -> list[str]:
        """The arguments of `javascript`: i, j, the parameters in order, and length if needed."""
        length = [LENGTH] if self._symbolic.depends_on_length else []
        return ["i", "j", *self._symbolic.parameters, *length]

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

    # --- equality ---

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> str:
        return json.dumps(self.spec(), sort_keys=True)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle takes along: all but what is found again from it."""
        return {n: v for n, v in self.__dict__.items() if n not in ("_key", "_symbolic")}

    # --- pictures ---

    def plot(self, L: int, **options: Any) -> Any:
        """The mask as a figure; options as in `tfviz.plots.mask`."""
        return _face("plot")(self, L, **options)

    def _repr_html_(self) -> str | None:
        """In a notebook: a small mask, what makes it, and the condition on i and j."""
        L = self._fixed_length() or next((n for n in (24, 48, 96) if self._takes(n)), None)
        if L is None or L > 96:
            return None
        says = f"{self!r} at L = {L}"
        with suppress(ValueError):  # heads have a condition each
            says += f": i attends to j where {self.text()}"
        html: str = self.plot(L, size=160, caption=says).html
        return html

    def _takes(self, L: int) -> bool:
        try:
            self.check_length(L)
        except ValueError:
            return False
        return True

    def _fixed_length(self) -> int | None:
        """The only length that it is made for, if there is one."""
        return next((n for part in self.parts if (n := part._fixed_length())), None)

    def explore(self, L: int = 64, **options: Any) -> Any:
        """The pattern in the Sparse Lab; options as in `tfviz.explorers.SparseLab`."""
        return _face("explore")(left=self, L=L, **options)


def _face(name: str) -> Callable[..., Any]:
    room, _, made = FACES[name].rpartition(".")
    return getattr(import_module(room), made)


class Combined(Pattern):
    """`a & b` and `a | b` of two patterns or more, `~a` of one: op is "and", "or" or "not"."""

    def __init__(self, op: str, parts: tuple[Pattern, ...]) -> None:
        self.op, self.parts = op, parts

    def with_parts(self, parts: tuple[Pattern, ...]) -> Combined:
        """The same combination of other patterns."""
        return Combined(self.op, parts)

    def evaluated(self, value_of: Callable[[Pattern], T]) -> T:
        return _joined(self.op, [part.evaluated(value_of) for part in self.parts])

    def at(self, length: int) -> Pattern:
        return self.with_parts(tuple(part.at(length) for part in self.parts))

    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        return self.evaluated(lambda pattern: pattern.holds(i, j, length))

    @property
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        return partial(_mask_mod_of_parts, self.op, tuple(part.mask_mod for part in self.parts))

    @cached_property
    def _symbolic(self) -> Symbolic:
        """Parameters of parts that share a name and not their value are renamed apart."""
        merged: dict[str, Any] = {}
        letters: dict[str, str] = {}
        expressions = []
        for expression, values, names, _ in (part._symbolic for part in self.parts):
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
        depends_on_length = any(part._symbolic.depends_on_length for part in self.parts)
        operation = {"and": sp.And, "or": sp.Or, "not": sp.Not}[self.op]
        return Symbolic(operation(*expressions), merged, letters, depends_on_length)

    @property
    def title(self) -> str:
        if self.op == "not":
            return f"not ({self.parts[0].title})"
        grouped = (f"({p.title})" if p.parts else p.title for p in self.parts)
        return f" {self.op} ".join(grouped)

    def __repr__(self) -> str:
        if self.op == "not":
            return f"~{self.parts[0]!r}"
        sign = " & " if self.op == "and" else " | "
        return f"({sign.join(map(repr, self.parts))})"

    def spec(self) -> dict[str, Any]:
        return {"op": self.op, "parts": [part.spec() for part in self.parts]}


def _joined(op: str, values: Sequence[Any]) -> Any:
    """Values of any kind that has `&`, `|` and `~`: Booleans, masks, intervals."""
    if op == "not":
        (value,) = values
        return not value if isinstance(value, bool) else ~value
    return reduce(operator.and_ if op == "and" else operator.or_, values)


class PerHead(Pattern):
    """A pattern for each head, none of which differs by head in its turn."""

    def __init__(self, parts: tuple[Pattern, ...]) -> None:
        self.parts = parts

    def at(self, length: int) -> Pattern:
        return PerHead(tuple(part.at(length) for part in self.parts))

    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        raise ValueError(f"{self!r} differs by head; use .mask(L) or .mask_mod")

    def _own_rows(self, i: Tensor, j: Tensor, L: int) -> Tensor:
        return torch.stack([part._rows(i, j, L) for part in self.parts])

    @property
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        return partial(_mask_mod_of_heads, tuple(p.mask_mod for p in self.parts))

    @property
    def _symbolic(self) -> Symbolic:
        raise ValueError(f"{self!r} differs by head; ask each of its .parts for its formula")

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def title(self) -> str:
        return " · ".join(part.title for part in self.parts)

    def __repr__(self) -> str:
        return f"per_head({', '.join(map(repr, self.parts))})"

    def spec(self) -> dict[str, Any]:
        return {"op": "heads", "parts": [part.spec() for part in self.parts]}


class Table(Pattern):
    """A mask for one length."""

    def __init__(self, bits: Bool[Tensor, "L L"]) -> None:
        self.bits = bits

    def at(self, length: int) -> Pattern:
        self.check_length(_arguments.integer("length", length, 1))
        return self

    def _fixed_length(self) -> int | None:
        return len(self.bits)

    def check_length(self, L: int) -> None:
        if len(self.bits) != L:
            raise ValueError(f"the table is for L = {len(self.bits)}; L = {L} was asked")

    def holds(self, i: Index, j: Index, length: int | None = None) -> Any:
        if length is not None:
            self.check_length(length)
        bits = self.bits.to(i.device) if isinstance(i, Tensor) else self.bits
        return bits[i, j]

    @property
    def mask_mod(self) -> Callable[[Index, Index, Index, Index], Any]:
        return partial(_mask_mod_of_table, self.bits)

    @cached_property
    def _symbolic(self) -> Symbolic:
        formula = Formula(lambda i, j, *, bits: bits[i, j] == 1, lists={"bits": 2})
        return Symbolic(formula.sympy, {"bits": self.bits.int().tolist()}, {"bits": "B"}, False)

    @property
    def name(self) -> str:
        return "table"

    @property
    def title(self) -> str:
        return "table"

    def __repr__(self) -> str:
        return f"table(<{len(self.bits)}×{len(self.bits)}>)"

    def spec(self) -> dict[str, Any]:
        packed = np.packbits(self.bits.numpy().astype(np.uint8).ravel()).tobytes()
        return {"table": base64.b64encode(packed).decode(), "shape": list(self.bits.shape)}


# --- mask_mods: functions that a pickle can name, with what they need bound to them --------------

Mod = Callable[[Index, Index, Index, Index], Any]


def _mask_mod_of_parts(
    op: str, mods: tuple[Mod, ...], b: Index, h: Index, q_idx: Index, kv_idx: Index
) -> Any:
    return _joined(op, [mod(b, h, q_idx, kv_idx) for mod in mods])


def _mask_mod_of_heads(
    mods: tuple[Mod, ...], b: Index, h: Index, q_idx: Index, kv_idx: Index
) -> Any:
    allowed = mods[0](b, h, q_idx, kv_idx) & (h == 0)
    for head, mod in enumerate(mods[1:], start=1):
        allowed = allowed | (mod(b, h, q_idx, kv_idx) & (h == head))
    return allowed


def _mask_mod_of_table(bits: Tensor, b: Index, h: Index, q_idx: Index, kv_idx: Index) -> Any:
    return bits[q_idx, kv_idx]


def _heads(pattern: Pattern) -> set[int]:
    """The numbers of heads of which a pattern is made; none if no part of it differs by head."""
    if isinstance(pattern, PerHead):
        return {len(pattern.parts)}
    return set().union(*map(_heads, pattern.parts))


def combined(op: str, *patterns: Pattern) -> Pattern:
    """All of these patterns ("and") or any of them ("or"). Raises TypeError for what is no Pattern,
    ValueError for different numbers of heads."""
    parts: list[Pattern] = []
    for pattern in patterns:
        if not isinstance(pattern, Pattern):
            raise TypeError(f"{pattern!r} is not a Pattern; make one with tfviz.patterns")
        same = isinstance(pattern, Combined) and pattern.op == op
        parts += pattern.parts if same else [pattern]
    counts = set().union(*map(_heads, patterns))
    if len(counts) > 1:
        joined = " and ".join(map(repr, patterns))
        raise ValueError(f"{joined} have {sorted(counts)} heads; join patterns of one number")
    return Combined(op, tuple(parts))


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
    if not patterns or not all(
        isinstance(p, Pattern) and not isinstance(p, PerHead) for p in patterns
    ):
        raise ValueError(f"per_head({patterns!r}): give one plain Pattern for each head")
    return PerHead(patterns)


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
    return Table(bits.clone())


def table_of_spec(spec: Mapping[str, Any]) -> Pattern:
    """The table that a spec describes. Raises ValueError that says what is wrong in it."""
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
