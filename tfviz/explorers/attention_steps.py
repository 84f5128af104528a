"""All steps of one attention on a short sentence; each cell explains its own arithmetic."""

import traitlets as t

from tfviz import _arguments, patterns
from tfviz.attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, given, knob, table

MOST_WORDS, MOST_WIDTH = 8, 4


class AttentionSteps(Explorer):
    """Q Kᵀ, the scale, the mask, the softmax and the blend, with linked cells.

    Q, K, V    a row for each of up to 8 words; Q and K of equal width ≤ 4, V of width ≤ 4
    """

    label = "Attention step by step: scores, weights and output of each word"
    rem = 62.5, 125
    narrow = 640

    Q = given(t.List(t.List(t.Float())))
    K = given(t.List(t.List(t.Float())))
    V = given(t.List(t.List(t.Float())))
    words = given(t.List(t.Unicode()))
    row = knob(0, low=0, high=lambda e: len(e.words) - 1, label="query", letter="i")
    column = knob(0, low=0, high=lambda e: len(e.words) - 1, label="key", letter="j")
    scale = knob(True, label="divide by √dₖ")
    causal = knob(False, label="causal mask: only j ≤ i")
    asks = (
        "Predict which word the selected one listens to most. Then choose any cell of the two "
        "large tables, or move with the arrow keys: it explains itself."
    )

    def prepare(self, said: Numbers) -> Numbers:
        words = list(said["words"])
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        L, width = len(words), range(1, MOST_WIDTH + 1)
        rows = {name: table(name, said[name], L, width) for name in "QKV"}
        table("K", rows["K"], L, len(rows["Q"][0]))
        return said | rows | {"words": words}

    def numbers(self) -> Numbers:
        """Q Kᵀ, A and Z = A V, as the library computes them."""
        Q, K, V = map(exact, (self.Q, self.K, self.V))
        scores = Q @ K.T
        if not self.scale:  # attention divides by √d_k; cancel it
            Q = Q * Q.shape[-1] ** 0.5
        Z, A = attention(Q, K, V, patterns.causal() if self.causal else None)
        return {"scores": scores, "weights": A, "output": Z}
