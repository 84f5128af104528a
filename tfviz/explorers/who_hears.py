"""Segments with a memory: who hears of one token, layer by layer and segment by segment."""

from __future__ import annotations

from typing import Any, ClassVar

from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob
from tfviz.longer_context.transformer_xl_recurrence import reach

SEGMENTS = 6


class WhoHears(Explorer):
    """Six segments of a text, read one after the other with a memory of m rows in each layer.

    read   segments read, 1 to 6;  L   tokens in one: 4, 6 or 8;  m   rows kept, 0 to 8
    N      layers, 1 to 4;  p   the token whose message is followed, 0 to 23

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "who_hears"
    label: ClassVar[str] = "Segment recurrence: who hears the past"
    min_height: ClassVar[str] = "45rem"
    min_height_narrow: ClassVar[str] = "84rem"

    read = knob(2, low=1, high=SEGMENTS, label="segments read")
    m = knob(4, low=0, high=8, label="memory", letter="m")
    L = knob(8, of=[4, 6, 8], label="tokens in a segment", letter="L")
    N = knob(3, low=1, high=4, label="layers", letter="N")
    p = knob(10, low=0, high=23, label="the token that speaks", letter="p")
    asks = "Press play: how far does one token's message come, and over which memories?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"segments": SEGMENTS}

    def numbers(self) -> dict[str, Any]:
        """Of each layer 0 … N: the last token that hears the message (−1: not read yet), and the
        first that the newest segment's first token hears; how far back that is if the text is long
        enough, and the survey's N m."""
        L, m, end = self.L, self.m, self.read * self.L
        heard, first = [self.p if self.p < end else -1], [end - L]
        for _ in range(self.N):
            far = min((heard[-1] + m) // L * L + L, end) - 1
            heard.append(far if heard[0] >= 0 else -1)
            first.append(max(0, first[-1] // L * L - m))
        back = reach(self.N, m, L)
        return {"heard": heard, "first": first[::-1], "back": back, "product": self.N * m}
