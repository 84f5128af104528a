"""Sinkhorn's steps: rows, columns, rows, … until every block of keys goes to one block."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.sparse import sparse_sinkhorn as sk

SCORES = [
    [2.0, 1.7, 0.0, 0.2, 0.1],
    [2.4, 0.3, 0.2, 0.1, 0.0],
    [0.1, 0.2, 0.3, 1.5, 1.2],
    [0.2, 0.1, 0.4, 1.8, 0.3],
    [0.0, 0.3, 1.4, 0.5, 0.9],
]
N, STEPS = len(SCORES), 20


class SinkhornSteps(Explorer):
    """Five blocks of queries, five of keys, and the scores R between them."""

    label = "Sinkhorn's steps: rows and columns in turn, until both sum to one"
    rem = 37.5, 31, 31, 32.5, 81
    data = handed(R=SCORES)

    step = knob(1, low=0, high=STEPS, label="normalisations")
    tau = knob(0.2, of=[0.1, 0.2, 0.4, 1.0, 2.0], label="temperature", letter="τ")
    block = knob(2, low=0, high=N - 1, label="block of queries", letter="u")
    asks = "Blocks 0 and 1 both want block 0. Press play: which of them gives way?"

    def numbers(self) -> Numbers:
        """P after these steps (at 0, exp(R/τ) over its largest number), the sums of its columns and
        rows, and the block of keys that has most of each row."""
        R = exact(SCORES)
        P = sk.sinkhorn(R if self.step else R - R.max(), self.step, self.tau)
        return {"P": P, "columns": P.sum(0), "rows": P.sum(1), "most": P.argmax(1)}
