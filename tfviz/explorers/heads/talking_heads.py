"""Two heads that talk: what mixing their scores and their weights does."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.talking_heads import mixed

WORDS = ["the", "old", "dog", "saw", "a", "red", "ball"]
SCORES = [[0.5, -0.5, 2.5, 1.0, 0.0, -1.5, 1.5], [1.0, 2.0, 0.5, -0.5, 0.0, 2.0, -1.0]]
STEP = [-1.0, -0.5, 0.0, 0.5, 1.0]


class TalkingHeads(Explorer):
    """Scores of one query in two heads, P_l, the softmax, P_w, and the weights that are left.

    `score_ab` is the entry of P_l from head a to head b, `weight_ab` that of P_w. Head 0 keeps its
    scores, and the values of head 1 meet the weights of head 1.
    """

    label = "Talking heads: two heads exchange scores and weights"
    rem = 35, 35, 36, 34.5, 69.5
    data = handed(words=WORDS, scores=SCORES)

    score_01 = knob(-1.0, of=STEP, label="$𝐏_l$ from head 0 to head 1")
    score_11 = knob(0.0, of=STEP, label="$𝐏_l$ from head 1 to head 1")
    weight_00 = knob(1.0, of=STEP, label="$𝐏_w$ from head 0 to head 0")
    weight_10 = knob(0.0, of=STEP, label="$𝐏_w$ from head 1 to head 0")
    asks = (
        "Now set $𝐏_w$ from head 1 to head 0 to −1: which words get a negative weight in head 0, "
        "and what do its weights sum to?"
    )

    def numbers(self) -> Numbers:
        """Scores after P_l, their softmax, weights after P_w, and what those sum to."""
        P_l = exact([[1.0, self.score_01], [0.0, self.score_11]])
        P_w = exact([[self.weight_00, 0.0], [self.weight_10, 1.0]])
        J = exact(SCORES)[None, :, None]
        S = mixed(J, P_l)
        W = S.softmax(-1)
        U = mixed(W, P_w)
        S, W, U = (x[0, :, 0] for x in (S, W, U))
        return {"mixed_scores": S, "weights": W, "mixed_weights": U, "sums": torch.sum(U, -1)}
