"""Which matrices mix the keys and the values of each head, for four ways of sharing them."""

from tfviz.compressed.linformer import SHARING, matrices
from tfviz.explorers.base import Explorer, Numbers, handed, knob

WAYS = {
    "none": "nothing is shared",
    "headwise": "headwise",
    "key-value": "key–value",
    "layerwise": "layerwise",
}


class ProjectionSharing(Explorer):
    """N layers of h heads; each head has a dot for its E and one for its F."""

    label = "Linformer: which matrices heads, keys and values, and layers share"
    rem = 43, 43, 42.5, 42.5, 69
    data = handed(ways=WAYS)

    sharing = knob("none", of=WAYS, label="sharing")
    N = knob(12, low=1, high=12, label="layers", letter="N")
    h = knob(12, low=1, high=12, label="heads", letter="h")
    asks = "Change the number of layers and of heads: which of the four counts stay the same?"

    def numbers(self) -> Numbers:
        """The number of the matrix in each cell, and how many there are in each way."""
        N, h = self.N, self.h
        of_cell = {
            "none": lambda n, c: 2 * h * n + c,
            "headwise": lambda n, c: 2 * n + c // h,
            "key-value": lambda n, c: n,
            "layerwise": lambda n, c: 0,
        }[self.sharing]
        cells = [[of_cell(n, c) for c in range(2 * h)] for n in range(N)]
        return {"cells": cells, "counts": [matrices(way, N, h) for way in SHARING]}
