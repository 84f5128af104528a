"""The scene of chapter 5: sixty-four layers are asked, and fall silent one after the other."""

from tfviz.basics.alrfou_auxiliary_losses import scored, steps_scored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

LAYERS, STEPS = 64, 1280  # of the paper, and a number of steps that 2 · 64 divides


class SilentLayers(Explorer):
    """The schedule of Al-Rfou et al.: layer n of 64 has losses of its own during the first n/128 of
    training, and the last one throughout."""

    label = "Sixty-four layers, each with losses of its own for a while; the last one keeps them"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(layers=LAYERS, steps=STEPS)

    progress = knob(25, low=0, high=100, label="training done, in percent")

    def numbers(self) -> Numbers:
        """Which layers have losses now, and the share of training after which each falls silent."""
        on = scored(self.progress * STEPS // 100, STEPS, LAYERS)
        return {"on": on.int(), "until": steps_scored(STEPS, LAYERS).double() / STEPS}
