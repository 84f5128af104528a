"""The soft dictionary live: a query in the plane of the keys, β, the weights, the blended value."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.basics.soft_dictionary import lookup
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import given, knob, own

MOST_BETA = 20.0


class SoftDictionary(Explorer):
    """One query, n entries with keys and values of two numbers each.

    query    two numbers, at most twice as long as the longest key
    beta     inverse temperature, 0 to 20
    K, V     n rows of two numbers; names: one word for each entry
    axes     what the two numbers of a value mean

    Raises ValueError for shapes or values that do not fit.
    """

    module: ClassVar[str] = "soft_dictionary"
    label: ClassVar[str] = "Soft dictionary: a query, its weights and the value it gets"
    min_height: ClassVar[str] = "53rem"
    min_height_narrow: ClassVar[str] = "102rem"
    narrow: ClassVar[int] = 640

    query = own(t.List(t.Float()))
    K = given(t.List(t.List(t.Float())))
    V = given(t.List(t.List(t.Float())))
    names = given(t.List(t.Unicode()), optional=True)
    beta = knob(2.0, low=0.0, high=MOST_BETA, step=0.1, label="inverse temperature", letter="β")
    axes = given(t.List(t.Unicode(), ["value 0", "value 1"]), optional=True)
    asks = (
        "Predict: where does the violet answer go for β = 0, and for β = 20? Then move β, drag "
        "the query, or move it with the arrow keys."
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        for name in ("K", "V"):
            said[name] = [
                [_arguments.real(f"{name}[{j}]", x) for x in r] for j, r in enumerate(said[name])
            ]
            if not 1 <= len(said[name]) <= 8 or any(len(r) != 2 for r in said[name]):
                raise ValueError(f"{name} = {said[name]!r}; give 1 to 8 rows of two numbers")
        K, V = said["K"], said["V"]
        names = list(said.get("names", [f"entry {j}" for j in range(len(K))]))
        if not len(K) == len(V) == len(names):
            raise ValueError(
                f"{len(K)} keys, {len(V)} values, {len(names)} names; give as many each"
            )
        axes = list(said.get("axes", ["value 0", "value 1"]))
        if len(axes) != 2:
            raise ValueError(f"axes = {axes!r}; give two names")
        return said | {"names": names, "axes": axes, "query": list(said["query"])}

    @property
    def longest(self) -> float:
        """The longest query: twice the longest key (1 if all keys are zero)."""
        return 2 * (max(math.hypot(*k) for k in self.K) or 0.5)

    @t.validate("query")
    def _query(self, proposal: Any) -> list[float]:
        query = proposal["value"]
        if len(query) != 2:
            raise ValueError(f"query = {query!r}; give two numbers")
        x, y = (_arguments.real("query", c) for c in query)
        if self.K and math.hypot(x, y) > self.longest + 1e-9:
            raise ValueError(
                f"query = {query!r} has length {math.hypot(x, y):.3g}; it may be at most "
                f"{self.longest:.3g}, twice the longest key"
            )
        return [x, y]

    def numbers(self) -> dict[str, Any]:
        """Scores, weights and the blended value, as the library computes them."""
        q, K, V = (torch.tensor(x, dtype=torch.float64) for x in (self.query, self.K, self.V))
        z, a = lookup(q, K, V, beta=self.beta)
        return {"scores": (K @ q).tolist(), "weights": a.tolist(), "answer": z.tolist()}
