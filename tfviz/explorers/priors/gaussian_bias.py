"""Look to your neighbours: −|w r² + b| of the Gaussian Transformer, and the weights it makes."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.formula import Formula
from tfviz.priors.gaussian_transformer import beside

FAR = 8  # keys on each side


class GaussianBias(Explorer):
    """What is added to equal scores of the keys up to 8 places away, and the weights it makes."""

    label = "The curve of the Gaussian Transformer: an M where b is negative"
    rem = 40.5, 40.5, 35.5, 37, 68
    data = handed(far=FAR, beside=Formula(beside, reals=frozenset({"w", "b"})))

    w = knob(0.2, low=0.0, high=1.0, step=0.05, label="score lost with distance", letter="w")
    b = knob(-1.8, low=-5.0, high=0.0, step=0.2, label="added at the query", letter="b")
    asks = "Set b to 0, then w to 0. Which of the two switches the prior off?"

    def numbers(self) -> Numbers:
        """Both curves over the distance, with this b and with b = 0, and their softmax."""
        distance = torch.arange(-FAR, FAR + 1, dtype=torch.float64)
        scores = beside(0, distance, w=self.w, b=self.b)
        plain = beside(0, distance, w=self.w, b=0.0)
        return {
            "scores": scores,
            "weights": scores.softmax(0),
            "plain": plain,
            "plainWeights": plain.softmax(0),
        }
