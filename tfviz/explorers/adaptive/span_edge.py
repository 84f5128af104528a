"""The scene of chapter 14: a head's past, and the edge beyond which it no longer looks."""

import math

from tfviz.adaptive.adaptive_span import ramp
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

PAST = 120
NEAR, REACH = 4.6, 10.0
"""The score of the newest token, and how many tokens back it has fallen by a factor of e."""
NAME = {88: 3.8, 87: 3.0, 89: 2.2}
"""A name, about 88 tokens back, and its scores."""
RAMP = 16


def scores() -> list[float]:
    """The score of each token of the past, from the newest; a wave stands for all other words."""
    wave = [0.35 * math.sin(1.7 * x) + 0.3 * math.sin(0.61 * x + 1) for x in range(PAST)]
    near = [NEAR * math.exp(-x / REACH) + wave[x] for x in range(PAST)]
    return [round(NAME.get(x, near[x]), 3) for x in range(PAST)]


class SpanEdge(Explorer):
    """One head that looks back 120 tokens, through a mask with a soft edge. Scores are made up."""

    label = "A head looks back 120 tokens; its span is moved, and what lies beyond vanishes"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(scores=scores, ramp=RAMP)

    z = knob(32, low=0, high=PAST - RAMP, label="span", letter="z")

    def numbers(self) -> Numbers:
        """The mask, the weights before and after it, the share that was kept, and the keys that
        are computed."""
        mask = ramp(exact(range(PAST)), exact(self.z), RAMP)
        plain = exact(scores()).softmax(0)
        kept = (plain * mask).sum()
        weights = plain * mask / kept
        return {
            "mask": mask,
            "plain": plain,
            "weights": weights,
            "kept": kept,
            "keys": (mask > 0).sum(),
        }
