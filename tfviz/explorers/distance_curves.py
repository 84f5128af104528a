"""What distance does to a score and to a weight: five ways beside each other, all keys alike."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob
from tfviz.formula import Formula
from tfviz.longer_context.alibi import ramp, slopes
from tfviz.longer_context.da_transformer import curve, rescale
from tfviz.position.sinusoidal_pe import hand
from tfviz.position.t5_relative_bias import bucket, edges

HEADS, NEAR, WIDTH, BASE = 8, 8, 16, 10_000.0
BUCKETS, FAR, STEP = 32, 64, 0.125  # T5's table here: b falls by STEP from bucket to bucket
WAVE = 3.0  # the height of Transformer-XL's wave v·r here
NAMES = ("DA", "ALiBi", "Transformer-XL", "T5 bias", "rotary")


class DistanceCurves(Explorer):
    """Score and weight of keys 0 to L − 1 places back that all fit the query equally well.

    content   q·k/√d of every key, −4 to 8;  length   L: 16, 32, 64 or 128
    head      of ALiBi's eight, 1 to 8: its slope is 2^−head
    alpha     −2 to 2;  beta   −8 to 2: of DA's curve

    T5's table and the wave of Transformer-XL are typed by hand, rotary pairs all begin alike.
    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "distance_curves"
    label: ClassVar[str] = "Distance curves: DA, ALiBi, Transformer-XL, T5 and rotary"
    min_height: ClassVar[str] = "54rem"
    min_height_narrow: ClassVar[str] = "114rem"

    content = knob(4.0, low=-4.0, high=8.0, step=0.5, label="content: q·k/√d of every key")
    alpha = knob(-1.0, low=-2.0, high=2.0, step=0.1, label="DA's preference", letter="α")
    beta = knob(-4.0, low=-8.0, high=2.0, step=0.5, label="DA's bend", letter="β")
    head = knob(3, low=1, high=HEADS, label="ALiBi's head")
    length = knob(64, of=[16, 32, 64, 128], label="keys", letter="L")
    asks = "Drag the two dots. Then bring the content down to 0, and below."

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {
            "names": NAMES,
            "ramp": Formula(ramp).javascript(),
            "curve": Formula(curve, reals=frozenset({"alpha", "beta"})).javascript(),
            "hand": Formula(hand).javascript(),
            "edges": edges(BUCKETS, FAR),
            **{"near": NEAR, "width": WIDTH, "base": BASE, "step": STEP, "wave": WAVE},
        }

    def scores(self) -> dict[str, Tensor]:
        """The score of a key by its distance, in each of the ways."""
        n, c = torch.arange(self.length, dtype=torch.float64), self.content
        hands = hand(n[:, None], torch.arange(WIDTH // 2).double(), d=WIDTH, base=BASE).mean(1)
        found = (
            max(c, 0.0) * rescale(n, self.alpha, self.beta),
            c + ramp(0, n, m=float(slopes(HEADS)[self.head - 1])),
            c + WAVE * (hands - 1),
            c - STEP * bucket(n.long(), BUCKETS, FAR),
            c * hands,
        )
        return dict(zip(NAMES, found, strict=True))

    def numbers(self) -> dict[str, Any]:
        """Scores and weights by distance, and the weight of all keys farther than 8, by way."""
        scores = list(self.scores().values())
        weights = [s.softmax(0) for s in scores]
        return {
            "scores": [s.tolist() for s in scores],
            "weights": [w.tolist() for w in weights],
            "far": [float(w[NEAR + 1 :].sum()) for w in weights],
        }
