"""A first look at one pattern: which tokens a token looks at, as formula, matrix and number."""

from tfviz import patterns as P
from tfviz.explorers.base import Explorer, Numbers, handed, knob

L = 64


class StridedPattern(Explorer):
    """Strided attention of the Sparse Transformer on 64 tokens."""

    label = "Strided attention: which tokens a token looks at"
    rem = 33.5, 32, 27, 26, 66.5
    data = handed(strided=P.FAMILIES["strided"].formula)

    stride = knob(P.strided.domains["stride"], high=L, label="stride", letter="s")
    query = knob(42, low=0, high=L - 1, label="token", letter="i")
    asks = "Drag the edge of the window, or press on a row."

    def numbers(self) -> Numbers:
        """The tokens that token i looks at, and how many pairs each stride makes."""
        masks = [P.strided(stride=stride).mask(L) for stride in range(1, L + 1)]
        keys = masks[self.stride - 1][self.query].nonzero().flatten()
        return {"keys": keys, "pairs": [mask.sum() for mask in masks]}
