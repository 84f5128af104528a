"""The scene of chapter 16: each word reads a few before it, and layers carry the news further."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.patterns import sliding_window

SENTENCE = "the treasure that pirates hid before the storm came up that night was never found"
WORDS = SENTENCE.split()
FROM, TO = WORDS.index("treasure"), WORDS.index("was")
LAYERS = 4


class WindowCone(Explorer):
    """The words that four layers of windows bring to one word of a made-up sentence."""

    label = "Windows in four layers: how far back a word hears, and the pairs that it costs"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(words=WORDS, source=FROM, goal=TO, layers=LAYERS)

    lookback = knob(3, low=1, high=TO - FROM, label="words read back in one layer")

    def numbers(self) -> Numbers:
        """After how many layers the goal has heard of each word before it, -1 if never; and the
        pairs of one layer."""
        window = sliding_window(lookback=self.lookback)
        hops = window.reach(len(WORDS), LAYERS).hops[TO, : TO + 1]
        return {"hops": hops, "pairs": window.mask(len(WORDS)).sum()}
