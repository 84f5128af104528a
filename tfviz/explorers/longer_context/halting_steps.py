"""Adaptive computation time at six words: the halting number of each step, and its sum."""

from functools import cache

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context.act import halting

WORDS = ["the", "old", "man", "the", "boats", "."]
H = [
    [0.9, 0.92, 0.94, 0.95, 0.95, 0.96, 0.96, 0.97],
    [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.8, 0.8],
    [0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.7, 0.7],
    [0.12, 0.18, 0.24, 0.3, 0.36, 0.4, 0.45, 0.5],
    [0.25, 0.35, 0.45, 0.55, 0.6, 0.65, 0.7, 0.7],
    [0.995, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99],
]
"""Chosen by us: the halting numbers of each word at each of M steps, for b = 0."""
M = len(H[0])


@cache
def logits() -> list[list[float]]:
    """s w: what the bias is added to."""
    return exact(H).logit().tolist()


class HaltingSteps(Explorer):
    """Six words that think until Σ η reaches 1 − ε, eight steps at most."""

    label = "Halting: when each word has thought enough"
    rem = 37.5, 38.5, 32, 32, 66
    data = handed(words=WORDS, logits=logits)

    step = knob(1, low=1, high=M, label="step", letter="k")
    b = knob(0.0, low=-4.0, high=8.0, step=0.1, label="halting bias", letter="b")
    eps = knob(0.01, low=0.0, high=0.5, step=0.01, label="allowed shortfall", letter="ε")
    tau = knob(0.01, low=0.0, high=0.5, step=0.01, label="price of a step", letter="τ")
    asks = "Press play from step 1: which word halts first, and which last?"

    def numbers(self) -> Numbers:
        """Steps N and remainder R of each word, its weights, how many words run at each step, and
        τ times the mean of N + R."""
        h = (exact(logits()) + self.b).sigmoid()
        N, R, p = halting(h, self.eps)
        ran = [(n <= N).sum() for n in range(1, M + 1)]
        return {"N": N, "R": R, "p": p, "ran": ran, "price": self.tau * (N + R).mean()}
