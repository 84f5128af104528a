"""Scores of four layers, and what each layer uses: its own, a sum, or the map from below."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.priors.realformer import scores_from_below

WORDS = ["the", "cat", "sat", "on", "the", "mat"]
LAYERS, L = 4, len(WORDS)
OWN = [  # made up: small whole numbers, so that sums can be done in the head
    [
        [2, 1, 0, 0, 1, 0],
        [1, 2, 1, 0, 0, 0],
        [0, 2, 1, 1, 0, 0],
        [0, 0, 2, 1, 0, 1],
        [1, 0, 0, 1, 2, 1],
        [0, 1, 0, 1, 2, 1],
    ],
    [
        [1, 2, 0, -1, 0, 0],
        [2, 1, 0, 0, -1, 0],
        [0, 2, 0, 0, 0, 1],
        [-1, 0, 2, 0, 0, 1],
        [0, -1, 0, 0, 1, 2],
        [0, 2, 1, 0, 1, 0],
    ],
    [
        [0, 1, 1, 0, 0, -1],
        [0, 1, 2, 0, 0, 0],
        [1, 1, 0, 1, -1, 0],
        [0, 0, 1, 0, 1, 2],
        [0, 0, 0, 0, 1, 2],
        [1, -1, 2, 0, 0, 1],
    ],
    [
        [0, 2, 0, 0, -1, 0],
        [0, 0, 2, -1, 0, 1],
        [0, 1, 0, 0, 0, 2],
        [0, -1, 2, 0, 0, 1],
        [-1, 0, 0, 1, 0, 2],
        [0, 2, 1, -1, 0, 0],
    ],
]
RULES = {
    "own": "own scores (Transformer)",
    "accumulated": "own + from below (RealFormer)",
    "reused": "its block's map (LazyFormer)",
}
EXAMPLES: dict[str, Numbers] = {"": {}, "reused": {"rule": "reused"}}


def shares(rule: str, m: int) -> tuple[list[float], list[float]]:
    """The weights of own scores and of those from below, in each layer."""
    layers = range(LAYERS)
    if rule == "reused":
        own = [float(n % m == 0) for n in layers]
        return own, [1 - x for x in own]
    return [1.0] * LAYERS, [float(rule == "accumulated")] * LAYERS


class ScoresThroughLayers(Explorer):
    """Four layers of six words, layer by layer: own scores, scores in use, and weights.

    i, j   the pair whose score is followed through the layers
    """

    label = "Scores through the layers: own, accumulated or reused"
    rem = 43, 42.5, 41, 43.5, 89.5
    data = handed(own=OWN, words=WORDS)
    examples = EXAMPLES

    layer = knob(2, low=0, high=LAYERS - 1, label="layer", letter="n")
    rule = knob("accumulated", of=RULES, label="a layer uses")
    m = knob(2, of=[1, 2, 4], label="layers in a lazy block", letter="m")
    i = knob(5, low=0, high=L - 1, label="query", letter="i")
    j = knob(1, low=0, high=L - 1, label="key", letter="j")
    asks = "Play the layers with each rule: which one makes the sharpest weights in the top layer?"

    def numbers(self) -> Numbers:
        """The scores that each layer uses, and its weights."""
        used = scores_from_below(exact(OWN), *shares(self.rule, self.m))
        weights = torch.softmax(used, -1)
        return {"used": used, "weights": weights}
