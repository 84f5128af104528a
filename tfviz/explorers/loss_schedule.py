"""Which layers are scored at which point of training, how much they weigh, and what that costs."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets as t

from tfviz import _arguments
from tfviz.basics.alrfou_auxiliary_losses import WEIGHTS, forward_flops, scored
from tfviz.explorers.base import Explorer

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

    N = t.Int(64).tag(sync=True)
    progress = t.Int(250).tag(sync=True)
    layer = t.Int(20).tag(sync=True)
    every_position = t.Bool(True).tag(sync=True)
    every_layer = t.Bool(True).tag(sync=True)
    two_targets = t.Bool(True).tag(sync=True)
    vocab = t.Int(256).tag(sync=True)
    d = t.Int(512).tag(sync=True)
    L = t.Int(512).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(self, N: int = 64, progress: int = 250, layer: int = 20, **options: Any) -> None:
        known = set(self.class_trait_names(sync=True)) - set(Explorer.class_trait_names(sync=True))
        if unknown := options.keys() - known:
            raise ValueError(f"{sorted(unknown)} are no options; choose from {sorted(known)}")
        options["prompt"] = options.get("prompt") or (
            "Predict: at which point of training does layer 48 of 64 fall silent, and which layers "
            "are left at half-time? Then drag the line, or press → and ↑ in the picture."
        )
        super().__init__(N=N, progress=progress, layer=layer, **options)

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"vocabularies": VOCABULARIES, "weights": list(WEIGHTS), "whole": WHOLE}

    @t.validate("N", "layer")
    def _layers(self, proposal: Any) -> int:
        return _arguments.integer(proposal["trait"].name, proposal["value"], 1, MOST_LAYERS)

    @t.validate("progress")
    def _progress(self, proposal: Any) -> int:
        return _arguments.integer("progress", proposal["value"], 0, WHOLE)

    @t.validate("d", "L")
    def _sizes(self, proposal: Any) -> int:
        return _arguments.integer(proposal["trait"].name, proposal["value"], 1, 65_536)

    @t.validate("vocab")
    def _vocab(self, proposal: Any) -> int:
        if proposal["value"] not in VOCABULARIES:
            raise ValueError(f"vocab = {proposal['value']}; choose one of {VOCABULARIES}")
        return int(proposal["value"])

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

    def __repr__(self) -> str:
        return f"LossSchedule(N={self.N}, progress={self.progress}, vocab={self.vocab})"
