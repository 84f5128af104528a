"""The scene of chapter 1: a query turns above a sentence, and the blend of the values follows."""

from tfviz.basics.soft_dictionary import lookup
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

WORDS = {
    # word: the direction of its key in degrees, the key's length, its value
    "Ann": (152, 1.0, [1.0, 0.75, 0.2, 0.1, 0.45]),
    "drank": (97, 1.0, [0.1, 0.5, 1.0, 0.5, 0.15]),
    "milk": (80, 0.8, [0.55, 0.15, 0.65, 0.95, 0.4]),
    "because": (42, 0.8, [0.3, 0.4, 0.1, 0.35, 0.6]),
    "she": (140, 0.85, [0.8, 0.6, 0.35, 0.2, 0.3]),
    "was": (65, 0.55, [0.15, 0.3, 0.55, 0.3, 0.2]),
    "thirsty": (25, 1.0, [0.2, 0.1, 0.4, 0.7, 1.0]),
}
BETA = 5.0


class TurnedQuery(Explorer):
    """A query of length 1 that turns above the keys of a sentence. Keys and values are made up."""

    label = "A query turns above a sentence: the weights and the blend of the values follow"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(words=WORDS, beta=BETA)

    angle = knob(150, low=10, high=170, label="direction of the query")

    def numbers(self) -> Numbers:
        """The weight of each word, and the blend of the values."""
        degrees, lengths, values = zip(*WORDS.values(), strict=True)
        angles = exact([self.angle, *degrees]).deg2rad()
        query, *keys = zip(angles.cos().tolist(), angles.sin().tolist(), strict=True)
        K = exact(keys) * exact(lengths)[:, None]
        blend, weights = lookup(exact(query), K, exact(values), beta=BETA)
        return {"weights": weights, "blend": blend}
