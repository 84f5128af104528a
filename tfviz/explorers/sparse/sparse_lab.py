"""Sparse Lab: two attention patterns side by side, as matrix and graph, over layers, with costs."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import sympy as sp
import traitlets as t
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from tfviz import _arguments, patterns
from tfviz.explorers.base import Explorer, Knob, Numbers, given, knob, own
from tfviz.formula import hash_of, javascript
from tfviz.patterns import LENGTH, Combined, Family, Leaf, Pattern, PerHead, Table
from tfviz.patterns.families import described
from tfviz.patterns.family import OWN

STACKS = {"A": ("left",), "B": ("right",), "AB": ("left", "right"), "BA": ("right", "left")}
"""What the layers use, from the lowest: A in every layer, or A and B in turn, …"""

FIRST = {"left": "Sparse Transformer, strided", "right": "Sparse Transformer, fixed"}
TWO = {"left": patterns.strided(stride=2), "right": patterns.fixed(block=2, summary=1)}
"""Patterns for every length."""

LENGTHS = (2, 4, *range(8, 33, 4), *range(40, 65, 8), *range(80, 129, 16), *range(160, 257, 32))
LENGTHS += (320, 384, 448, 512)
GOALS = {"L": int, "causal": bool, "max_hops": int, "max_keys": int, "max_pairs": int}


class PatternTrait(t.TraitType):  # type: ignore[misc, unused-ignore]
    """Holds a Pattern; travels as its spec; takes either."""

    info_text = "a tfviz Pattern or the spec of one"

    def validate(self, obj: Any, value: Any) -> Pattern:
        pattern = patterns.from_spec(value) if isinstance(value, Mapping) else value
        if not isinstance(pattern, Pattern):
            raise t.TraitError(f"{self.name} = {value!r} is not {self.info_text}")
        if has_heads(pattern):
            raise t.TraitError(
                f"{self.name} = {pattern!r} differs by head; show one head: pattern.parts[0]"
            )
        return pattern


def has_heads(pattern: Pattern) -> bool:
    return isinstance(pattern, PerHead) or any(has_heads(part) for part in pattern.parts)


def _to_json(value: Pattern, widget: Any) -> Numbers:
    return value.spec()


@dataclass(frozen=True)
class GoalReport:
    """Whether the state of a lab meets its goal, the reason in words, and what was counted."""

    met: bool
    message: str
    numbers: Numbers

    def __bool__(self) -> bool:
        return self.met


class SparseLab(Explorer):
    """Two patterns under shared sliders.

    left, right   the patterns A and B: a Pattern, or its spec
    L             length of the sequence, 2 to 512
    query, token  the row that is followed, and the token whose way to this row is shown
    causal        intersect both patterns with j ≤ i
    stack         what the layers use, from the lowest: "A", "B", "AB" (in turn) or "BA"
    layers        how many layers the reach picture shows
    view          "matrix" or "graph"
    block, d      block size of the cost by blocks; width of a head
    panels        which of "depth" and "cost" stand beside the matrices
    panel         the one that is shown at first, if there are both
    goal          None or a dict of some of L, causal, max_hops, max_keys, max_pairs
    ask           None, or what the reader is asked before it is shown, and for which stack:
                  {"hops": "B"}, from the token to the query, or {"diameter": "B"}, of all pairs

    Raises ValueError or TraitError for a value out of range, with the range.
    """

    uses = (
        "shared/patterns",
        "sparse/lab/layers",
        "sparse/lab/words",
        "sparse/lab/editor",
        "sparse/lab/graph",
        "sparse/lab/card",
        "sparse/lab/depth",
        "sparse/lab/cost",
    )
    label = "Sparse Lab: two attention patterns compared"
    examples: ClassVar[Mapping[str, Numbers]] = {
        "layers": TWO,
        "cost": {**TWO, "panel": "cost"},
        "asked": {
            "left": patterns.sliding_window(lookback=1),
            "right": patterns.column(stride=2),
            "layers": 3,
            "ask": {"hops": "A"},
        },
    }

    left = own(PatternTrait().tag(to_json=_to_json), optional=True)
    right = own(PatternTrait().tag(to_json=_to_json), optional=True)
    L = own(Knob(64, of=LENGTHS, between=True, label="length", letter="L"), optional=True)
    query = own(Knob(0, low=0, high=L - 1, label="query", letter="i"), optional=True)
    token = knob(0, low=0, high=L - 1, label="token", letter="j")
    causal = knob(False, label="causal: only j ≤ i")
    stack = knob("A", of={"A": "A", "B": "B", "AB": "A, B, …", "BA": "B, A, …"}, label="layers use")
    layers = knob(2, low=1, high=64, label="layers")
    view = knob("matrix", of=("matrix", "graph"), label="picture")
    side = knob("left", of={"left": "pattern A", "right": "pattern B"}, label="show")
    panel = knob("depth", of={"depth": "over layers", "cost": "cost"}, label="beside them")
    block = knob(16, of=[2**n for n in range(10)], between=True, label="block size")
    d = given(Knob(64, low=1, high=4096))
    panels = given(t.List(t.Enum(["depth", "cost"]), ["depth", "cost"]), optional=True)
    goal = given(t.Dict(default_value=None, allow_none=True), optional=True)
    ask = given(t.Dict(default_value=None, allow_none=True), optional=True)

    _with: Any = None  # families in the module that the page has, once it has one

    def prepare(self, said: Numbers) -> Numbers:
        for side, preset in FIRST.items():
            pattern = said.get(side, patterns.PRESETS[preset])
            said[side] = patterns.from_spec(pattern) if isinstance(pattern, Mapping) else pattern
        self._own_families = {n: x for side in FIRST for n, x in _brought(said[side]).items()}
        known = next((n for side in FIRST if (n := _table_length(said[side]))), 64)
        L = said["L"] = _arguments.integer("L", said.get("L", known), 2, 512)
        return {"query": L * 2 // 3} | said

    @t.default("prompt")
    def _first_prompt(self) -> str:
        return (
            f"After how many layers of A does query {self.query} hear of token 0? "
            "Step through the layers, then let A and B take turns."
        )

    # --- checks that need several traits: traitlets runs them when all are set ---

    @t.validate("left", "right")
    def _fits(self, proposal: Any) -> Pattern:
        proposal["value"].check_length(self.L)
        return proposal["value"]

    @t.observe("left", "right")
    def _brought(self, change: Any) -> None:
        """A formula from outside comes along when it is assigned, too."""
        if self._begun and self._own_families != self._with:
            self._with, self._esm = self._own_families, self._with_brought()

    @t.validate("L")
    def _length(self, proposal: Any) -> int:
        L: int = proposal["value"]
        for side in ("left", "right"):
            if isinstance(getattr(self, side), Pattern):
                getattr(self, side).check_length(L)
        return L

    @t.validate("goal")
    def _known_goal(self, proposal: Any) -> Numbers | None:
        goal = proposal["value"]
        for name, value in (goal or {}).items():
            if name not in GOALS or type(value) is not GOALS[name]:
                kinds = ", ".join(f"{n}: {kind.__name__}" for n, kind in GOALS.items())
                raise ValueError(f"goal {name} = {value!r} is not known; a goal has {kinds}")
        return goal

    @t.validate("ask")
    def _known_question(self, proposal: Any) -> Numbers | None:
        asked = proposal["value"]
        known = {(what, stack) for what in ("hops", "diameter") for stack in STACKS}
        if asked and (len(asked) > 1 or not known.issuperset(asked.items())):
            raise ValueError(
                f'ask = {asked!r}; ask {{"hops": s}} or {{"diameter": s}}, s of {", ".join(STACKS)}'
            )
        return asked or None

    # --- the state, read back ---

    def shown(self, side: str = "left") -> Pattern:
        """The pattern of one side as the lab shows it: with the causal switch."""
        pattern: Pattern = getattr(self, side)
        return pattern & patterns.causal() if self.causal else pattern

    @property
    def pattern(self) -> Pattern:
        """Pattern A as shown."""
        return self.shown("left")

    @property
    def stacked(self) -> list[Pattern]:
        """The patterns that the layers use in turn, from the lowest layer."""
        return [self.shown(side) for side in STACKS[self.stack]]

    def goal_report(self) -> GoalReport:
        """Does the stack of patterns meet the goal? Counted by the library, not by the browser.

        Raises ValueError if the lab has no goal.
        """
        if not self.goal:
            raise ValueError("goal = None; give the lab a goal, e.g. goal={'max_hops': 2}")
        goal, L = self.goal, self.L
        masks = [p.mask(L) for p in self.stacked]
        reach = patterns.reach(self.stacked, L)
        ahead = [pair for m in masks for pair in m.triu(1).nonzero().tolist()]
        keys, row = max((int(m.sum(1).max()), -int(m.sum(1).argmax())) for m in masks)
        numbers = {
            "L": L,
            "causal": not ahead,
            "keys": keys,
            "pairs": max(int(m.sum()) for m in masks),
            "unreachable": reach.unreachable,
            "hops": reach.diameter,
        }
        why = []
        if goal.get("L", L) != L:
            why.append(f"L is {L}, but the goal is for L = {goal['L']}")
        if goal.get("causal") and ahead:
            why.append(f"query {ahead[0][0]} sees token {ahead[0][1]}, which is in its future")
        if keys > goal.get("max_keys", L):
            why.append(f"query {-row} has {keys} keys ({goal['max_keys']} are allowed)")
        if numbers["pairs"] > goal.get("max_pairs", L * L):
            why.append(f"{numbers['pairs']} pairs are used ({goal['max_pairs']} are allowed)")
        if "max_hops" in goal and reach.unreachable:
            i, j = (reach.wanted & (reach.hops < 0)).nonzero()[0].tolist()
            what = "pair is" if reach.unreachable == 1 else "pairs are"
            why.append(f"{reach.unreachable} {what} never connected (first: query {i}, token {j})")
        elif "max_hops" in goal and int(reach.hops.max()) > goal["max_hops"]:
            far = int(reach.hops.max())
            i, j = (reach.hops == far).nonzero()[0].tolist()
            why.append(f"query {i} needs {far} hops to token {j} ({goal['max_hops']} are allowed)")
        message = f"Goal not met: {'; '.join(why)}." if why else "Goal met."
        return GoalReport(not why, message, numbers)

    def numbers(self) -> Numbers:
        """What is counted for A and B, and for the query over the layers; a diameter of -1 is
        that of a graph that is not connected."""
        L, row = self.L, self.query
        both = [self.shown(side) for side in FIRST]
        costs = [p.cost(L, d=self.d, h=1, block=self.block) for p in both]
        reach = patterns.reach(self.stacked, L)
        after = patterns.reach(self.stacked, L, self.layers).by_layer[-1]
        return {
            "keys": [int(p.mask(L)[row].sum()) for p in both],
            "pairs": [c.pairs for c in costs],
            "blocks": [c.blocks for c in costs],
            "block_pairs": [c.block_pairs for c in costs],
            "hops": reach.hops[row],
            "diameter": -1 if reach.diameter is None else reach.diameter,
            "unreachable": reach.unreachable,
            "heard": after[row].int(),
            "influence": patterns.influence(self.stacked, L, self.layers)[row],
        }

    # --- for the page ---

    def heights(self) -> dict[int, float]:
        """Measured in the browser (tests/browser looks that nothing moves): what stands above the
        pictures, and the lines of controls, which depend on the patterns."""
        left, right = _control_lines(self.left), _control_lines(self.right)
        most, one = max(left, right), right if self.side == "right" else left
        tabs = 37 * (len(self.panels) == 2)

        def above(asked: float, letters: int, goal: float) -> float:
            lines = math.ceil(len(self.prompt) / letters)
            return asked if self.ask else goal if self.goal else 14 + 21 * lines

        def cards(picture: float) -> float:  # the pictures give way to long lists of controls
            return 128 + min(picture, max(148, 278 - 28 * (most - 3))) + 29 * (most + 1)

        def beside(high: float) -> float:
            return (high + tabs) * bool(self.panels)

        screen = 712  # pixels: the kit makes pictures smaller until all is seen at once
        pixels = {
            0: min(screen, 131 + above(97, 130, 35) + max(cards(278), beside(535))),
            1010: min(screen, 147 + above(125, 120, 35) + max(cards(244), beside(520))),
            814: 148 + above(150, 90, 56) + cards(278) + beside(205),
            674: 900 + above(145, 70, 77) + 50 * one + beside(535),
            450: 943 + above(145, 43, 98) + 50 * one + beside(530 + 0.4 * tabs),
            340: 937 + above(310, 33, 120) + 50 * one + beside(550 + 0.4 * tabs),
        }
        return {width: math.ceil(high / 8) / 2 for width, high in pixels.items()}

    @t.default("_esm")
    def _with_brought(self) -> str:
        """In a kernel a formula from outside comes with the explorer that shows it."""
        brought = self._with = self._own_families
        added = f"\nObject.assign(FAMILIES, {json.dumps(brought)});" if brought else ""
        return f"{self._default_esm()}{added}"

    @classmethod
    def data(cls) -> Numbers:
        return _catalogue(tuple(patterns.FAMILIES))


@cache
def _catalogue(families: tuple[str, ...]) -> Numbers:
    """The library's catalogue, with what the browser computes by. The names are there so that a
    new family is noticed."""
    catalogue = patterns.browser_catalogue()
    for name in families:
        catalogue["families"][name] |= _computed(patterns.FAMILIES[name])
    return catalogue


def _computed(family: Family) -> Numbers:
    """The formula of a family as Python source and as JavaScript, and each bound that depends on
    other values as JavaScript."""
    entry: Numbers = described(family)
    entry["python"] = python(family.formula.sympy)
    counted = {
        symbol: sp.Symbol(symbol.name, integer=True, nonnegative=True)
        for symbol in family.formula.sympy.free_symbols
        if symbol.name in family.domains and not symbol.is_positive
        if not family.domains[symbol.name].is_list and family.domains[symbol.name].low >= 0
    }
    entry["rows"] = by_rows(_spelled(family.formula.sympy, counted), entry["args"])
    for parameter, domain in family.domains.items():
        if domain.high is not None:
            names = [n for n in family.formula.parameters if n != LENGTH] + [LENGTH]
            values = {n: sp.Symbol(n, integer=True) for n in names}
            high = sp.sympify(domain.high(values))
            entry["params"][parameter]["high"] = javascript(high, names)
    return entry


def _brought(pattern: Any) -> dict[str, Numbers]:
    """The families of a pattern that were brought from outside, as the browser wants them."""
    if isinstance(pattern, Leaf):
        own = pattern.name in OWN  # a family of the library is in every lab
        return {pattern.name: {**_computed(pattern.family), "own": True}} if own else {}
    parts = getattr(pattern, "parts", ())  # none where it is no pattern: its trait says so
    return {name: x for part in parts for name, x in _brought(part).items()}


class _FloorDivision(sp.Function):  # type: ignore[misc, unused-ignore]
    """⌊a/b⌋ in one piece: its halves must not be shared, i·(1/b) is not i/b in floating point."""

    is_integer = True

    def _eval_is_nonnegative(self) -> bool | None:
        return all(a.is_nonnegative for a in self.args) or None

    def _javascript(self, printer: Any) -> str:
        return f"Math.floor(({printer._print(self.args[0])})/({printer._print(self.args[1])}))"


class _Remainder(sp.Function):  # type: ignore[misc, unused-ignore]
    """a mod b where a is known not to be negative. JavaScript's % takes thrice as long as a
    division where a is beyond 32 bits; this is exact, as a is below 2⁵³."""

    is_integer = True
    is_nonnegative = True

    def _javascript(self, printer: Any) -> str:
        a, b = map(printer._print, self.args)
        return f"((a, b) => a - b * Math.floor(a / b))({a}, {b})"


class _Hashed(sp.Function):  # type: ignore[misc, unused-ignore]
    """The library's hash; neighbours in a row often ask for the same number again."""

    is_integer = True
    is_nonnegative = True

    def _javascript(self, printer: Any) -> str:
        return f"hash({', '.join(map(printer._print, self.args))})"


def _with_hash(function: str) -> str:
    """The function, and before it the hash, which keeps what it was asked for last."""
    terms = sp.symbols("a b c", integer=True, nonnegative=True)
    made = _body(_spelled(hash_of(*terms), {}))
    new = f"if (a !== x || b !== y || c !== z) {{ x = a; y = b; z = c; made = {made}; }}"
    kept = f"const hash = (a, b, c = 0) => {{ {new} return made; }};"
    return f"(() => {{ let x, y, z, made; {kept} return {function}; }})()"


def _spelled(e: Any, known: dict[Any, Any]) -> Any:
    """The formula with what is `known` of its symbols, and the
    cheaper ⌊a/b⌋ and a mod b. In one walk: SymPy thinks long about each remainder that is made."""
    if not e.args or isinstance(e, sp.IndexedBase | _FloorDivision | _Remainder):
        return known.get(e, e)
    parts = [_spelled(part, known) for part in e.args]
    if hasattr(e, "_javascript"):
        return _Hashed(*parts)
    if isinstance(e, sp.floor):
        return _FloorDivision(*parts[0].as_numer_denom())
    if isinstance(e, sp.Mod) and parts[0].is_nonnegative:
        return _Remainder(*parts)
    return e if all(map(operator.is_, parts, e.args)) else e.func(*parts)


def by_rows(expression: Any, arguments: list[str]) -> str:
    """The formula as JavaScript that fills a matrix fast: (i, …) => [what its row is made of, j =>
    condition]. What does not depend on j is computed once in each row, what several parts share
    once in each cell, and rows that are made of the same are alike."""
    of_row: dict[Any, Any] = {}

    def lift(e: Any) -> Any:
        if not e.args or isinstance(e, sp.IndexedBase):
            return e
        if any(symbol.name == "j" for symbol in e.free_symbols):
            return e.func(*map(lift, e.args))
        return of_row.setdefault(e, sp.Symbol(f"row{len(of_row)}"))

    cell = lift(expression)
    names = sp.numbered_symbols("x")
    shared_row, rows = sp.cse(list(of_row), symbols=names)
    shared_cell, (condition,) = sp.cse([cell], symbols=names)
    before = [*shared_row, *zip(of_row.values(), rows, strict=True)]
    outer, inner = (
        "".join(f"const {name} = {_body(value)}; " for name, value in lines)
        for lines in (before, shared_cell)
    )
    given = ", ".join(a for a in arguments if a != "j")
    used = {s.name for e in (condition, *(e for _, e in shared_cell)) for s in e.free_symbols}
    made_of = ", ".join(sorted(n for n in used if n == "i" or n.startswith("row")))
    cells = f"(j) => {{ {inner}return {_body(condition)}; }}"
    function = f"({given}) => {{ {outer}return [[{made_of}], {cells}]; }}"
    return _with_hash(function) if expression.has(_Hashed) else function


def _body(expression: Any) -> str:
    return javascript(expression, []).removeprefix("() => ")


def _control_lines(pattern: Pattern, inside: int = 0) -> int:
    """How many lines the controls of a pattern take: its sliders, and the menus of its terms."""
    if isinstance(pattern, Combined) and pattern.op == "not":
        return 1 + _control_lines(pattern.parts[0])
    if isinstance(pattern, Combined):
        return sum(_control_lines(part, 1) for part in pattern.parts) + inside
    values = pattern.values.values() if isinstance(pattern, Leaf) else ()
    return sum(4 if isinstance(v, tuple) else 1 for v in values) + inside


def _table_length(pattern: Any) -> int | None:
    if isinstance(pattern, Table):
        return len(pattern.bits)
    parts = getattr(pattern, "parts", ())
    return next((n for part in parts if (n := _table_length(part))), None)


class _Python(StrPrinter):
    """A Boolean SymPy expression as Python that also works on tensors: & | ~ // %."""

    def _side(self, expr: Any) -> str:  # of // and %
        return str(self.parenthesize(expr, PRECEDENCE["Pow"]))

    def _print_And(self, expr: Any) -> str:
        return " & ".join(f"({self._print(a)})" for a in sorted(expr.args, key=sp.default_sort_key))

    def _print_Or(self, expr: Any) -> str:
        return " | ".join(f"({self._print(a)})" for a in sorted(expr.args, key=sp.default_sort_key))

    def _print_Not(self, expr: Any) -> str:
        return f"~({self._print(expr.args[0])})"

    def _print_Relational(self, expr: Any) -> str:
        return f"{self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)}"

    def _print_Mod(self, expr: Any) -> str:
        return f"({self._side(expr.args[0])} % {self._side(expr.args[1])})"

    def _print_floor(self, expr: Any) -> str:
        over, under = expr.args[0].as_numer_denom()
        return f"({self._side(over)} // {self._side(under)})"

    def _print_Abs(self, expr: Any) -> str:
        return f"abs({self._print(expr.args[0])})"

    def _print_BooleanTrue(self, expr: Any) -> str:
        return "(i >= 0) & (j >= 0)"


def python(expression: Any) -> str:
    """The formula as Python source over i, j and its parameters, to paste as a mask_mod."""
    text = _Python().doprint(expression)
    return re.sub(r"(\w+)\.length", r"len(\1)", re.sub(r"\bhash\(", "hash_of(", text))
