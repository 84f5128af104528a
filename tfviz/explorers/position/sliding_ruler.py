"""The scene of chapter 8: a ruler of distances slides along a sentence with its query."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.position.shaw_relative import key_scores, labels

WORDS = ["she", "put", "the", "cup", "on", "the", "desk", "and", "left"]
SCORES = [0.2, 0.8, 2.8, 1.4, 0.6, 0.4, 0.2]
"""What a head adds for keys 3 and more words before the query, 2, 1, 0 … 3 and more after it."""
LONGEST = len(SCORES) // 2


class SlidingRuler(Explorer):
    """A sentence, and a head that looks at distances alone, most at the word before the query.

    The score of each distance is made up; keys 3 or more words away share one, on each side.
    """

    label = "A ruler of distances slides along a sentence, and the weights of the words with it"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(words=WORDS, scores=SCORES)

    place = knob(3, low=0, high=len(WORDS) - 1, label="place of the query", letter="i")

    def numbers(self) -> Numbers:
        """The distance that each word is told, and its weight."""
        L = len(WORDS)
        Q, P = exact([[1.0]] * L), exact(SCORES)[:, None]
        weights = key_scores(Q, P, L).softmax(-1)
        return {"labels": labels(L, L, LONGEST)[self.place], "weights": weights[self.place]}
