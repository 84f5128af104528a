"""Which layers are scored at which point of training, how much they weigh, and what that costs."""

from __future__ import annotations

from typing import Any, ClassVar

from tfviz.basics.alrfou_auxiliary_losses import WEIGHTS, forward_flops, scored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import Knob, given, knob

WHOLE = 1000
"""Training is done in so many equal parts; `progress` counts them."""
VOCABULARIES = [27, 103, 256, 1000, 4000, 16_000, 32_000, 64_000, 128_000]
MOST_LAYERS = 64


class LossSchedule(Explorer):
    """A stack of N layers, d wide, on windows of L tokens, while it is trained.

    progress         done of training, in thousandths;  layer: the one that is looked at, from 1
    every_position   (a) all L positions are scored, or the last one alone
    every_layer      (b) layers below the last one too, each for a while
    two_targets      (c) the token after the next one too, at half the weight
    vocab            one of VOCABULARIES

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "loss_schedule"
    label: ClassVar[str] = "Schedule of the auxiliary losses: layers against training"
    min_height: ClassVar[str] = "42.5rem"
    min_height_narrow: ClassVar[str] = "62.75rem"
    narrow: ClassVar[int] = 640

    N = knob(64, low=1, high=MOST_LAYERS, label="layers", letter="N")
    progress = knob(250, low=0, high=WHOLE, label="training done", letter="s/T")
    layer = knob(20, low=1, high=MOST_LAYERS)
    every_position = knob(True, label="(a) every position")
    every_layer = knob(True, label="(b) every layer, for a while")
    two_targets = knob(True, label="(c) two characters ahead")
    vocab = knob(256, of=VOCABULARIES, label="vocabulary", letter="V")
    d = given(Knob(512, low=1, high=65_536))
    L = given(Knob(512, low=1, high=65_536))
    asks = (
        "Predict: at which point of training does layer 48 of 64 fall silent, and which layers "
        "are left at half-time? Then drag the line, or press → and ↑ in the picture."
    )

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"weights": list(WEIGHTS), "whole": WHOLE}

    @property
    def on(self) -> list[bool]:
        """For each layer, whether it is scored now."""
        if not self.every_layer:
            return [False] * (self.N - 1) + [True]
        found: list[bool] = scored(self.progress, WHOLE, self.N).tolist()
        return found

    @property
    def work(self) -> dict[str, float]:
        """Of one step now, and of a step on average, in steps that score the last layer alone."""
        targets, positions = 1 + self.two_targets, self.L if self.every_position else 1
        plain = forward_flops(self.L, self.d, self.vocab, self.N, 1)
        blocks = forward_flops(self.L, self.d, self.vocab, self.N, 0)
        one = forward_flops(self.L, self.d, self.vocab, self.N, targets, positions) - blocks
        mean = 1 + (self.N - 1) / 4 if self.every_layer else 1.0
        return {"now": (blocks + sum(self.on) * one) / plain, "mean": (blocks + mean * one) / plain}
