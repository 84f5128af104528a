"""The scene of chapter 18: a window passes news from word to word, a global token in two steps."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.patterns import band, reach, table
from tfviz.sparse import longformer

WORDS, RADIUS = 41, 2
L = 1 + WORDS


class GlobalHub(Explorer):
    """Token 0 is global; forty-one words after it read two neighbours on each side."""

    label = "From the first word to another one: along the window, or through a global token"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(words=WORDS, radius=RADIUS)

    word = knob(WORDS, low=2, high=WORDS, label="the word that is to hear of the first one")

    def numbers(self) -> Numbers:
        """After how many layers the word hears of word 1, with the window alone and with the
        global token, and the pairs of both."""
        window = band(radius=RADIUS)
        both = table(longformer.mask(L, RADIUS, [0])[0])
        hops = [int(reach([p], L).hops[self.word, 1]) for p in (window, both)]
        return {"hops": hops, "pairs": [p.mask(L).sum() for p in (window, both)]}
