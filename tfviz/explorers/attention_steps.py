"""All steps of one attention on a short sentence; each cell explains its own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets as t
from torch import Tensor

from tfviz import _arguments, patterns
from tfviz.attention import attention
from tfviz.explorers.base import Explorer

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
    min_height: ClassVar[str] = "50rem"
    min_height_narrow: ClassVar[str] = "81rem"
    narrow: ClassVar[int] = 640

    Q = t.List(t.List(t.Float())).tag(sync=True)
    K = t.List(t.List(t.Float())).tag(sync=True)
    V = t.List(t.List(t.Float())).tag(sync=True)
    words = t.List(t.Unicode()).tag(sync=True)
    row = t.Int(0).tag(sync=True)
    column = t.Int(0).tag(sync=True)
    scale = t.Bool(True).tag(sync=True)
    causal = t.Bool(False).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        Q: Sequence[Sequence[float]],
        K: Sequence[Sequence[float]],
        V: Sequence[Sequence[float]],
        words: Sequence[str],
        row: int = 0,
        column: int = 0,
        scale: bool = True,
        causal: bool = False,
        prompt: str = "",
    ) -> None:
        _arguments.integer("number of words", len(words), 1, MOST_WORDS)
        tables: dict[str, list[list[float]]] = {}
        for name, rows in (("Q", Q), ("K", K), ("V", V)):
            # six digits: a float32 that was typed as 0.2 travels as 0.2
            table = [[round(_arguments.real(name, x), 6) for x in r] for r in rows]
            widths = {len(r) for r in table}
            if len(table) != len(words) or len(widths) != 1 or not 1 <= max(widths) <= MOST_WIDTH:
                raise ValueError(
                    f"{name} has {len(table)} rows of widths {sorted(widths)}; give {len(words)} "
                    f"rows, one for each word, of one width from 1 to {MOST_WIDTH}"
                )
            tables[name] = table
        if len(tables["Q"][0]) != len(tables["K"][0]):
            raise ValueError("rows of Q and K differ in width; a dot product needs equal widths")
        last = len(words) - 1
        super().__init__(
            **tables, words=list(words), scale=scale, causal=causal,
            row=_arguments.integer("row", row, 0, last),
            column=_arguments.integer("column", column, 0, last),
            prompt=prompt or "Predict which word the selected one listens to most. Then choose any "
            "cell of the two large tables, or move with the arrow keys: it explains itself.",
        )  # fmt: skip

    def _attention(self) -> tuple[Tensor, Tensor]:
        Q, K, V = (torch.tensor(x, dtype=torch.float64) for x in (self.Q, self.K, self.V))
        if not self.scale:  # attention divides by √d_k; cancel it
            Q = Q * Q.shape[-1] ** 0.5
        return attention(Q, K, V, patterns.causal() if self.causal else None)

    @property
    def weights(self) -> list[list[float]]:
        """A, as the library computes it."""
        return self._attention()[1].tolist()

    @property
    def output(self) -> list[list[float]]:
        """Z = A V."""
        return self._attention()[0].tolist()

    def __repr__(self) -> str:
        options: dict[str, Any] = {
            "row": self.row, "column": self.column, "scale": self.scale, "causal": self.causal
        }  # fmt: skip
        return f"AttentionSteps({' '.join(self.words)!r}, " + ", ".join(
            f"{k}={v}" for k, v in options.items()
        ) + ")"  # fmt: skip
