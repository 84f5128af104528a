"""Localness for one query: the weights from content, times a bell around a predicted place."""

import torch

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.formula import Formula
from tfviz.priors.localness_gaussian import bell_around

L = 24
FAVOURED = {4: 2.2, 15: 1.5, 12: 1.1, 20: 0.9, 9: 0.6}  # scores of keys; those of all others are 0
SCORES = [FAVOURED.get(j, 0.0) for j in range(L)]


def learned() -> Numbers:
    """p and D by place, of a head that learned to copy three places to the left (seed 0)."""
    found = stored.load("gaussian_localness")
    return {what: found[what]["query"][0] for what in ("places", "windows")}


def given() -> Numbers:
    return {"scores": SCORES, **learned()}


class GaussianLocalness(Explorer):
    """One row of attention over 24 keys, a bell with a centre and a window, and their product.

    With `trained`, centre and window are those that a trained head predicts for query i; the
    content stays that of the hand-made row.
    """

    label = "A row of attention, a bell around a predicted place, and their product"
    rem = 42, 43, 38, 38.5, 77.5
    data = handed(given, bell=Formula(bell_around, reals=frozenset({"centre", "window"})))

    centre = knob(13.0, low=0.0, high=L - 1.0, step=0.5, label="centre", letter="p")
    window = knob(6.0, low=0.5, high=48.0, step=0.5, label="window", letter="D")
    trained = knob(False, label="centre and window of a trained head")
    i = knob(12, low=0, high=L - 1, label="query of that head", letter="i")
    asks = "Tick the box and move the query. How far from it does the trained head put its bell?"

    def numbers(self) -> Numbers:
        """The three curves of the row, and the centre and window that are used."""
        p, D = self.centre, self.window
        if self.trained:
            found = learned()
            p, D = found["places"][self.i], found["windows"][self.i]
        G = bell_around(0, torch.arange(L, dtype=torch.float64), centre=p, window=D)
        scores = exact(SCORES)
        return {
            "content": scores.softmax(0),
            "bell": G.exp(),
            "product": (scores + G).softmax(0),
            "p": p,
            "D": D,
        }
