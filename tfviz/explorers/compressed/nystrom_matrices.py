"""A trained map, and the three thin matrices that Nyström attention puts in its place."""

from functools import cache

import torch

from tfviz import stored
from tfviz.compressed.nystromformer import iterated_inverse, landmarks
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

COUNTS = [2, 4, 8, 16]
LAST = 20


@cache
def trained() -> Numbers:
    """Queries and keys of a head of each layer, from the stored experiment, and their text."""
    shown: Numbers = stored.load("trained_maps")["shown"]
    return shown


class NystromMatrices(Explorer):
    """Full attention of a trained head on 32 characters, and Nyström attention with m landmarks."""

    label = "Nyström attention: three thin matrices in place of a map"
    rem = 44, 44, 44, 41.5, 107
    data = handed(trained, counts=COUNTS, last=LAST)

    m = knob(16, of=COUNTS, label="landmarks", letter="m")
    steps = knob(6, low=0, high=LAST, label="steps of the iteration")
    layer = knob(1, of=[1, 2], label="layer")
    asks = "Try m = 4, then layer 2, whose head looks at the next character. Do steps help there?"

    def numbers(self) -> Numbers:
        """The true map, the three matrices, their product, and its error after each step."""
        head = trained()["heads"][self.layer - 1]
        Q, K = exact(head["Q"]), exact(head["K"])
        Q_m, K_m = landmarks(Q, self.m), landmarks(K, self.m)
        pairs = ((Q, K), (Q, K_m), (Q_m, K_m), (Q_m, K))
        A, left, M, right = ((a @ b.mT / Q.shape[-1] ** 0.5).softmax(-1) for a, b in pairs)
        inverses = [iterated_inverse(M, n) for n in range(LAST + 1)]
        products = torch.stack([left @ Z @ right for Z in inverses])
        return {
            "A": A,
            "left": left,
            "middle": inverses[self.steps],
            "right": right,
            "product": products[self.steps],
            "missed": (products - A).flatten(1).norm(dim=1) / A.norm(),
            "negative": (products[self.steps] < 0).double().mean(),
        }
