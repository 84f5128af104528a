"""A map of weights, and the nearest one that a head of a given width can draw."""

from functools import cache

import torch
from torch import Tensor

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.explorers.priors.synthesizer_maps import trained
from tfviz.heads.decoupled_head_size import divergence, drawn_by, logits

L = 13
WIDTHS = list(range(1, L + 1))
TARGETS = {
    "bell": "a bell around each query",
    "trained": "a trained head",
    "random": "random weights",
}


@cache
def given_logits() -> dict[str, list[list[float]]]:
    """Scores of each target, with the mean of each row subtracted."""
    n = torch.arange(float(L), dtype=torch.float64)
    Q, K = (exact(trained()[name][0]) for name in ("Q", "K"))  # without the mask of its model
    dice = torch.Generator().manual_seed(2)
    scores = {
        "bell": -((n - n[:, None]) ** 2) / 8,
        "trained": Q @ K.mT / Q.shape[-1] ** 0.5,
        "random": 2 * torch.randn(L, L, generator=dice, dtype=torch.float64),
    }
    return {
        name: [[round(x, 7) for x in row] for row in logits(s.softmax(-1)).tolist()]
        for name, s in scores.items()
    }


def targets(sharp: float) -> dict[str, Tensor]:
    return {name: (sharp * exact(x)).softmax(-1) for name, x in given_logits().items()}


class HeadWidth(Explorer):
    """Three maps of 13 tokens: what heads of 1 to 13 numbers draw of them, and what they miss."""

    label = "A target map of weights, and what a head of a given width makes of it"
    rem = 44, 44, 44, 37.5, 69
    data = handed(logits=given_logits, widths=WIDTHS)

    d_p = knob(2, low=1, high=L, label="width of the head", letter="dₚ")
    target = knob("bell", of=TARGETS, label="target")
    sharp = knob(1.0, of=[0.5, 1.0, 2.0, 3.0], label="sharpness of the target")
    asks = "Choose the trained head: which width misses less than 0.01 nats? What if it is sharper?"

    def numbers(self) -> Numbers:
        """The target, the map of the head, and for each target what heads of all widths miss."""
        found = targets(self.sharp)
        missed = [
            [max(0.0, divergence(P, drawn_by(P, d_p)).item()) for d_p in WIDTHS]
            for P in found.values()
        ]
        P = found[self.target]
        return {"wanted": P, "drawn": drawn_by(P, self.d_p), "missed": missed}
