"""Which layers are scored at which point of training, how much they weigh, and what that costs."""

from functools import partial

from tfviz.basics import alrfou_auxiliary_losses as losses
from tfviz.explorers.base import Explorer, Knob, Numbers, given, handed, knob

WHOLE = 1000  # training is done in so many equal parts; `progress` counts them
VOCABULARIES = [27, 103, 256, 1000, 4000, 16_000, 32_000, 64_000, 128_000]


class AuxiliaryLossSchedule(Explorer):
    """A stack of N layers, d wide, on windows of L tokens, while it is trained.

    progress       done of training, in thousandths
    every_layer    layers below the last one are scored too, each for a while
    two_targets    the token after the next one too, at half the weight
    """

    label = "Schedule of the auxiliary losses: layers against training"
    rem = 43.5, 44, 44, 40, 78.5
    data = handed(weights=list(losses.WEIGHTS), whole=WHOLE)

    N = knob(64, low=1, high=64, label="layers", letter="N")
    progress = knob(250, low=0, high=WHOLE, step=5, label="training done", letter="s/T")
    layer = knob(20, low=1, high=N, label="look at layer", letter="n")
    every_position = knob(True, label="(a) every position")
    every_layer = knob(True, label="(b) every layer, for a while")
    two_targets = knob(True, label="(c) two characters ahead")
    vocab = knob(256, of=VOCABULARIES, label="vocabulary", letter="V")
    d = given(Knob(512, low=1, high=65_536))
    L = given(Knob(512, low=1, high=65_536))
    asks = "Press play, or drag the dot: left and right in time, up and down to another layer."

    def numbers(self) -> Numbers:
        """Which layers are scored now, until when each is, what all that weighs, and the work of a
        step now and on average, divided by that of a step that scores the last layer alone."""
        N, targets, positions = self.N, 1 + self.two_targets, self.L if self.every_position else 1
        on, until, mean = [0] * (N - 1) + [1], [0.0] * (N - 1) + [1.0], 1.0
        if self.every_layer:
            on = losses.scored(self.progress, WHOLE, N).int().tolist()
            until, mean = (losses.steps_scored(2 * N, N) / (2 * N)).tolist(), 1 + (N - 1) / 4
        cost = partial(losses.forward_flops, self.L, self.d, self.vocab, N)
        plain, blocks = cost(1), cost(0)
        one, now = cost(targets, positions) - blocks, sum(on)
        share = now * one / (blocks + now * one)
        weight = now * sum(losses.WEIGHTS[:targets])
        work = {"now": (blocks + now * one) / plain, "mean": (blocks + mean * one) / plain}
        predictions = now * targets * positions
        targets_now = {"on": on, "until": until, "predictions": predictions, "weight": weight}
        return targets_now | work | {"share": share}
