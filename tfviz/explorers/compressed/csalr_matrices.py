"""CSALR on a trained map: the identity in the middle, and the S that keeps rows whole."""

from functools import cache

import torch

from tfviz import stored
from tfviz.compressed.csalr import csalr_definition
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

COUNTS = [2, 4, 8, 16, 32]
WAYS = {"without": "without S", "with": "with S"}


@cache
def trained() -> Numbers:
    """Queries and keys of a head of each layer, from the stored experiment, and their text."""
    shown: Numbers = stored.load("trained_maps")["shown"]
    return shown


class CsalrMatrices(Explorer):
    """Full attention of a trained head on 32 characters, and CSALR with m landmarks."""

    label = "CSALR: what its rows sum to, with and without S"
    rem = 44, 42, 40, 37.5, 108.5
    data = handed(trained, counts=COUNTS)

    way = knob("with", of=WAYS, label="the left matrix")
    m = knob(8, of=COUNTS, label="landmarks", letter="m")
    layer = knob(1, of=[1, 2], label="layer")
    asks = "Put S back, and go to m = 32. What happens to the error?"

    def numbers(self) -> Numbers:
        """The true map, that of CSALR, its row sums, and both ways' errors at each of COUNTS."""
        head = trained()["heads"][self.layer - 1]
        Q, K = exact(head["Q"]), exact(head["K"])
        scale = Q.shape[-1] ** -0.5
        A = (scale * Q @ K.mT).softmax(-1)
        maps = {
            way: [csalr_definition(Q, K, K, m, way == "with", scale)[1] for m in COUNTS]
            for way in WAYS
        }
        chosen = maps[self.way][COUNTS.index(self.m)]
        errors = {
            way: torch.stack([(B - A).norm() / A.norm() for B in all_m])
            for way, all_m in maps.items()
        }
        return {"A": A, "map": chosen, "sums": chosen.sum(-1), **errors}
