"""The scene of chapter 22: what stands between two products, an L × L square or a d × d state."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.measure import flops

WIDTH = 64


class SquareAndState(Explorer):
    """One head of width 64: the same three matrices, multiplied in two orders, drawn to scale."""

    label = "Queries with keys first, or keys with values first: the matrix in between"
    scene = True
    rem = 29.5, 29.5, 29.5, 30.5, 21.5
    data = handed(d=WIDTH)

    L = knob(512, low=16, high=512, step=16, label="tokens", letter="L")

    def numbers(self) -> Numbers:
        """The numbers of the matrix in between, and the operations, in both orders."""
        Q, K, V = torch.zeros(3, self.L, WIDTH)
        return {
            "square": (Q @ K.mT).numel(),
            "state": (K.mT @ V).numel(),
            "operations": [
                flops(lambda: (Q @ K.mT) @ V),
                flops(lambda: Q @ (K.mT @ V)),
            ],
        }
