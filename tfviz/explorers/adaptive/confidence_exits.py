"""Early exit on a text: which blocks are computed, what is predicted, and what it costs."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

MEASURES = ["softmax response", "saturation", "classifier"]


@cache
def stored_runs() -> Numbers:
    """The stored experiment: at each threshold the exits and predictions after the prompt."""
    result = stored.load("exits")
    prompt, depths = result["prompt"], result["depths"]["aligned"]

    def after(one: Numbers) -> Numbers:
        rows = {name: [row[prompt:] for row in one[name]] for name in ("exits", "said")}
        return rows | {"points": one["points"]}

    seeds = [{name: after(one["measures"][name]) for name in MEASURES} for one in result["early"]]
    full, text = [one["said"][-1][prompt:] for one in depths], depths[0]["text"]
    return {"seeds": seeds, "full": full, "text": text[prompt + 1 :], "levels": result["levels"]}


class ConfidenceExits(Explorer):
    """48 letters, four blocks: computed or skipped, at 21 thresholds of three measures."""

    label = "Early exit: blocks computed for each letter"
    rem = 43.5, 43.5, 42.5, 44, 84.5
    data = handed(stored_runs)

    letter = knob(22, low=0, high=47, label="letter", letter="t")
    level = knob(0, low=0, high=20, label="threshold", letter="λ")
    measure = knob("softmax response", of=MEASURES, label="measure of confidence")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Drag the point along its curve: which letters exit early even at a high threshold?"

    def numbers(self) -> Numbers:
        """On this text the exits, and how many predictions are those of the full model; on 128
        texts the mean depth, the share of FLOPs, the agreement and the accuracy."""
        one = stored_runs()["seeds"][self.seed][self.measure]
        said, full = one["said"][self.level], stored_runs()["full"][self.seed]
        same = sum(a == b for a, b in zip(said, full, strict=True))
        exits = [int(n) for n in one["exits"][self.level]]
        return {"exits": exits, "same": same, **one["points"][self.level]}
