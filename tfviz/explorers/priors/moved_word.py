"""The scene of chapter 27: a word moves, and a head that has only a prior does not notice."""

import torch

from tfviz.dense_attention import CAUSAL, attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.priors.hard_coded_gaussian import hard_coded_definition

WORDS = {
    # word: what its key offers, and what its query asks for
    "loudly": ("how", ["deed", "how"]),
    "the": ("article", ["article"]),
    "dog": ("thing", ["article"]),
    "that": ("link", ["thing"]),
    "bit": ("deed", ["thing"]),
    "me": ("person", ["deed"]),
    "barked": ("deed", ["thing", "how"]),
}
KINDS = ["how", "article", "thing", "link", "deed", "person"]
SCORE = 4.0  # of a key that offers what the query asks for; all other scores are 0
OFFSET, SPREAD = -1, 0.5


class MovedWord(Explorer):
    """The weights of a head that compares words, and of one that knows only their places.

    Both look back only. Queries and keys are made up: each word offers one thing, and asks for one
    or two. The second head is a bell, centred one place before the word.
    """

    label = "A word moves: the weights of attention follow it, those of a prior stay"
    scene = True
    rem = 30, 30, 31.5, 31.5, 26.5
    data = handed(words=WORDS, score=SCORE, offset=OFFSET, spread=SPREAD)

    place = knob(0, low=0, high=len(WORDS) - 1, label="place of “loudly”")

    def numbers(self) -> Numbers:
        """The weights by content and by place, with the words in their order."""
        first, *others = WORDS
        others.insert(self.place, first)
        offers, asks = zip(*(WORDS[word] for word in others), strict=True)
        K = exact([[float(kind == offer) for kind in KINDS] for offer in offers])
        Q = exact([[float(kind in ask) for kind in KINDS] for ask in asks])
        content = attention(SCORE * len(KINDS) ** 0.5 * Q, K, K, CAUSAL)[1]
        seen = torch.ones(len(K), len(K), dtype=torch.bool).tril()
        prior = hard_coded_definition(K[None], seen, [OFFSET], SPREAD)[1][0]
        return {"content": content, "prior": prior}
