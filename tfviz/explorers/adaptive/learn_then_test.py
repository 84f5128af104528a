"""A threshold with a guarantee: tests from the strictest one down, on one draw and on many."""

from functools import cache
from typing import Any

import numpy as np

from tfviz import stored
from tfviz.adaptive import ltt_calibration as ltt
from tfviz.explorers.base import Explorer, Numbers, handed, knob, uniforms

TESTS: dict[str, ltt.PValue] = {
    "exact": ltt.binomial,
    "Hoeffding–Bentkus": ltt.hoeffding_bentkus,
    "Hoeffding": ltt.hoeffding,
}
DRAWS, MOST = 100, 500


@cache
def world() -> Numbers:
    """Of the stored experiment, seed 0: thresholds, and which of 1,000 texts each of them loses."""
    result = stored.load("exits")
    world = {name: result["worlds"][0][name] for name in ("lost", "depth")}
    return {"levels": result["safe"]["levels"], "blocks": result["blocks"], **world}


@cache
def lost() -> Any:
    """(draws, MOST, thresholds): every draw's texts, of which a state uses the first m."""
    table = np.array([[int(bit) for bit in row] for row in world()["lost"]]).T
    dice = uniforms(7, DRAWS * MOST).numpy() / 12**0.5 + 0.5
    return table[np.floor(dice * len(table)).astype(int)].reshape(DRAWS, MOST, -1)


class LearnThenTest(Explorer):
    """Learn then Test on early exits: 20 thresholds, one draw of m texts, and a hundred draws."""

    label = "Learn then Test: a threshold with a guarantee"
    rem = 43.5, 44, 44.5, 44.5, 115.5
    data = handed(world, draws=DRAWS, most=MOST)

    step = knob(20, low=0, high=20, label="tests made")
    m = knob(200, of=[25, 50, 100, 200, 500], label="calibration texts", letter="m")
    delta = knob(0.1, low=0.02, high=0.2, step=0.01, label="allowed risk", letter="δ")
    epsilon = knob(0.1, of=[0.01, 0.05, 0.1, 0.2, 0.5], label="chance of failure", letter="ε")
    test = knob("exact", of=list(TESTS), label="p-value")
    draw = knob(0, low=0, high=DRAWS - 1, label="draw")
    asks = (
        "Press play: the tests start at the strictest threshold and stop at the first one that "
        "is not shown to be safe."
    )

    def numbers(self) -> Numbers:
        """This draw's risks and p-values, how many thresholds are safe by it, how often each number
        of them comes out over all draws, and in how many the true risk is above δ."""
        risks = lost()[:, : self.m].mean(1)
        p = TESTS[self.test](risks, self.m, self.delta)
        chosen = [ltt.fixed_sequence(row, self.epsilon) for row in p]
        true = [0.0, *(row.count("1") / len(row) for row in world()["lost"])]
        tally = [chosen.count(k) for k in range(len(true))]
        this_draw = {"risks": risks[self.draw], "p": p[self.draw], "safe": chosen[self.draw]}
        return this_draw | {"tally": tally, "broken": sum(true[k] > self.delta for k in chosen)}
