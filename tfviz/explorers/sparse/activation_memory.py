"""Memory for the backward pass by depth: keep everything, checkpointing, reversible layers."""

from tfviz.explorers.base import Explorer, Numbers, knob
from tfviz.sparse.reversible_residual import WAYS, activations

LENGTHS = [2**n for n in range(8, 17)]


class ActivationMemory(Explorer):
    """N pre-norm blocks of width 512 on L tokens, with four bytes per number."""

    label = "Training memory by depth: keep everything, checkpointing, reversible layers"
    rem = 35, 35, 35, 32.5, 62

    N = knob(6, low=1, high=24, label="blocks", letter="N")
    L = knob(4096, of=LENGTHS, label="length", letter="L")
    chunks = knob(1, of=[1, 2, 4, 8, 16], label="feed-forward chunks", letter="c")
    asks = "Drag the dot to fewer blocks. Which curve stays flat?"
    d = 512

    def numbers(self) -> Numbers:
        """Bytes by way, for 1 to 24 blocks."""
        return {
            way: [4 * activations(way, N, self.L, self.d, self.chunks) for N in range(1, 25)]
            for way in WAYS
        }
