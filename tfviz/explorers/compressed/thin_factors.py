"""The scene of chapter 21: an attention map is rebuilt from two thin matrices of rank k."""

import torch

from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob, uniforms

TOPICS = "AAABBAACCCCABBBBDDACCCAABBBDDDDC"
TOPIC, SELF, STRENGTH = 6.0, 0.8, 0.5
"""What a score gains if both tokens have one topic, if they are the same token, and how much keys
differ in strength."""
SEED = 5


class ThinFactors(Explorer):
    """A map of 32 tokens that look at their topic and at themselves, and the best matrix of rank k.

    The scores are made up: four topics, a little for the token itself, keys of random strength.
    """

    label = "An attention map, and its rebuild from two thin matrices"
    scene = True
    uses = ("shared/cells",)
    rem = 26.5, 24, 22, 19.5, 26.5
    data = handed(topics=TOPICS, gains=[TOPIC, SELF, STRENGTH, SEED])

    k = knob(4, low=1, high=16, label="rank", letter="k")

    def numbers(self) -> Numbers:
        """The map, the best matrix of rank k, and how much of the attention it has."""
        L = len(TOPICS)
        topic = exact([[float(x == y) for y in "ABCD"] for x in TOPICS])
        ones, same = torch.ones(L, 1, dtype=torch.float64), torch.eye(L, dtype=torch.float64)
        strength = STRENGTH * exact(uniforms(SEED, L).tolist())[:, None]
        Q = torch.cat([topic, ones, same], 1)
        K = torch.cat([TOPIC * topic, strength, SELF * same], 1)
        A = attention(Q * Q.shape[1] ** 0.5, K, K)[1]
        U, S, V = torch.linalg.svd(A)
        rebuilt = (U[:, : self.k] * S[: self.k]) @ V[: self.k]
        right = A.minimum(rebuilt).clamp(min=0).sum() / L
        return {"map": A, "rebuilt": rebuilt, "right": right}
