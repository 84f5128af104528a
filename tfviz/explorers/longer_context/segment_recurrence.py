"""Segments with a memory: which tokens hear one token, layer by layer, segment by segment."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.longer_context.transformer_xl_recurrence import reach

SEGMENTS = 6


class SegmentRecurrence(Explorer):
    """Six segments of a text, read one after the other with a memory of m rows in each layer.

    p    the token whose message is followed
    """

    label = "Segment recurrence: how far a token is heard"
    rem = 39, 39, 40.5, 40.5, 81.5
    data = handed(segments=SEGMENTS)

    read = knob(6, low=1, high=SEGMENTS, label="segments read")
    m = knob(3, low=0, high=8, label="memory", letter="m")
    L = knob(8, of=[4, 6, 8], label="tokens in a segment", letter="L")
    N = knob(3, low=1, high=4, label="layers", letter="N")
    p = knob(9, low=0, high=23, label="the token that is heard", letter="p")
    asks = "Press play: how far does the message of token p travel, and through which memories?"

    def numbers(self) -> Numbers:
        """Of each layer 0 … N: the last token that hears the message (−1: not read yet), and the
        first that the newest segment's first token hears; how far back that is if the text is long
        enough, and the N m of the survey."""
        L, m, end = self.L, self.m, self.read * self.L
        heard, first = [self.p if self.p < end else -1], [end - L]
        for _ in range(self.N):
            far = min((heard[-1] + m) // L * L + L, end) - 1
            heard.append(far if heard[0] >= 0 else -1)
            first.append(max(0, first[-1] // L * L - m))
        back = reach(self.N, m, L)
        return {"heard": heard, "first": first[::-1], "back": back, "product": self.N * m}
