"""A trained map, the best matrix of rank k, and what Linformer applies with mean pooling."""

from functools import cache

import torch
from torch import Tensor

from tfviz import stored
from tfviz.compressed.linformer import linformer_definition, mean_pooling
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

L = 32
RANKS = [1, 2, 4, 8, 16, 32]


@cache
def trained() -> Numbers:
    """Queries and keys of a head of each layer, from the stored experiment, and their text."""
    shown: Numbers = stored.load("trained_maps")["shown"]
    return shown


def missed(A: Tensor, other: Tensor) -> Tensor:
    return (A - other).norm() / A.norm()


class LowRankMap(Explorer):
    """Full attention of a trained head on 32 characters, and two matrices of rank k beside it."""

    label = "A trained attention map, and maps of rank k"
    rem = 44, 44, 42.5, 39.5, 104.5
    data = handed(trained, ranks=RANKS)

    k = knob(4, of=RANKS, label="rank", letter="k")
    way = knob("best", of={"best": "the best", "mean": "mean pooling"}, label="the map beside it")
    layer = knob(2, of=[1, 2], label="layer")
    asks = "Go to layer 1, whose head looks at several characters: what does rank 16 miss there?"

    def numbers(self) -> Numbers:
        """The true map, the chosen one, and what both ways miss at each of RANKS."""
        head = trained()["heads"][self.layer - 1]
        Q, K = exact(head["Q"]), exact(head["K"])
        A = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
        U, S, V = torch.linalg.svd(A)
        maps = {
            "best": {k: (U[:, :k] * S[:k]) @ V[:k] for k in RANKS},
            "mean": {
                k: linformer_definition(Q, K, K, *2 * [mean_pooling(k, L).double()])[1]
                for k in RANKS
            },
        }
        errors = {way: [missed(A, found[k]) for k in RANKS] for way, found in maps.items()}
        return {"A": A, "beside": maps[self.way][self.k], **errors}
