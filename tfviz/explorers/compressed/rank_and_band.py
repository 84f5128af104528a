"""Trained maps taken apart into a matrix of low rank and a band: what both together miss."""

from functools import cache

import torch
from torch import Tensor

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

RANKS = [0, 1, 2, 4]
DIAGONALS = [0, 1, 3, 5, 9]
HEADS = {"near": "at its neighbour", "far": "wider"}


@cache
def trained() -> Numbers:
    """The maps of two heads, from the stored experiment, and the factors of their fits."""
    shown: Numbers = stored.load("band_fit")["shown"]
    return shown


class RankAndBand(Explorer):
    """A trained map of 24 characters, and the sum of a band and a matrix of rank r beside it."""

    label = "Low rank + band: which of the two does a map need?"
    rem = 44, 44, 43.5, 36.5, 97
    data = handed(trained, ranks=RANKS, diagonals=DIAGONALS)

    rank = knob(4, of=RANKS, label="rank", letter="r")
    diagonals = knob(0, of=DIAGONALS, label="diagonals in the band")
    head = knob("near", of=HEADS, label="the head looks")
    asks = "Choose the head that looks wider: does it need both a band and a matrix of low rank?"

    def numbers(self) -> Numbers:
        """The true map, what is fitted, and the share missed by rank (rows) and diagonals."""
        head = trained()["heads"][[*HEADS].index(self.head)]
        A = exact(head["A"])
        i = torch.arange(len(A))
        distance = (i[:, None] - i).abs()

        def fitted(r: int, diagonals: int) -> Tensor:
            R = torch.zeros_like(A)
            if r:
                factors = head["fits"][str(r)][DIAGONALS.index(diagonals)]
                R = exact(factors["left"]) @ exact(factors["right"])
            return torch.where(2 * distance < diagonals, A, R)

        missed = [[(fitted(r, n) - A).norm() / A.norm() for n in DIAGONALS] for r in RANKS]
        return {
            "A": A,
            "fit": fitted(self.rank, self.diagonals),
            "missed": torch.tensor(missed, dtype=A.dtype),
        }
