"""Draw a digit: a tiny Vision Transformer reads it, and shows where its class token looks."""

from __future__ import annotations

from typing import Any

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.explorers.base import Explorer, Numbers, handed, knob, own
from tfviz.stored import digit_vit as stored

PIXELS = stored.SIDE**2
BEGIN = 8  # the digit of the first state


class VisionTransformer(Explorer):
    """An image of 8 × 8 pixels that the reader draws, and what the stored model makes of it.

    drawing    64 whole numbers from 0 to 16, row by row; the test image of an eight without it
    """

    uses = ("shared/numbers", "shared/encoder")
    data = handed(model=stored.for_page, shown=stored.shown, begin=BEGIN)
    label = "A digit to draw, what a Vision Transformer reads, and where its class token looks"
    rem = 38.5, 38.5, 38.5, 37, 92

    drawing = own(t.List(t.Int()), optional=True)
    block = knob(stored.LAYERS - 1, low=0, high=stored.LAYERS - 1, label="block", letter="n")
    head = knob(
        "mean",
        of={"mean": "mean of all heads", **{str(m): f"head {m}" for m in range(stored.HEADS)}},
        label="weights of",
    )
    asks = "Draw a digit of your own, or rub out other parts."

    def prepare(self, said: Numbers) -> Numbers:
        return {"drawing": stored.shown()[BEGIN]} | said

    @t.validate("drawing")
    def _drawing(self, proposal: Any) -> list[int]:
        pixels: list[int] = proposal["value"]
        _arguments.integer("length of drawing", len(pixels), PIXELS, PIXELS)
        return [_arguments.integer("pixel of drawing", x, 0, stored.LEVELS) for x in pixels]

    def numbers(self) -> Numbers:
        """The share of each digit, and the weights of the class token on the 4 × 4 patches."""
        shares, seen = stored.read(stored.exact(), torch.tensor(self.drawing))
        heads = seen[self.block]
        weights = heads.mean(0) if self.head == "mean" else heads[int(self.head)]
        return {"shares": shares, "weights": weights}
