"""Poolingformer: the tokens that a query reads one by one, and those that it reads pooled."""

from tfviz.compressed.poolingformer import slots
from tfviz.explorers.base import Explorer, Numbers, handed, knob

L = 64


class TwoLevelPooling(Explorer):
    """A window of fine keys around the query, and a wider one of pooled keys, in 64 tokens."""

    label = "Poolingformer: a window of tokens and a wider one of pooled tokens"
    rem = 34.5, 35.5, 35.5, 38, 67
    data = handed(L=L)

    query = knob(32, low=0, high=L - 1, label="query", letter="i")
    w1 = knob(3, low=0, high=16, label="fine window, each side", letter="w₁")
    size = knob(3, of=[1, 3, 5, 7, 9], label="tokens in a pooled key", letter="κ = ξ")
    sides = knob(4, low=0, high=8, label="pooled keys, each side")
    asks = "Make the pooled keys larger but keep the reach: how does the number of keys change?"

    def numbers(self) -> Numbers:
        """The window of level 2, its slots as [first, last] token, and how many keys are read."""
        half = self.size // 2
        w2 = self.sides * self.size + half
        centres = [self.query + n * self.size for n in range(-self.sides, self.sides + 1)]
        pooled = [
            [max(c - half, 0), min(c + half, L - 1)] for c in centres if -half <= c < L + half
        ]
        return {
            "w2": w2,
            "pooled": pooled,
            "keys": 2 * self.w1 + 1 + slots(w2, self.size, self.size),
            "reach": self.w1 + w2,
        }
