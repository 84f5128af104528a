"""Rotary positions live: clock hands of a query and a key; the arrows that make the score."""

import torch
import traitlets as t

from tfviz.explorers.base import Explorer, Knob, Numbers, exact, given, knob, table
from tfviz.position.rope import phasors, rotate

FARTHEST, MOST_SHIFT = 64, 1000
BASES = [1, 2, 5, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 5e5, 1e6]


EXAMPLES: dict[str, Numbers] = {
    "": {
        "trained": 16,
        "pairs": {
            "alike": ([1.0, 0.0] * 4, [1.0, 0.0] * 4),
            "other": (
                [0.3, -1.2, 0.8, 0.5, -0.7, 0.1, 1.1, 0.4],
                [0.9, 0.2, -0.4, 1.3, 0.6, -0.8, 0.5, 0.7],
            ),
        },
    }
}


class RotaryClocks(Explorer):
    """A query and a key of d numbers, d/2 clocks, and the score that they make at every distance.

    pairs      name -> (q, k), d numbers each, d even and at most 16; pair: that which is shown
    base       θ_m = base^(−2m/d); interpolate: positions are divided by it
    trained    the largest distance seen in training, drawn as a line (0: none)
    """

    label = "Rotary clocks: hands of query and key, and the score at each distance"
    rem = 39, 40.5, 40.5, 44, 101.5
    narrow = 640

    pairs = given(t.Dict())
    i = knob(12, low=0, high=FARTHEST, label="position of the query", letter="i")
    j = knob(9, low=0, high=FARTHEST, label="position of the key", letter="j")
    pair = knob("", of=lambda e: list(e.pairs), label="query and key")
    shift = knob(0, low=0, high=MOST_SHIFT, label="shift both by")
    base = knob(10_000.0, of=BASES, between=True, label="base")
    interpolate = knob(1.0, low=1.0, high=8.0, step=0.25, label="divide positions by", letter="s")
    trained = given(Knob(0, low=0, high=FARTHEST))
    examples = EXAMPLES
    asks = "Drag the dot on the curve, or move the query, the key, or both."

    def prepare(self, said: Numbers) -> Numbers:
        known = said["pairs"].items()
        pairs = {name: table(f"pairs[{name!r}]", qk, 2, range(2, 17, 2)) for name, qk in known}
        widths = sorted({len(q) for q, _ in pairs.values()})
        if not widths:
            raise ValueError("pairs is empty; give name -> (q, k), for example from a head")
        if len(widths) > 1:
            raise ValueError(f"pairs have widths {widths}; give (q, k) of one width each")
        return said | {"pairs": pairs, "pair": said.get("pair") or next(iter(pairs))}

    def numbers(self) -> Numbers:
        """Each clock's arrow as a point, their reach to the right, and q̃_i k̃_jᵀ of the turned
        query and the turned key: the same number."""
        both = exact(self.pairs[self.pair])
        distance = (self.i - self.j) / self.interpolate
        length, angle = phasors(both[0], both[1], distance, self.base)
        arrows = torch.stack([length * angle.cos(), length * angle.sin()], 1)
        places = exact([self.i + self.shift, self.j + self.shift])
        q, k = rotate(both, places / self.interpolate, self.base)
        return {"arrows": arrows, "score": arrows[:, 0].sum(), "product": q @ k}
