"""The scene of chapter 19: a random cut through the directions decides which words meet."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.sparse import reformer_lsh as lsh

WORDS = {
    # word: the direction of its vector in degrees; the first one asks
    "orange": 0,
    "lemon": 14,
    "pear": 27,
    "apple": 40,
    "king": 75,
    "queen": 95,
    "prince": 115,
    "cow": 157,
    "horse": 172,
    "sheep": 187,
    "goat": 202,
    "walk": 245,
    "run": 265,
    "jump": 285,
    "blue": 320,
    "red": 333,
    "yellow": 346,
}
LENGTH = 6.0


class RandomCut(Explorer):
    """Words in the plane, cut into four buckets. Their directions are made up."""

    label = "A cut through a circle of words: which ones share a bucket with one of them"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(words=WORDS, length=LENGTH)

    turn = knob(0, low=-40, high=40, label="turn of the cut, in degrees")

    def numbers(self) -> Numbers:
        """The bucket of each word, full attention's weights of the first one, and how much of
        them its bucket keeps."""
        angles = exact([*WORDS.values()]).deg2rad()
        X = LENGTH * torch.stack([angles.cos(), angles.sin()], -1)
        turn = exact(self.turn).deg2rad()
        R = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()]).view(1, 2, 2)
        bucket = lsh.buckets(X, (R,))[0]
        A = lsh.lsh_definition(X, X, torch.ones(len(X), len(X), dtype=torch.bool))[1]
        kept = A[0, bucket == bucket[0]].sum()
        return {"bucket": bucket, "weights": A[0], "kept": kept}
