"""Byte-pair merges one by one: the text in tokens, the pairs that compete, the falling length."""

from collections import Counter
from typing import Any

import traitlets as t

from tfviz.basics.token_embedding import Pair, encode, learn, merged, pair_counts, pieces
from tfviz.explorers.base import Explorer, Numbers, handed, knob, own

MOST_LETTERS, MOST_MERGES, SHOWN = 320, 80, 5


EXAMPLES: dict[str, Numbers] = {
    "": {
        "text": "row row row your boat, gently down the stream; row by row — così è",
        "merges": 2,
    }
}


class BytePairMerges(Explorer):
    """Merges learned from a text of at most 320 bytes, and that text cut by them.

    text    any text; what the browser's reader types takes its place
    """

    label = "Byte-pair merges: the text cut into tokens after each merge"
    data = handed(letters=MOST_LETTERS, shown=SHOWN)

    text = own(t.Unicode())
    merges = knob(0, low=0, high=MOST_MERGES, label="merges")
    examples = EXAMPLES
    asks = "Press play: each step merges the most frequent pair of neighbours."

    @t.validate("text")
    def _text(self, proposal: Any) -> str:
        text: str = proposal["value"]
        if not 1 <= len(text.encode()) <= MOST_LETTERS:
            raise ValueError(
                f"text has {len(text.encode())} bytes; give 1 to {MOST_LETTERS}, so that all of "
                "its tokens can be seen"
            )
        return text

    def heights(self) -> dict[int, float]:
        """Between those measured for texts of 77 and of 175 bytes; one that is no letter counts as
        two."""
        size = sum(1 if byte < 128 else 2 for byte in self.text.encode())
        short = {0: 32, 1000: 32, 860: 34, 676: 57, 480: 58.5, 400: 61.5, 340: 65}
        long = 36.5, 41.5, 40.5, 61, 66, 77, 80.5
        more = (size - 77) / (175 - 77)
        asked = dict.fromkeys(short, 7) | {0: 3, 1000: 3, 860: 4} if not self.merges else {}
        return {
            w: h + more * (h2 - h) + asked.get(w, 0)
            for (w, h), h2 in zip(short.items(), long, strict=True)
        }

    def numbers(self) -> Numbers:
        every = learn(self.text, MOST_MERGES)
        lengths = [len(encode(self.text, every[:k])) for k in range(len(every) + 1)]
        return {"tokens": self.tokens, "pairs": self.next_pairs, "lengths": lengths}

    @property
    def learned(self) -> list[Pair]:
        """The merges done so far, as the library learns them."""
        return learn(self.text, self.merges)

    @property
    def tokens(self) -> list[int]:
        """The text in tokens."""
        return encode(self.text, self.learned).tolist()

    @property
    def next_pairs(self) -> list[tuple[int, int, int]]:
        """(u, w, how often) of the five most frequent pairs; the first is merged next."""
        rows = Counter[tuple[int, ...]]()
        for piece in pieces(self.text):
            row = tuple(piece.encode())
            for n, pair in enumerate(self.learned):
                row = merged(row, pair, 256 + n)
            rows[row] += 1
        counts = pair_counts(rows)
        order = sorted(counts, key=lambda pair: (-counts[pair], pair))
        return [(*pair, counts[pair]) for pair in order[:SHOWN]]
