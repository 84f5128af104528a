"""One trained layer, used again and again: what moves, what it answers, also beyond training."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

TRAINED = 3


@cache
def trained() -> list[dict[str, Any]]:
    """The stored models of three steps: with the step in their signal, and without."""
    found = [x for x in stored.load("hops")["fixed"] if x["config"]["T"] == TRAINED]
    found.sort(key=lambda x: not x["config"]["signal of steps"])
    return [{"rows": x["row"], "longer": x["longer"]} for x in found]


class SameLayer(Explorer):
    """A Universal Transformer that learned hops with three steps, run for one to eight.

    t       steps taken, 1 to 8;  seed   which training, 0 to 2
    told    whether the signal tells the step: "position and step" or "position alone"

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "same_layer"
    label: ClassVar[str] = "One layer, again and again: what its states do"
    min_height: ClassVar[str] = "42rem"
    min_height_narrow: ClassVar[str] = "92rem"

    t = knob(1, low=1, high=8, label="steps taken", letter="t")
    told = knob("position and step", of=["position and step", "position alone"], label="signal")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Press play: when do the five answers stand, and do they stay?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"trained": trained(), "T": TRAINED}

    def numbers(self) -> dict[str, Any]:
        """How far each of ten states moved in each step, the answers now, and the share of right
        answers of the test after each number of steps."""
        one = trained()[int(self.told == "position alone")]
        row = one["rows"][self.seed]
        return {
            "moved": row["moved"],
            "says": row["says"][self.t - 1],
            "hits": sum(
                a == b for a, b in zip(row["says"][self.t - 1], row["answers"], strict=True)
            ),
            "longer": one["longer"][self.seed],
        }
