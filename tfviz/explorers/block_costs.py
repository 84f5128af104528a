"""Where the operations of a block go: projections, scores and feed-forward over the length."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets as t

from tfviz import _arguments
from tfviz.basics.pointwise_mlp import block_flops, block_weights
from tfviz.explorers.base import Explorer

LENGTHS = [2**n for n in range(4, 18)]
WIDTHS = [16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192, 12288]
FACTORS = [1, 2, 3, 4, 6, 8]


class BlockCosts(Explorer):
    """A block of width d on L tokens, its feed-forward `factor` times as wide.

    L, d      at least 1, at most 131072 and 12288
    factor    d_ff/d, 1 to 8

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "block_costs"
    label: ClassVar[str] = "Cost of a block: shares of its operations over the length"
    min_height: ClassVar[str] = "36.5rem"
    min_height_narrow: ClassVar[str] = "54.5rem"
    narrow: ClassVar[int] = 676

    L = t.Int(1024).tag(sync=True)
    d = t.Int(512).tag(sync=True)
    factor = t.Int(4).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(self, L: int = 1024, d: int = 512, factor: int = 4, prompt: str = "") -> None:
        super().__init__(
            L=L, d=d, factor=factor,
            prompt=prompt or "Predict from which length on the scores cost more than the "
            "feed-forward. Then move L, d and the factor: what does the crossing depend on?",
        )  # fmt: skip

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"lengths": LENGTHS, "widths": WIDTHS, "factors": FACTORS}

    @t.validate("L")
    def _length(self, proposal: Any) -> int:
        return _arguments.integer("L", proposal["value"], 1, LENGTHS[-1])

    @t.validate("d")
    def _width(self, proposal: Any) -> int:
        return _arguments.integer("d", proposal["value"], 1, WIDTHS[-1])

    @t.validate("factor")
    def _factor(self, proposal: Any) -> int:
        return _arguments.integer("factor", proposal["value"], FACTORS[0], FACTORS[-1])

    @property
    def flops(self) -> dict[str, int]:
        """Operations by part, as the library counts them."""
        return block_flops(self.L, self.d, self.factor * self.d)

    @property
    def weights(self) -> dict[str, int]:
        """Numbers in the matrices, by part."""
        return block_weights(self.d, self.factor * self.d)

    def __repr__(self) -> str:
        return f"BlockCosts(L={self.L}, d={self.d}, factor={self.factor})"
