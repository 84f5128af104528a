"""The scene of chapter 2: one word asks four questions at once, with four heads or with one."""

import torch

from tfviz.basics.multi_head_attention import heads
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

FEATURES = "thing", "deed", "time", "quality", "denial"
WORDS = {
    # word: how much it has of each feature
    "the": [0, 0, 0, 0.1, 0],
    "old": [0, 0, 0.2, 1, 0],
    "cat": [1, 0, 0, 0, 0],
    "never": [0, 0, 0.15, 0, 1],
    "purrs": [0, 1, 0, 0, 0],
    "at": [0, 0, 0.2, 0, 0.1],
    "night": [0.15, 0, 1, 0, 0],
}
HEADS = {
    # question: the feature it looks for, and how strongly each feature of a word asks it
    "when?": ("time", [0, 1, 0, 0, 0.4]),
    "who?": ("thing", [0, 1, 0.2, 1, 0.6]),
    "really?": ("denial", [0, 1, 0, 0, 0]),
    "what kind?": ("quality", [1, 0, 0, 0, 0]),
}
LOUD = 4.0


class SeveralQuestions(Explorer):
    """A word looks at its sentence with four heads of width 1, and with one head of width 4 that
    has the same queries and keys. The features and the questions are made up."""

    label = "A word asks several questions: four heads above the sentence, one head below it"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(features=FEATURES, words=WORDS, heads=HEADS, loud=LOUD)

    row = knob(4, low=0, high=len(WORDS) - 1, label="the word that asks")

    def numbers(self) -> Numbers:
        """The weights of the word that asks, by each of the heads and by the one head."""
        X = exact(list(WORDS.values()))
        asked = exact([asks for _, asks in HEADS.values()])[..., None] * LOUD
        sought = torch.eye(len(FEATURES), dtype=X.dtype)
        W_k = sought[[FEATURES.index(feature) for feature, _ in HEADS.values()]][..., None]
        many = heads(X, X, X, asked, W_k, W_k)[1]
        Q_all, K_all = (W.permute(2, 1, 0) for W in (asked, W_k))  # all heads side by side in one
        one = heads(X, X, X, Q_all, K_all, K_all)[1]
        return {"heads": many[:, self.row], "one": one[0, self.row]}
