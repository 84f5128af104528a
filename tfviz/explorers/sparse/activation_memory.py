"""Memory for the backward pass by depth: keep everything, checkpointing, reversible layers."""

from tfviz.explorers.base import Explorer, Numbers, knob
from tfviz.sparse.reversible_residual import WAYS, activations

LENGTHS = [2**n for n in range(8, 17)]


class ActivationMemory(Explorer):
    """N pre-norm blocks of width 512 on L tokens, with four bytes per number."""

    label = "Training memory by depth: keep everything, checkpointing, reversible layers"
    rem = 46.5, 48, 48, 45.5, 67

    N = knob(6, low=1, high=24, label="blocks", letter="N")
    L = knob(4096, of=LENGTHS, label="length", letter="L")
    chunks = knob(1, of=[1, 2, 4, 8, 16], label="feed-forward chunks", letter="c")
    asks = "Drag the dot to fewer blocks. Which curve stays flat?"
    d = 512

    def heights(self) -> dict[int, float]:
        """On a phone the page leaves less width than the phone has, and lines break once more."""
        return super().heights() | {356: 69}

    def numbers(self) -> Numbers:
        """Bytes by way, for 1 to 24 blocks."""
        return {
            way: [4 * activations(way, N, self.L, self.d, self.chunks) for N in range(1, 25)]
            for way in WAYS
        }
