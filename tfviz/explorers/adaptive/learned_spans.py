"""Spans that heads of a small GPT have learned, step by step, at several prices."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob


@cache
def learned() -> Numbers:
    """The stored experiment."""
    result = stored.load("adaptive_spans")
    return {name: result[name] for name in ("longest", "every", "learned")}


def words() -> list[str]:
    """The name of each run: the price, and where the spans began if not in the middle."""
    runs, first = learned()["learned"], learned()["learned"][0]["start"]
    return [
        f"λ = {run['price']:g}" + ("" if run["start"] == first else f", from z = {run['start']}")
        for run in runs
    ]


class LearnedSpans(Explorer):
    """Twelve heads in three layers, their spans as they were learned on English letters.

    run, time    which of the stored prices λ; how far training has come, in tenths
    """

    label = "Spans that heads have learned, at several prices"
    rem = 33.5, 33.5, 30, 35, 82
    data = handed(learned, words=words)

    time = knob(10, low=0, high=10, label="training")
    run = knob(0, of=[0, 1, 2, 3, 4], label="price of a span")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Choose another price and other seeds: which layer ends with the longest spans?"

    def numbers(self) -> Numbers:
        """The span of each head of each layer now, the mean of each layer at every time, the loss
        at the end."""
        run = learned()["learned"][self.run]
        history = run["spans"][self.seed]
        mean = [[sum(layer) / len(layer) for layer in now] for now in history]
        now = {"spans": history[self.time], "mean": sum(mean[self.time]) / len(mean[self.time])}
        return now | {"means": mean, "nats": run["nats"][self.seed]}
