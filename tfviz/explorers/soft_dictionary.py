"""The soft dictionary live: a query in the plane of the keys, β, the weights, the blended value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz import _arguments
from tfviz.basics.soft_dictionary import lookup
from tfviz.explorers.base import Explorer

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
    min_height: ClassVar[str] = "41.5rem"
    min_height_narrow: ClassVar[str] = "81rem"
    narrow: ClassVar[int] = 640

    query = t.List(t.Float()).tag(sync=True)
    beta = t.Float(2.0).tag(sync=True)
    K = t.List(t.List(t.Float())).tag(sync=True)
    V = t.List(t.List(t.Float())).tag(sync=True)
    names = t.List(t.Unicode()).tag(sync=True)
    axes = t.List(t.Unicode()).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        query: Sequence[float],
        K: Sequence[Sequence[float]],
        V: Sequence[Sequence[float]],
        names: Sequence[str] | None = None,
        beta: float = 2.0,
        axes: Sequence[str] = ("value 0", "value 1"),
        prompt: str = "",
    ) -> None:
        table: dict[str, list[list[float]]] = {}
        for name, rows in (("K", K), ("V", V)):
            table[name] = [
                [_arguments.real(f"{name}[{j}]", x) for x in r] for j, r in enumerate(rows)
            ]
            if not 1 <= len(rows) <= 8 or any(len(r) != 2 for r in rows):
                raise ValueError(f"{name} = {rows!r}; give 1 to 8 rows of two numbers")
        names = [f"entry {j}" for j in range(len(K))] if names is None else names
        if not len(K) == len(V) == len(names):
            raise ValueError(
                f"{len(K)} keys, {len(V)} values, {len(names)} names; give as many each"
            )
        if len(axes) != 2:
            raise ValueError(f"axes = {axes!r}; give two names")
        super().__init__(
            K=table["K"], V=table["V"], names=list(names), axes=list(axes),
            query=list(query), beta=beta,
            prompt=prompt or "Predict: where does the violet answer go for β = 0, and for β = 20? "
            "Then move β, drag the query, or turn it with the arrow keys.",
        )  # fmt: skip

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

    @t.validate("beta")
    def _beta(self, proposal: Any) -> float:
        return _arguments.real("beta", proposal["value"], 0.0, MOST_BETA)

    def _lookup(self) -> tuple[Tensor, Tensor]:
        q, K, V = (torch.tensor(x, dtype=torch.float64) for x in (self.query, self.K, self.V))
        return lookup(q, K, V, beta=self.beta)

    @property
    def weights(self) -> list[float]:
        """a_j of each entry, as the library computes them."""
        return self._lookup()[1].tolist()

    @property
    def answer(self) -> list[float]:
        """z, the blended value."""
        return self._lookup()[0].tolist()

    def __repr__(self) -> str:
        return f"SoftDictionary(query={self.query}, beta={self.beta}, names={self.names})"
