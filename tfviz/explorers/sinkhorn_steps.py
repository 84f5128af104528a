"""Sinkhorn's steps: rows, columns, rows, … until every block goes to one place."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob
from tfviz.sparse import sparse_sinkhorn as sk

SCORES = [
    [2.0, 1.7, 0.0, 0.2, 0.1],
    [2.4, 0.3, 0.2, 0.1, 0.0],
    [0.1, 0.2, 0.3, 1.5, 1.2],
    [0.2, 0.1, 0.4, 1.8, 0.3],
    [0.0, 0.3, 1.4, 0.5, 0.9],
]
N, STEPS = len(SCORES), 20
TAUS = [0.1, 0.2, 0.4, 1.0, 2.0]


class SinkhornSteps(Explorer):
    """Five blocks of queries, five of keys, and the scores R between them.

    step   normalisations so far, 0 to 20: rows, columns, rows, …;  tau   temperature, 0.1 to 2
    block  the block of queries that is framed, 0 to 4

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "sinkhorn_steps"
    label: ClassVar[str] = "Sinkhorn's steps: rows and columns in turn, until both sum to one"
    min_height: ClassVar[str] = "44rem"
    min_height_narrow: ClassVar[str] = "91.5rem"

    step = knob(1, low=0, high=STEPS, label="normalisations")
    tau = knob(0.2, of=TAUS, label="temperature", letter="τ")
    block = knob(2, low=0, high=N - 1, label="block of queries", letter="u")
    asks = "Blocks 2 and 3 both want block 3. Press play: who gets it, and what does the other get?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"R": SCORES}

    def numbers(self) -> dict[str, Any]:
        """P after these steps (at 0, exp(R/τ) over its largest number), the sums of its columns and
        rows, and the block of keys that has most of each row."""
        R = torch.tensor(SCORES, dtype=torch.float64)
        P = sk.sinkhorn(R if self.step else R - R.max(), self.step, self.tau)
        return {
            "P": P.tolist(),
            "columns": P.sum(0).tolist(),
            "rows": P.sum(1).tolist(),
            "most": P.argmax(1).tolist(),
        }
