"""All steps of one attention on a short sentence; each cell explains its own arithmetic."""

from typing import Any

import traitlets as t

from tfviz import _arguments, patterns
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, given, knob, own, table

MOST_WORDS, MOST_WIDTH = 8, 4


EXAMPLES: dict[str, Numbers] = {
    "": {
        "Q": [[0.0, 0.1], [0.2, 1.0], [2.0, 0.0], [0.3, 0.0], [3.0, 0.2], [2.0, 0.1]],
        "K": [[0.2, 0.0], [2.0, 0.2], [0.0, 2.0], [0.0, 0.0], [0.4, 0.0], [0.2, 2.0]],
        "V": [[0.1, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 0.0], [0.2, 0.0], [0.1, 1.0]],
        "words": ["the", "cat", "sleeps", "because", "it", "purrs"],
        "row": 4,
        "column": 1,
        "cards": {
            "dog": [[0.1, 1.0], [1.8, 0.2], [0.9, 0.1]],
            "barks": [[2.0, 0.0], [0.0, 2.2], [0.0, 1.1]],
            "it": [[3.0, 0.2], [0.4, 0.0], [0.2, 0.0]],
        },
    }
}


class AttentionSteps(Explorer):
    """Q Kᵀ, the scale, the mask, the softmax and the blend, with linked cells.

    Q, K, V    a row for each of up to 8 words; Q and K of equal width ≤ 4, V of width ≤ 4
    yours      a sentence of the reader's own instead, made of words that have cards
    cards      {word: its rows of Q, K and V}
    """

    label = "Attention step by step: scores, weights and output of each word"
    rem = 62.5, 125
    narrow = 640

    Q, K, V = (given(t.List(t.List(t.Float()))) for _ in "QKV")
    words = given(t.List(t.Unicode()))
    yours = own(t.Unicode(""), optional=True)
    row = knob(0, low=0, high=lambda e: len(e.shown) - 1, label="query", letter="i")
    column = knob(0, low=0, high=lambda e: len(e.shown) - 1, label="key", letter="j")
    scale = knob(True, label="divide by √dₖ")
    causal = knob(False, label="causal mask: only j ≤ i")
    cards = given(t.Dict(), optional=True)
    examples = EXAMPLES
    asks = "Choose any cell of the two large tables to see how it is computed."

    def prepare(self, said: Numbers) -> Numbers:
        words = list(said["words"])
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        L, width = len(words), range(1, MOST_WIDTH + 1)
        rows = {name: table(name, said[name], L, width) for name in "QKV"}
        table("K", rows["K"], L, len(rows["Q"][0]))
        cards = dict(said.get("cards", {}))
        for word, card in cards.items():
            _arguments.integer(f"number of cards of {word!r}", len(card), 3, 3)
            three = zip("QKV", card, strict=True)
            cards[word] = [table(f"{n} of {word!r}", [x], 1, len(rows[n][0]))[0] for n, x in three]
        return said | rows | {"words": words, "cards": cards}

    @t.validate("yours")
    def _yours(self, proposal: Any) -> str:
        words = proposal["value"].split()
        if strange := [word for word in words if word not in self.cards]:
            raise ValueError(f"yours has {strange[0]!r}; cards has {', '.join(self.cards)}")
        _arguments.integer("number of words in yours", len(words), 0, MOST_WORDS)
        return str(proposal["value"])

    @property
    def shown(self) -> list[str]:
        """The words of the sentence."""
        return self.yours.split() or self.words

    def heights(self) -> dict[int, float]:
        field = (4.6 + len(", ".join(self.cards)) / 23) * bool(self.cards)
        return {0: 46, 980: 46, 820: 43.5, 640: 120.5 + field}

    def numbers(self) -> Numbers:
        """Q Kᵀ, A and Z = A V, as the library computes them."""
        own_rows = zip(*(self.cards[word] for word in self.yours.split()), strict=True)
        Q, K, V = map(exact, list(own_rows) or (self.Q, self.K, self.V))
        scores = Q @ K.T
        if not self.scale:  # attention divides by √d_k; cancel it
            Q = Q * Q.shape[-1] ** 0.5
        Z, A = attention(Q, K, V, patterns.causal() if self.causal else None)
        return {"scores": scores, "weights": A, "output": Z}
