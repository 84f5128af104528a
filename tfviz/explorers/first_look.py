"""A first look at one pattern: who a token may look at, as a formula, a matrix and a number."""

from __future__ import annotations

from typing import Any, ClassVar

from tfviz import patterns as P
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

L = 64


class FirstLook(Explorer):
    """Strided attention of the Sparse Transformer on 64 tokens.

    stride   1 to 64;  query   the token that looks, 0 to 63

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "first_look"
    label: ClassVar[str] = "Strided attention: which tokens a token looks at"
    min_height: ClassVar[str] = "45.5rem"
    min_height_narrow: ClassVar[str] = "83rem"

    stride = knob(8, low=1, high=L, label="stride", letter="s")
    query = knob(42, low=0, high=L - 1, label="the token that looks", letter="i")
    asks = "Drag the edge of the window, or press on a row."

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"strided": P.FAMILIES["strided"].formula.javascript()}

    def numbers(self) -> dict[str, Any]:
        """Who token i looks at, and how many pairs each stride makes."""
        masks = [P.strided(stride=stride).mask(L) for stride in range(1, L + 1)]
        keys = masks[self.stride - 1][self.query].nonzero().flatten()
        return {"keys": keys.tolist(), "pairs": [int(mask.sum()) for mask in masks]}
