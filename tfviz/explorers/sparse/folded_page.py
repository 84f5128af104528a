"""The scene of chapter 17: the last word of a page reads its line and its column."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.patterns import strided
from tfviz.sparse.sparse_transformer_strided import factors, relay

L = 100


class FoldedPage(Explorer):
    """A hundred words on a page whose width is the stride of strided attention."""

    label = "A page of a hundred words: the last one reads its line and its column"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(length=L)

    stride = knob(10, low=5, high=20, label="words a line")

    def numbers(self) -> Numbers:
        """The words that the last one reads, how many it has heard of after two layers, and the
        word that brings it the first one."""
        keys = strided(stride=self.stride).mask(L)[-1].nonzero().flatten()
        line, column = (part.mask(L).double() for part in factors(self.stride))
        heard = (column @ line)[-1] > 0
        return {"keys": keys, "heard": heard.sum(), "relay": relay(L - 1, 0, self.stride)}
