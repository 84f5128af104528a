"""Which part of a block takes the operations: projections, scores or feed-forward, by length."""

from tfviz.basics.pointwise_mlp import block_flops, block_weights
from tfviz.explorers.base import Explorer, Numbers, knob

LENGTHS = [2**n for n in range(4, 19)]
WIDTHS = [16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192, 12288]
FACTORS = [1.0, 2.0, 8 / 3, 3.0, 3.5, 4.0, 6.0, 8.0]


class BlockCosts(Explorer):
    """A block of width d on L tokens; its feed-forward network is `factor` times as wide."""

    label = "Cost of a block: each part's share of the operations, by length"
    rem = 38, 38, 38, 38, 69

    L = knob(1024, of=LENGTHS, between=True, low=1, label="length", letter="L")
    d = knob(512, of=WIDTHS, between=True, low=1, label="width", letter="d")
    factor = knob(4.0, of=FACTORS, between=True, label="width of the feed-forward")
    swiglu = knob(False, label="SwiGLU: three matrices")
    asks = "Drag both dots and change the feed-forward width. What does the crossing depend on?"

    def numbers(self) -> Numbers:
        """Operations by part, the length where scores and feed-forward cost the same, and the
        feed-forward's share of the weights."""
        d_ff = int(self.factor * self.d + 1e-6)  # 8/3 is no whole number
        operations, one_token = (
            block_flops(L, self.d, d_ff, gated=self.swiglu) for L in (self.L, 1)
        )
        weights = block_weights(self.d, d_ff, gated=self.swiglu)
        parts = {"feed": operations["feed-forward"], "projections": operations["projections"]}
        share = weights["feed-forward"] / sum(weights.values())
        crossing = one_token["feed-forward"] / one_token["scores"]
        return parts | {"scores": operations["scores"], "crossing": crossing, "weights": share}
