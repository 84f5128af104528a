"""The soft dictionary live: a query in the plane of the keys, β, the weights, the blended value."""

import math
from typing import Any

import traitlets as t

from tfviz import _arguments
from tfviz.basics.soft_dictionary import lookup
from tfviz.explorers.base import Explorer, Numbers, exact, given, knob, own, table

EXAMPLES: dict[str, Numbers] = {
    "": {
        "query": [0.8, 0.6],
        "K": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]],
        "V": [[0.9, 0.35], [0.7, 0.9], [0.25, 0.55], [0.1, 0.2]],
        "names": ["east", "north", "west", "south"],
    }
}


class SoftDictionary(Explorer):
    """One query, n entries with keys and values of two numbers each.

    query    two numbers, at most twice as long as the longest key
    axes     what the two numbers of a value mean
    """

    label = "Soft dictionary: a query, its weights and the value it gets"
    rem = 36, 36, 38.5, 35, 91
    narrow = 640

    query = own(t.List(t.Float()))
    K, V = (given(t.List(t.List(t.Float()))) for _ in "KV")
    names = given(t.List(t.Unicode()), optional=True)
    beta = knob(2.0, low=0.0, high=20.0, step=0.1, label="inverse temperature", letter="β")
    axes = given(t.List(t.Unicode(), ["value 0", "value 1"]), optional=True)
    examples = EXAMPLES
    asks = "Drag the query to another key and raise β: how near does z come to that key's value?"

    def prepare(self, said: Numbers) -> Numbers:
        K, V = (table(name, said[name], range(1, 9), 2) for name in "KV")
        names = list(said.get("names", [f"entry {j}" for j in range(len(K))]))
        if not len(K) == len(V) == len(names):
            raise ValueError(
                f"{len(K)} keys, {len(V)} values, {len(names)} names; give as many of each"
            )
        axes = list(said.get("axes", ["value 0", "value 1"]))
        if len(axes) != 2:
            raise ValueError(f"axes = {axes!r}; give two names")
        return said | {"K": K, "V": V, "names": names, "axes": axes, "query": list(said["query"])}

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

    def numbers(self) -> Numbers:
        """Scores, weights and the blended value, as the library computes them."""
        q, K, V = map(exact, (self.query, self.K, self.V))
        z, a = lookup(q, K, V, beta=self.beta)
        return {"scores": K @ q, "weights": a, "answer": z}
