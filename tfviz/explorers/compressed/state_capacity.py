"""Pairs are written into a state one by one, until there are more of them than it has rows."""

from functools import cache

import torch
from torch import Generator, Tensor

from tfviz.compressed.rfa import directions
from tfviz.compressed.rfa_causal import fading
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

PAIRS, WIDTH, RECENT = 24, 8, 4
SIZES = [4, 8, 12]


@cache
def written() -> Numbers:
    """Keys of length 1 for each size, at right angles in blocks, and values of 1 and −1."""
    rng = Generator().manual_seed(2)
    keys = {}
    for d in SIZES:
        K = directions(PAIRS, d, True, rng)
        keys[str(d)] = [[round(x, 4) for x in k] for k in (K / K.norm(dim=1)[:, None]).tolist()]
    values = (torch.randint(2, (PAIRS, WIDTH), generator=rng) * 2 - 1).tolist()
    return {"keys": keys, "values": values}


class StateCapacity(Explorer):
    """A state of d × 8 numbers, a gate, and what each key reads.

    half    half-life of a pair, in pairs; 0 for no gate
    """

    label = "A state that fills up, pair after pair"
    rem = 42.5, 42.5, 40.5, 40, 101
    data = handed(written, sizes=SIZES, recent=RECENT)

    n = knob(4, low=1, high=PAIRS, label="pairs written", letter="p")
    d = knob(8, of=SIZES, label="numbers in a key", letter="dₕ")
    half = knob(0, of=[0, 16, 8, 4, 2], label="half-life of a pair")
    asks = "Give pairs a half-life of 4 and write more: which are read well now, and which are not?"

    def kept(self, n: int) -> Tensor:
        """What is left of each of n pairs."""
        if not self.half:
            return torch.ones(n, dtype=torch.float64)
        return fading(torch.full((n,), 0.5, dtype=torch.float64).log() / self.half)[-1]

    def filled(self, n: int) -> Tensor:
        K, V = exact(written()["keys"][str(self.d)])[:n], exact(written()["values"])[:n]
        return (self.kept(n)[:, None] * K).T @ V

    def reads(self, n: int) -> Tensor:
        """The cosine of what each of n keys reads with its value."""
        K, V = exact(written()["keys"][str(self.d)])[:n], exact(written()["values"])[:n]
        return torch.cosine_similarity(K @ self.filled(n), V, dim=-1)

    def numbers(self) -> Numbers:
        """The state, what each key reads from it, and for each number of pairs the means over all
        of them and over the RECENT last ones."""
        read = [self.reads(n) for n in range(1, PAIRS + 1)]
        return {
            "state": self.filled(self.n),
            "read": read[self.n - 1],
            "all": [float(x.mean()) for x in read],
            "last": [float(x[-RECENT:].mean()) for x in read],
        }
