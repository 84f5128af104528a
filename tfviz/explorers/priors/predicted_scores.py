"""The scores of a layer as an image, and the guess that a 3 × 3 kernel makes from it."""

from typing import Any

import torch

from tfviz.dense_attention import CAUSAL, FULL
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.priors.predictive_attention import convolved

L = 8
BELOW = [  # made up: each query has one score that stands out
    [4, 1, 0, 2, 0, 1, 0, 0],
    [5, 1, 0, 0, 1, 0, 2, 0],
    [1, 5, 1, 3, 0, 0, 0, 1],
    [0, 0, 5, 1, 0, 2, 0, 0],
    [0, 1, 0, 5, 1, 0, 3, 0],
    [1, 0, 5, 0, 1, 1, 0, 2],
    [0, 1, 0, 1, 5, 1, 0, 0],
    [0, 0, 1, 0, 2, 6, 1, 1],
]
OWN = [
    [1, 0, 0, 0, 0, 0, 0, 0],
    [2, 1, 0, 0, 0, 1, 0, 0],
    [0, 3, 0, 1, 0, 0, 0, 0],
    [4, 0, 1, 0, 0, 0, 1, 0],
    [0, 1, 3, 0, 0, 0, 0, 1],
    [0, 0, 0, 4, 1, 0, 0, 0],
    [1, 0, 0, 4, 0, 1, 0, 0],
    [0, 4, 0, 0, 0, 1, 0, 0],
]
KERNELS: dict[str, list[list[float]]] = {  # rows: the query before, this one, the next one
    "right": [[0, 0, 0], [0, 0, 1], [0, 0, 0]],
    "middle": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    "diagonal": [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
    "blur": [[0, 0, 0], [0.25, 0.5, 0.25], [0, 0, 0]],
    "next": [[0, 0, 0], [0, 0, 0], [0, 1, 0]],
}
NAMES = {
    "right": "takes the score to the right",
    "middle": "takes the score of the same pair",
    "diagonal": "takes the score one query before, one key to the left",
    "blur": "takes a weighted mean of three keys",
    "next": "takes the score of the next query",
}
READERS: dict[str, Any] = {"gpt": "hidden (GPT)", "bert": "visible (BERT)"}


class PredictedScores(Explorer):
    """Eight queries and eight keys: scores from below, the kernel, and the scores in use.

    i, j   the pixel whose surroundings are framed
    """

    label = "Scores from below as an image, and what a kernel guesses from it"
    rem = 44, 44, 44, 45, 112
    data = handed(below=BELOW, own=OWN, kernels=KERNELS)

    kernel = knob("right", of=NAMES, label="the kernel")
    alpha = knob(0.0, of=[0.0, 0.25, 0.5, 0.75, 1.0], label="weight of own scores", letter="α")
    reader = knob("gpt", of=READERS, label="the future is")
    i = knob(6, low=0, high=L - 1, label="query", letter="i")
    j = knob(5, low=0, high=L - 1, label="key", letter="j")
    asks = "Choose “takes the score of the next query”: what do a GPT and a BERT see of it?"

    def numbers(self) -> Numbers:
        """The image that the kernel reads, its guess, the scores in use, and the weights."""
        mask = (CAUSAL if self.reader == "gpt" else FULL).mask(L)
        image = exact(BELOW).masked_fill(~mask, 0.0)
        kernel = exact(KERNELS[self.kernel])[None, None]
        guess = convolved(image[None, None], kernel, ahead=self.reader == "bert")[0, 0]
        used = self.alpha * exact(OWN) + (1 - self.alpha) * guess
        weights = torch.softmax(used.masked_fill(~mask, -torch.inf), -1)
        return {"image": image, "guess": guess, "used": used, "weights": weights}
