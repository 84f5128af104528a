"""A gate for one number: what it passes of x, what it lets in of y, and what many gates leave."""

import torch

from tfviz.beyond_text.gtrxl import GATES
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

DEPTH = 24
NAMES = {"gru": "GRU", "highway": "highway", "output": "output", "sigtanh": "SigTanh"}
NAMES |= {"input": "input (no b)"}


class ResidualGates(Explorer):
    """Before training: all matrices inside sigmoids are 0, those inside a tanh are 1."""

    label = "Gates: how much of x is left after one gate, and after many"
    rem = 40, 40, 41, 42, 80.5
    data = handed(depth=DEPTH)

    gate = knob("gru", of=NAMES, label="gate")
    b = knob(2.0, low=-1, high=6, step=0.5, label="bias", letter="b")
    n = knob(2, low=0, high=DEPTH, label="gates passed", letter="k")
    x = knob(2.0, low=-3, high=3, step=0.5, label="stream", letter="x")
    y = knob(1.0, low=0, high=3, step=0.5, label="answer of the sublayer", letter="y")
    asks = "Raise b: from which value on does half of x survive 24 gates? Then try the other gates."

    def joined(self, x: float, y: float) -> torch.Tensor:
        """What the gate makes of two numbers."""
        kind = GATES[self.gate]
        weights = {name: torch.zeros(*many, 1, 1).double() for name, many in kind.matrices.items()}
        if self.gate == "gru":
            weights["W"][2] = 1.0
        if self.gate == "sigtanh":
            weights["U"] += 1.0
        bias = {} if kind.b is None else {"b": self.b}
        return kind.joined(exact([x]), exact([y]), **weights, **bias)[0]

    def numbers(self) -> Numbers:
        """What one gate passes of x and of y, and the share of x after 0, 1, … 24 gates."""
        left = [1.0]
        for _ in range(DEPTH):
            left.append(float(self.joined(left[-1], 0.0)))
        return {
            "of_x": self.joined(self.x, 0.0),
            "of_y": self.joined(0.0, self.y),
            "left": left,
        }
