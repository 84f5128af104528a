"""All steps of one attention on a short sentence; each cell explains its own arithmetic."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import traitlets as t

from tfviz import _arguments, patterns
from tfviz.attention import attention
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import given, knob

MOST_WORDS, MOST_WIDTH = 8, 4


class AttentionSteps(Explorer):
    """Q Kᵀ, the scale, the mask, the softmax and the blend, with linked cells.

    Q, K, V       L rows each, L ≤ 8; Q and K of equal width ≤ 4, V of width ≤ 4
    words         L words; row, column   the cell that is explained
    scale         divide by √d_k;  causal   only keys j ≤ i are allowed

    Raises ValueError for shapes or values that do not fit.
    """

    module: ClassVar[str] = "attention_steps"
    label: ClassVar[str] = "Attention step by step: scores, weights and output of each word"
    min_height: ClassVar[str] = "62.5rem"
    min_height_narrow: ClassVar[str] = "125rem"
    narrow: ClassVar[int] = 640

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

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        words = list(said["words"])
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        for name in ("Q", "K", "V"):
            # six digits: a float32 that was typed as 0.2 travels as 0.2
            table = [[round(_arguments.real(name, x), 6) for x in r] for r in said[name]]
            widths = {len(r) for r in table}
            if len(table) != len(words) or len(widths) != 1 or not 1 <= max(widths) <= MOST_WIDTH:
                raise ValueError(
                    f"{name} has {len(table)} rows of widths {sorted(widths)}; give {len(words)} "
                    f"rows, one for each word, of one width from 1 to {MOST_WIDTH}"
                )
            said[name] = table
        if len(said["Q"][0]) != len(said["K"][0]):
            raise ValueError("rows of Q and K differ in width; a dot product needs equal widths")
        return said | {"words": words}

    def numbers(self) -> dict[str, Any]:
        """Q Kᵀ, A and Z = A V, as the library computes them."""
        Q, K, V = (torch.tensor(x, dtype=torch.float64) for x in (self.Q, self.K, self.V))
        scores = Q @ K.T
        if not self.scale:  # attention divides by √d_k; cancel it
            Q = Q * Q.shape[-1] ** 0.5
        Z, A = attention(Q, K, V, patterns.causal() if self.causal else None)
        return {"scores": scores.tolist(), "weights": A.tolist(), "output": Z.tolist()}
