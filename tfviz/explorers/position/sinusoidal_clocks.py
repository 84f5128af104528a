"""A position as a row of clock hands: two places, the angles between them, and their product."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.formula import Formula
from tfviz.position.sinusoidal_pe import hand, sinusoid

PLACES = 64
SIZES = (4, 8, 16, 24)
BASES = (2.0, 10.0, 100.0, 1_000.0, 10_000.0)


class SinusoidalClocks(Explorer):
    """The hands of place i and of place i + k, for d numbers; both places stay within 0 … 63."""

    label = "Sinusoidal positions as clock hands"
    rem = 44, 44, 40.5, 38, 86
    narrow = 640
    data = handed(entry=Formula(sinusoid), hand=Formula(hand))

    place = knob(5, low=0, high=PLACES - 1, label="place", letter="i")
    step = knob(3, low=1 - PLACES, high=PLACES - 1, label="step", letter="k")
    d = knob(16, of=SIZES, label="numbers in a row", letter="d")
    base = knob(10_000.0, of=BASES, label="base of the speeds")
    asks = "Press play, drag the dot in the curve, or move i."

    def numbers(self) -> Numbers:
        """The two rows, their product, and that product over all steps; the second place stays
        within 0 … 63."""
        there = min(max(self.place + self.step, 0), PLACES - 1)
        c, m = (torch.arange(n, dtype=torch.float64) for n in (self.d, self.d // 2))
        p, q = (sinusoid(i, c, d=self.d, base=self.base).tolist() for i in (self.place, there))
        k = torch.arange(1 - PLACES, PLACES, dtype=torch.float64)[:, None]
        products = hand(k, m, d=self.d, base=self.base).sum(1).tolist()
        product = products[there - self.place + PLACES - 1]
        return {"p": p, "q": q, "product": product, "products": products}
