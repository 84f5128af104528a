"""ETC in one picture: global tokens and words, four pieces, masks, one softmax against two."""

from functools import cache

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.patterns import reach, table
from tfviz.sparse import etc

WORDS, MOST, WIDTH = 12, 4, 3


@cache
def vectors() -> dict[str, list[list[float]]]:
    """Queries and keys of up to four global tokens and of twelve words."""
    dice = torch.Generator().manual_seed(5)
    vectors = {n: 1.2 * torch.randn(MOST + WORDS, WIDTH, generator=dice).double() for n in "QK"}
    return {name: x.mul(100).round().div(100).tolist() for name, x in vectors.items()}


class GlobalLocalAttention(Explorer):
    """ETC's attention of twelve words and one global token for each sentence.

    hard     a global token and the words of its sentence read each other, and no others
    query    0 to 3: a global token, the last one if there are fewer; from 4 on: a word
    """

    label = "Four quadrants: ETC's pieces, masks and softmaxes"
    rem = 42.5, 42.5, 44, 44, 73.5
    data = handed(vectors)

    sentences = knob(3, of=[1, 2, 3, 4], label="sentences", letter="n_g")
    radius = knob(2, low=0, high=WORDS - 1, label="neighbours on each side", letter="w")
    hard = knob(True, label="hard masks: own sentence only")
    apart = knob(False, label="two softmaxes, one for each piece")
    query = knob(9, low=0, high=MOST + WORDS - 1, label="row", letter="i")
    asks = "Press on a row, narrow the window, take the hard masks off, or try two softmaxes."

    def weights(self) -> torch.Tensor:
        """A, global tokens first; with two softmaxes, rows sum to 2."""
        n = self.sentences
        Q, K = (exact(vectors()[x]) for x in "QK")
        q, k = ((X[None, None, :n], X[None, None, MOST:]) for X in (Q, K))
        masks = etc.sentence_masks(n * [WORDS // n], self.radius, g2l=self.hard, l2g=self.hard)
        keys = etc.shared(*k)
        A = etc.etc_definition(*q, keys, keys, self.radius, masks=masks)[2][0, 0]
        if self.apart:
            A = torch.cat([part / part.sum(-1, keepdim=True) for part in A.split([n, WORDS], 1)], 1)
        return A

    @property
    def row(self) -> int:
        """The row of the matrix."""
        n = self.sentences
        return min(self.query, n - 1) if self.query < MOST else self.query - MOST + n

    def numbers(self) -> Numbers:
        """Pairs of each piece, the row with its shares for both kinds, and after how many layers
        the first word has reached the last; None if never."""
        n, A = self.sentences, self.weights()
        kept, sizes = A > 1e-12, [n, WORDS]
        pairs = [x.sum() for half in kept.split(sizes) for x in half.split(sizes, 1)]
        hops = int(reach([table(kept)], len(A)).hops[-1, n])
        shares = {"to_globals": A[self.row, :n].sum(), "to_words": A[self.row, n:].sum()}
        keys, far = kept[self.row].nonzero().flatten(), None if hops < 0 else hops
        return {"pairs": pairs, "keys": keys, "row": A[self.row], "hops": far, **shares}
