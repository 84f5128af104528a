"""The scene of chapter 28: four heads of one word, pulled apart or pushed together."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.disagreement_regularization import between, cosines
from tfviz.heads.talking_heads import mixed

WORDS = ["yesterday", "the", "old", "dog", "chased", "a", "red", "ball", "home"]
QUERY = WORDS.index("chased")
HEADS = {
    # what a head asks: the scores of the words that answer, all others have 0
    "when?": {"yesterday": 5},
    "who?": {"dog": 5, "old": 4},
    "what?": {"ball": 5, "red": 4},
    "where?": {"home": 5},
}


class PulledApart(Explorer):
    """The weights of “chased” in four heads, whose scores are mixed with the mean of all heads.

    Scores are made up. Apart, each head has its own scores; together, all of them have the mean.
    The values of different words stand at right angles to one another, with length 1, so what a
    head finds is the row of its weights.
    """

    label = "Four heads of one word are pulled apart: they find the same, or different words"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(words=WORDS, query=QUERY, heads=HEADS)

    apart = knob(1.0, of=[k / 20 for k in range(21)], label="how far heads are apart")

    def numbers(self) -> Numbers:
        """The weights of each head, and the mean cosine of what two of them find."""
        own = exact([[float(asks.get(word, 0)) for word in WORDS] for asks in HEADS.values()])
        h = len(own)
        P = self.apart * torch.eye(h) + (1 - self.apart) / h * torch.ones(h, h)
        weights = mixed(own[None, :, None], P.to(own))[0].softmax(-1)
        return {"weights": weights[:, 0], "alike": between(cosines(weights))}
