"""A mask or a bias that the reader types: its keys, its cost, its reach, and its code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import torch
import traitlets as t

from tfviz import _arguments, patterns
from tfviz.explained.bring import Explained
from tfviz.explained.typed import Typed, TypedError, read_typed, words
from tfviz.explorers.base import Explorer, Numbers, handed, knob, own
from tfviz.patterns import Pattern
from tfviz.patterns.reach import Reach

FIRST = "(i >= j) & ((i - j < w) | (j % s == 0))"
FIRST_VALUES: dict[str, float] = {"w": 4, "s": 8}

EXAMPLES: list[tuple[str, str, dict[str, float]]] = [
    ("window", "(i >= j) & (i - j < w)", {"w": 4}),
    ("window and columns", FIRST, FIRST_VALUES),
    ("Big Bird, no random keys", "(abs(i - j) <= w) | (i < g) | (j < g)", {"w": 2, "g": 2}),
    ("prefix LM", "(i >= j) | (j < p)", {"p": 6}),
    ("dilated", "(abs(i - j) <= w * d) & ((i - j) % d == 0)", {"w": 2, "d": 3}),
    ("equal chunks", "(i >= j) & (i // b == j // b)", {"b": 6}),
    ("checkerboard", "(i + j) % 2 == 0", {}),
    ("ALiBi", "-2.0 ** -(h + 1) * abs(i - j)", {"h": 2}),
    ("bias in steps", "-m * min(abs(i - j) // b, n)", {"m": 0.5, "b": 3, "n": 4}),
]
"""The examples that the page offers: a name, a formula, its numbers."""

MOST_NUMBERS = 16


class YourOwnMask(Explorer):
    """A formula of i and j in Python's syntax, typed by the reader: who attends to whom, what it
    costs, how far it reaches, and the Python for it.

    formula    as `tfviz.explained.typed` reads it; a mask, or a bias that is added to the scores
    values     a number for each name in it
    """

    uses = ("shared/patterns", "shared/typed")
    label = "Your own mask: type a formula of i and j and see who attends to whom"
    rem = 50, 55.5, 54, 51.5, 125
    data = handed(
        language=words,
        first={"formula": FIRST, "values": FIRST_VALUES},
        examples=[list(one) for one in EXAMPLES],
    )

    formula = own(t.Unicode(FIRST))
    values = own(t.Dict(), optional=True)
    L = knob(24, low=8, high=64, label="length", letter="L")
    query = knob(19, low=0, high=L - 1, label="query", letter="i")
    layers = knob(2, low=1, high=8, label="layers", letter="n")
    block = knob(8, of=(4, 8, 16), label="block size")
    asks = "Now change a number, choose an example, or type a formula of your own."

    def prepare(self, said: Numbers) -> Numbers:
        typed = read_typed(said.get("formula", FIRST))
        if typed.text == FIRST:
            said.setdefault("values", dict(FIRST_VALUES))
        length = said.get("L", 24)
        typed.numbers(_arguments.integer("L", length, 8, 64), said.get("values", {}))
        return said

    def _settle(self, before: Mapping[str, Any]) -> None:
        """A formula that is assigned alone keeps the numbers of the names that it has."""
        if self.formula != before.get("formula") and self.values == before.get("values"):
            with suppress(TypedError):  # a formula that cannot be read is refused below
                self.values = {n: x for n, x in self.values.items() if n in self.typed.names}
        super()._settle(before)

    @t.validate("formula")
    def _formula(self, proposal: Any) -> str:
        return read_typed(proposal["value"]).text

    @t.validate("values")
    def _values(self, proposal: Any) -> dict[str, float]:
        given: dict[str, float] = proposal["value"]
        _arguments.integer("number of values", len(given), 0, MOST_NUMBERS)
        for name, value in given.items():
            _arguments.real(f"values[{name!r}]", value)
        return given

    @property
    def typed(self) -> Typed:
        """The formula as it was read."""
        return read_typed(self.formula)

    @property
    def taken(self) -> dict[str, float]:
        """A number for each name of the formula: that of `values` where it fits."""
        return {n: about.taken(self.values.get(n)) for n, about in self.typed.names.items()}

    @property
    def explained(self) -> Explained:
        """All faces of the formula (`tfviz.explain`). Raises TypedError where it has no value."""
        return self.typed.explain(self.L, **self.taken)

    def numbers(self) -> Numbers:
        """The mask, the bias, and what is counted on them; an empty mask, and `wrong`, where the
        formula has no value."""
        given = tuple(self.taken.items())
        try:
            pattern, reach = _of(self.formula, self.L, given)
            table = self.typed.table(self.L, **self.taken)
            wrong = 0
        except TypedError:
            pattern = patterns.table(torch.zeros(self.L, self.L, dtype=torch.bool))
            reach, table, wrong = pattern.reach(self.L), pattern.mask(self.L), 1
        mask = pattern.mask(self.L)
        cost = pattern.cost(self.L, block=self.block)
        bias = torch.zeros(0)
        if table.dtype != torch.bool:
            bias = table.masked_fill(table == -math.inf, 0.0)
        hops = reach.hops[self.query]
        return {
            "mask": mask.int(),
            "bias": bias,
            "keys": mask[self.query].nonzero().flatten(),
            "empty": (~mask.any(-1)).nonzero().flatten(),
            "ahead": mask.triu(1).sum(),
            "pairs": cost.pairs,
            "blocks": cost.blocks,
            "block_pairs": cost.block_pairs,
            "heard": ((hops >= 0) & (hops <= self.layers)).int(),
            "diameter": -1 if reach.diameter is None else reach.diameter,
            "unreachable": reach.unreachable,
            "wrong": wrong,
        }


@lru_cache(64)
def _of(formula: str, L: int, given: tuple[tuple[str, float], ...]) -> tuple[Pattern, Reach]:
    pattern = read_typed(formula).pattern(L, **dict(given))
    return pattern, pattern.reach(L)
