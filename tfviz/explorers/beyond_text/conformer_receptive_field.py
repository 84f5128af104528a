"""What one output sees: through convolutions block by block, and through attention at once."""

import torch

from tfviz.beyond_text.conformer_block import depthwise, reach
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

PEAKS = {6: 1.2, 24: 3.0, 38: 1.2}
"""Where the peaks of the signal stand, and their standard deviations."""


def signal() -> list[float]:
    """48 samples: a narrow peak, a wide one, a narrow one, and noise."""
    at = torch.arange(48)
    noise = torch.randn(48, generator=torch.Generator().manual_seed(2))
    peaks = sum(torch.exp(-(((at - n) / width) ** 2) / 2) for n, width in PEAKS.items())
    return [round(x, 2) for x in (peaks + 0.2 * noise).tolist()]


SIGNAL = signal()
L = len(SIGNAL)


class ConformerReceptiveField(Explorer):
    """A noisy signal with three peaks; means of k samples stand for the learned convolutions."""

    label = "Conformer: what one output sees through convolutions, and through attention"
    rem = 35, 31.5, 29, 30.5, 63
    data = handed(signal=SIGNAL, peaks=list(PEAKS))

    blocks = knob(1, low=1, high=5, label="blocks", letter="N")
    k = knob(9, low=3, high=15, label="kernel size", letter="k")
    i = knob(24, low=0, high=L - 1, label="output", letter="i")
    asks = "Which kernel size removes the noise and leaves the narrow peaks high?"

    def numbers(self) -> Numbers:
        """What the convolutions make of the signal, the share of each sample in output i, and the
        first and last sample that it sees."""

        def averaged(X: torch.Tensor) -> torch.Tensor:
            taps = torch.full((X.shape[-1], self.k), 1 / self.k, dtype=torch.float64)
            for _ in range(self.blocks):
                X = depthwise(X, taps)
            return X

        first, last = reach(self.k, self.blocks)
        return {
            "made": averaged(exact(SIGNAL)[:, None])[:, 0],
            "shares": averaged(torch.eye(L, dtype=torch.float64))[self.i],
            "seen": [max(self.i + first, 0), min(self.i + last, L - 1)],
        }
