"""Spans that heads of a small GPT have learned, step by step, under several prices."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob


@cache
def learned() -> dict[str, Any]:
    """The stored experiment."""
    found = stored.load("spans")
    return {name: found[name] for name in ("longest", "every", "learned")}


def words() -> list[str]:
    """How the runs are called: the price, and where the spans began if not in the middle."""
    runs, first = learned()["learned"], learned()["learned"][0]["start"]
    return [
        f"λ = {run['price']:g}" + ("" if run["start"] == first else f", from z = {run['start']}")
        for run in runs
    ]


class LearnedSpans(Explorer):
    """Twelve heads in three layers, their spans as they were learned on English letters.

    run    which price λ, of the stored ones;  seed   which training, 0 to 2
    time   how far it has come, 0 to 10, in tenths

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "learned_spans"
    label: ClassVar[str] = "Spans that heads have learned, under several prices"
    min_height: ClassVar[str] = "42rem"
    min_height_narrow: ClassVar[str] = "92rem"

    time = knob(0, low=0, high=10, label="training")
    run = knob(0, of=[0, 1, 2, 3, 4], label="price of a span")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Answer the grey box, press play, and watch the layers. Then choose another price."

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {**learned(), "words": words()}

    def numbers(self) -> dict[str, Any]:
        """The span of each head of each layer now, the mean of each layer at every time, the loss
        at the end."""
        run = learned()["learned"][self.run]
        history = run["spans"][self.seed]
        mean = [[sum(layer) / len(layer) for layer in now] for now in history]
        return {
            "spans": history[self.time],
            "means": mean,
            "nats": run["nats"][self.seed],
            "mean": sum(mean[self.time]) / len(mean[self.time]),
        }
