"""The scene of chapter 10: how far back a token hears, through a memory in each layer."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.longer_context.compressive_transformer import temporal_range
from tfviz.longer_context.transformer_xl_recurrence import reach

SEGMENT, SEGMENTS, LAYERS, SQUEEZED, GROUP = 6, 8, 3, 2, 3
SPOKEN = 3  # the token that is to be heard


class MemoryReach(Explorer):
    """Eight segments of six tokens, and a model of three layers that reads one of the tokens.

    Each layer keeps the last six rows of its input, and the six before them squeezed into two.
    """

    label = "Rows of a text in four layers: which of them the token that is read can hear"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(
        segment=SEGMENT, segments=SEGMENTS, layers=LAYERS, squeezed=SQUEEZED, group=GROUP,
        spoken=SPOKEN,
    )  # fmt: skip

    token = knob(33, low=SPOKEN + 2, high=SEGMENT * SEGMENTS - 1, label="token that is read")

    def numbers(self) -> Numbers:
        """The first row of each layer, from the text on, that is heard: through the memories alone,
        and with what was squeezed."""
        start = self.token // SEGMENT * SEGMENT
        layers = range(LAYERS, 0, -1)
        rows = [reach(n, SEGMENT, SEGMENT) for n in layers]
        more = [temporal_range(n, SEGMENT, SQUEEZED, GROUP) for n in layers]
        kept, squeezed = ([max(0, start - n) for n in [*back, 0]] for back in (rows, more))
        return {"kept": kept, "squeezed": squeezed}
