"""Early exit on a text: which blocks are computed, what is said, and what it costs."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

MEASURES = ["softmax response", "saturation", "classifier"]


@cache
def found() -> dict[str, Any]:
    """The stored experiment: at each threshold the exits and what is said, behind the prompt."""
    result = stored.load("exits")
    prompt = result["prompt"]
    text = result["depths"]["aligned"][0]["text"]
    seeds = [
        {
            name: {
                "points": one["measures"][name]["points"],
                "exits": [row[prompt:] for row in one["measures"][name]["exits"]],
                "said": [row[prompt:] for row in one["measures"][name]["said"]],
            }
            for name in MEASURES
        }
        for one in result["early"]
    ]
    full = [one["said"][-1][prompt:] for one in result["depths"]["aligned"]]
    return {"seeds": seeds, "full": full, "text": text[prompt + 1 :], "levels": result["levels"]}


class ExitEarly(Explorer):
    """48 letters, four blocks: computed or skipped, at 21 thresholds of three measures.

    level   which threshold, 0 to 20;  measure   "softmax response", "saturation" or "classifier"
    letter   which is framed, 0 to 47;  seed   which training, 0 to 2

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "exit_early"
    label: ClassVar[str] = "Early exit: blocks that each letter computes"
    min_height: ClassVar[str] = "56.5rem"
    min_height_narrow: ClassVar[str] = "85rem"

    letter = knob(8, low=0, high=47, label="letter", letter="t")
    level = knob(2, low=0, high=20, label="threshold", letter="λ")
    measure = knob("softmax response", of=MEASURES, label="measure of confidence")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Drag the point along its curve. Which letters are easy?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return found()

    def numbers(self) -> dict[str, Any]:
        """On this text the exits and how many letters are as all blocks say; on 128 texts mean
        depth, share of FLOPs, agreement and right letters."""
        one = found()["seeds"][self.seed][self.measure]
        said, full = one["said"][self.level], found()["full"][self.seed]
        return {
            "exits": [int(n) for n in one["exits"][self.level]],
            "same": sum(a == b for a, b in zip(said, full, strict=True)),
            **one["points"][self.level],
        }
