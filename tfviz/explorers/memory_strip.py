"""Which of the far memories each query retrieves, in a trained layer."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import torch

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

ANSWERS = "abcd"


@cache
def strip() -> dict[str, Any]:
    """Of the stored experiment: two segments of a stream, and what was said before them.

    `names` is what each of the tokens is called, the last 32 are those that ask; `about` is the
    name that a question asks for or a fact tells, −1 of noise.
    """
    found = stored.load("far_facts")
    shown, (values, names, _) = found["shown"], found["symbols"]
    words, about = [], []
    for t in shown["past"]:
        name = (t - values) // values if t < values + names * values else t - values * (names + 1)
        fact, question = t < values + names * values, t < values * (names + 1) + names
        about.append(name if question else -1)
        told = f"{name}={ANSWERS[(t - values) % values]}" if fact else f"{name}?"
        words.append(told if question else "·")
    rows = [{x: row[x] for x in ("kind", "back", "scores")} for row in shown["rows"]]
    return {
        "words": words, "about": about, "rows": rows, "gates": shown["gates"], "m": shown["m"],
        "k": shown["k"],
    }  # fmt: skip


class MemoryStrip(Explorer):
    """32 tokens of a stream of facts and questions, and what two heads find for each of them.

    token   which of the 32;  k   how many memories a head may read, 1 to 8
    flat    what scores are divided by: 1 as trained, more makes the weights more even

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "memory_strip"
    label: ClassVar[str] = "Memory strip: what each query finds in a long past"
    min_height: ClassVar[str] = "55rem"
    min_height_narrow: ClassVar[str] = "87rem"

    token = knob(0, low=0, high=31, label="token", letter="t")
    k = knob(8, low=1, high=8, label="memories a head reads", letter="k")
    flat = knob(1.0, low=0.5, high=8, step=0.5, label="scores divided by")
    asks = "Press play. Whenever a question comes, watch where in the past the heads look."

    @classmethod
    def data(cls) -> dict[str, Any]:
        return strip()

    def weights(self, token: int) -> list[list[float]]:
        """Of the k memories of each head."""
        scores = torch.tensor(strip()["rows"][token]["scores"], dtype=torch.float64)
        return (scores[:, : self.k] / self.flat).softmax(-1).tolist()

    def right(self, token: int) -> float:
        """The share of both heads' weight on facts of the name that is asked for; 0 of others."""
        one, at = strip(), strip()["m"] + token
        if not one["rows"][token]["kind"]:
            return 0.0
        shares = [
            sum(
                w
                for w, back in zip(ws, backs, strict=False)
                if one["about"][at - back] == one["about"][at] and "=" in one["words"][at - back]
            )
            for ws, backs in zip(self.weights(token), one["rows"][token]["back"], strict=True)
        ]
        return sum(shares) / len(shares)

    def numbers(self) -> dict[str, Any]:
        """The weights of this token, and for every token the share on facts of its own name."""
        return {
            "weights": self.weights(self.token),
            "right": [self.right(t) for t in range(len(strip()["rows"]))],
        }
