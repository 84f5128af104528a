"""The scene of chapter 25: the width of a bell decides which of two words wins."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.priors.localness_gaussian import bell_around

WORDS = {
    # word: the score of its key for the query "it"
    "The": -1.0,
    "trophy": 3.2,
    "did": -0.8,
    "not": -0.6,
    "fit": 0.6,
    "into": -0.6,
    "the": -1.0,
    "suitcase": 2.3,
    "because": -0.2,
    "it": 0.4,
    "was": 0.3,
    "too": -0.3,
    "big": 1.2,
}
QUERY = list(WORDS).index("it")


class WidenedBell(Explorer):
    """A bell around the word "it", laid over what the word finds by content. Scores are made up."""

    label = "A bell around a word is widened: near words lose their lead to the ones that fit"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(words=WORDS, query=QUERY)

    spread = knob(3.0, low=1.0, high=9.0, step=0.5, label="spread of the bell, in words")

    def numbers(self) -> Numbers:
        """The bell, the weights by content alone, and the weights of both together."""
        scores = exact(list(WORDS.values()))
        places = exact(range(len(WORDS)))
        bell = bell_around(0, places, centre=QUERY, window=2 * self.spread)
        plain, weights = scores.softmax(0), (scores + bell).softmax(0)
        return {"bell": bell.exp(), "plain": plain, "weights": weights}
