"""One trained layer, applied again and again: how its states move and what it answers."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

TRAINED = 3


@cache
def trained() -> list[Numbers]:
    """The stored models of three steps: with the step in their signal, and without."""
    models = [x for x in stored.load("ponder_time")["fixed"] if x["config"]["T"] == TRAINED]
    models.sort(key=lambda x: not x["config"]["signal of steps"])
    return [{"rows": x["row"], "longer": x["longer"]} for x in models]


class LayerRecurrence(Explorer):
    """A Universal Transformer that learned hops with three steps, run for one to eight."""

    label = "One layer, again and again: how its states move"
    rem = 38, 38, 29.5, 33, 89
    data = handed(trained=trained, T=TRAINED)

    t = knob(TRAINED, low=1, high=8, label="steps taken", letter="k")
    told = knob("position and step", of=["position and step", "position alone"], label="signal")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Go through the steps from step 1, with each seed: do five correct answers stay correct?"

    def numbers(self) -> Numbers:
        """How far each of ten states moved in each step, the answers now, and the share of correct
        answers in the test after each number of steps."""
        one = trained()[int(self.told == "position alone")]
        row = one["rows"][self.seed]
        says = row["says"][self.t - 1]
        hits = sum(a == b for a, b in zip(says, row["answers"], strict=True))
        longer = one["longer"][self.seed]
        return {"moved": row["moved"], "says": says, "hits": hits, "longer": longer}
