"""The Universal Transformer's signal of position and step, and which others have the same code."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.formula import Formula
from tfviz.position.sinusoidal_pe import sinusoid

PLACES, STEPS = 12, 12


class TimePositionSignal(Explorer):
    """P^k of twelve places at step k, and how far every code lies from that of place i.

    base    10000 is the paper's; the code of the places always has it
    """

    label = "A signal of position and step"
    rem = 37, 37, 31.5, 29.5, 87.5
    data = handed(entry=Formula(sinusoid), places=PLACES, steps=STEPS)

    t = knob(1, low=1, high=STEPS, label="step", letter="k")
    i = knob(3, low=0, high=PLACES - 1, label="place", letter="i")
    d = knob(16, of=[8, 16, 32], label="numbers in a code", letter="d")
    base = knob(10_000.0, of=[10_000.0, 1_000.0, 100.0, 20.0], label="base of the step's code")
    asks = "Press play: which columns change fast from step to step, and which hardly change?"

    def numbers(self) -> Numbers:
        """The code of each place at step k, and ‖P^k_i − P^k'_i'‖ for each (i', k')."""
        c, places = (torch.arange(n, dtype=torch.float64) for n in (self.d, PLACES))
        steps = torch.arange(1, STEPS + 1, dtype=torch.float64)
        p = sinusoid(places[:, None], c, d=self.d)
        s = sinusoid(steps[:, None], c, d=self.d, base=self.base)
        codes = p[:, None] + s  # (i', k', c)
        mine = codes[self.i, self.t - 1]
        return {"codes": codes[:, self.t - 1], "far": (codes - mine).norm(dim=-1)}
