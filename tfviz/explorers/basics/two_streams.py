"""The scene of chapter 3: what becomes of a token's own signal on its way through twelve blocks."""

from functools import partial

from torch import Tensor

from tfviz.basics.layer_norm_pre_post import post_norm, pre_norm, rms_norm
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

BLOCKS = 12


class TwoStreams(Explorer):
    """The row of a token on its way through 12 blocks, normalised before each block or after it.
    Made up: a block adds `gain` times the size of what it reads, in a direction of its own."""

    label = (
        "A token's signal flows through twelve blocks: normalised before each block, and after it"
    )
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(blocks=BLOCKS)

    gain = knob(0.6, low=0.1, high=1.0, step=0.05, label="how much a block adds")

    def numbers(self) -> Numbers:
        """Of the stream before block 1, after it, after block 2, …: the size (root mean square),
        and the share of its square that is the token's own; for both orders."""
        axes = exact([[float(n == c) for c in range(BLOCKS + 1)] for n in range(BLOCKS + 1)])
        axes = axes * len(axes) ** 0.5  # of size 1
        found: Numbers = {}
        for name, order in (("pre", pre_norm), ("post", post_norm)):
            states = [axes[0]]
            for axis in axes[1:]:
                adds = partial(self._adds, axis)
                states.append(order(states[-1], adds, partial(rms_norm, eps=0.0)))
            found[f"{name}_size"] = [x.square().mean().sqrt() for x in states]
            found[f"{name}_own"] = [x[0] ** 2 / x.square().sum() for x in states]
        return found

    def _adds(self, axis: Tensor, X: Tensor) -> Tensor:
        return self.gain * X.square().mean().sqrt() * axis
