"""The scene of chapter 11: stored contexts near a query vote for the next word."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context.knn_lm import mixed, p_knn

WORDS = ["Paris", "London", "Rome", "Oslo", "Quito"]
STORE = [
    # the place of a stored context in the plane, and the number of the word that came next
    (0.8, 5.2, 0), (1.6, 4.1, 0), (2.7, 5.3, 0), (0.7, 1.9, 0), (1.3, 0.7, 0), (3.5, 4.3, 0),
    (2.5, 2.0, 3), (3.7, 2.2, 3), (3.0, 0.9, 3), (4.7, 5.2, 1), (5.4, 4.0, 1), (6.6, 5.3, 1),
    (4.8, 1.0, 1), (5.5, 2.1, 1), (6.2, 0.7, 2), (7.3, 4.5, 2), (8.5, 5.2, 2), (9.1, 4.1, 2),
    (10.0, 5.3, 2), (7.1, 2.1, 4), (8.3, 2.0, 4), (7.8, 0.9, 4), (9.7, 1.9, 2), (9.4, 0.7, 2),
]  # fmt: skip
FIRST, GAINS = [3.2, 0.6, -4.6, -1.5, -1.0], [-0.8, 0.0, 0.8, 0.0, 0.0]
"""The model's own score of a word: FIRST + GAINS times how far to the right the query stands."""
NEIGHBOURS, SHARE = 4, 0.5
LOW, HIGH = [0.8, 3.0], [9.7, 3.0]


class NeighbourVotes(Explorer):
    """Contexts in a plane, each with the word that came next, and a query that moves through them.

    Places, words and the model's own scores are made up. The 4 nearest contexts vote with
    temperature 1, and get half of the prediction.
    """

    label = "Stored contexts in a plane; the nearest to the query vote for the next word"
    scene = True
    rem = 30, 30, 31.5, 31.5, 26.5
    data = handed(
        words=WORDS, store=STORE, gains=GAINS, first=FIRST, neighbours=NEIGHBOURS, share=SHARE,
        ends=[LOW, HIGH],
    )  # fmt: skip

    way = knob(77, low=0, high=100, label="way of the query, in per cent")

    def numbers(self) -> Numbers:
        """The query, the squared distance of each context, and the three distributions."""
        query = exact(LOW) + self.way / 100 * (exact(HIGH) - exact(LOW))
        keys = exact([place for *place, _ in STORE])
        words = torch.tensor([word for *_, word in STORE])
        d2 = (keys - query).square().sum(-1)
        nearest = d2.topk(NEIGHBOURS, largest=False)
        near = p_knn(nearest.values, words[nearest.indices], len(WORDS))
        model = (exact(FIRST) + exact(GAINS) * query[0]).softmax(-1)
        both = mixed(model, near, SHARE)
        return {"query": query, "d2": d2, "model": model, "near": near, "both": both}
