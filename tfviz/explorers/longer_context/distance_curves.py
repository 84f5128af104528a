"""What distance does to a score and to a weight: five methods side by side, all keys alike."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
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

    The slope of ALiBi's head is 2^−head. T5's table and the wave of Transformer-XL are chosen by
    hand; all rotary pairs begin alike.
    """

    label = "Distance curves: DA, ALiBi, Transformer-XL, T5 and rotary"
    rem = 41.5, 43, 43, 41, 98.5
    data = handed(
        names=NAMES,
        ramp=Formula(ramp),
        hand=Formula(hand),
        curve=Formula(curve, reals=frozenset({"alpha", "beta"})),
        edges=edges(BUCKETS, FAR),
        near=NEAR,
        width=WIDTH,
        base=BASE,
        step=STEP,
        wave=WAVE,
    )

    content = knob(4.0, low=-4.0, high=8.0, step=0.5, label="content: q·k/√dₕ of every key")
    alpha = knob(-1.0, low=-2.0, high=2.0, step=0.1, label="DA's preference", letter="α")
    beta = knob(-4.0, low=-8.0, high=2.0, step=0.5, label="DA's bend", letter="β")
    head = knob(3, low=1, high=HEADS, label="ALiBi's head")
    length = knob(64, of=[16, 32, 64, 128, 256, 512], label="keys", letter="L")
    beside = knob(False, label="also show Transformer-XL, T5 and rotary")
    asks = "Drag both dots. Then add keys: for which method does the share beyond distance 8 grow?"

    def numbers(self) -> Numbers:
        """Scores and weights by distance, and the weight of all keys farther than 8, by way."""
        n, c = torch.arange(self.length, dtype=torch.float64), self.content
        hands = hand(n[:, None], torch.arange(WIDTH // 2).double(), d=WIDTH, base=BASE).mean(1)
        scores = [
            max(c, 0.0) * rescale(n, self.alpha, self.beta),
            c + ramp(0, n, m=float(slopes(HEADS)[self.head - 1])),
            c + WAVE * (hands - 1),
            c - STEP * bucket(n.long(), BUCKETS, FAR),
            c * hands,
        ]
        weights = [s.softmax(0) for s in scores]
        far = [w[NEAR + 1 :].sum() for w in weights]
        return {"scores": scores, "weights": weights, "far": far}
