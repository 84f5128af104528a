"""Every method of the race as a dot, its time against its loss, and which of them fit your case."""

from functools import cache
from statistics import mean
from typing import Any

from tfviz import catalogue
from tfviz.beyond_text.efficiency_tradeoffs import front, objection
from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.stored import race

PLAIN, HIDDEN = "multi_head_attention", "linear_transformer"
TWINS = ("learned_pe",)
"""The plain model under another name."""
LENGTHS = (128, 512, 2048, 4096)
REASONS = {
    "": "fits your case",
    "slower": "slower",
    "too much memory": "too much memory",
    "not measured": "not measured",
    "not exact enough": "not exact enough",
    "sees the future": "sees the future",
}
"""The heading of each list, by what `objection` says."""


@cache
def rows() -> dict[str, dict[str, dict[str, Any]]]:
    """{kind: {id: name, time and memory at each length, mean loss, exactness, sees_future}}; with
    the models that write, also the encoders that cannot be used there."""
    tables = {kind: race.table(kind) for kind in race.KINDS}
    at = [race.lengths().index(L) for L in LENGTHS]

    def told(name: str, row: dict[str, Any], kind: str) -> dict[str, Any]:
        one = [1.0] * len(at)
        return {
            "name": "Full attention" if name == PLAIN else catalogue.get(name).short,
            "time": one if name == PLAIN else [row["time"][n] for n in at],
            "memory": one if name == PLAIN else [row["memory"][n] for n in at],
            "loss": round(mean(row["text"]), 3),
            "exactness": row["exactness"],
            "sees_future": kind == "causal" and not row["causal"],
        }

    encoders = {n: row for n, row in tables["encoder"].items() if n not in tables["causal"]}
    shown = {"causal": tables["causal"] | encoders, "encoder": tables["encoder"]}
    return {
        kind: {n: told(n, row, kind) for n, row in of.items() if n not in TWINS}
        for kind, of in shown.items()
    }


class EfficiencyTradeoffs(Explorer):
    """A dot for each method: the time of a training step against the loss on text. Which fit
    a length, an amount of memory, a kind of model, and how exact it must be?"""

    label = "What would you trade? All methods, and those that fit your case"
    rem = 44, 44.5, 44.5, 46.5, 84.5
    data = handed(rows=rows, lengths=LENGTHS, reasons=REASONS, plain=PLAIN, hidden=HIDDEN)

    kind = knob(
        "causal", of={"causal": "writes a text", "encoder": "reads a whole text"}, label="the model"
    )
    L = knob(2048, of=LENGTHS, label="tokens in a text", letter="L")
    memory = knob(
        2.0, of=[1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 50.0], label="memory limit, × full attention's"
    )
    exactness = knob(
        "any",
        of={
            "any": "anything (no condition)",
            "linear": "single keys, not mixtures",
            "exact": "every single key",
        },
        label="a query must meet",
    )
    asks = (
        "Set the length to 128, then to 4,096: which dots lie left of full attention's "
        "line? Then allow only 1.1 times its memory."
    )

    def numbers(self) -> Numbers:
        """By row: the number of the reason in REASONS; of those that fit, which are on the front
        and how many are faster than full attention and no worse."""
        at, shown = LENGTHS.index(self.L), rows()[self.kind]
        said = {
            name: objection(
                row["time"][at],
                row["memory"][at],
                row["exactness"],
                at_most=self.memory,
                wanted=self.exactness,
                sees_future=row["sees_future"],
            )
            for name, row in shown.items()
        }
        left = {n: (row["time"][at], row["loss"]) for n, row in shown.items() if not said[n]}
        bar = shown[PLAIN]["loss"]
        best, names = front(left), list(shown)
        return {
            "reasons": [list(REASONS).index(said[name]) for name in names],
            "front": [names.index(name) for name in best],
            "better": sum(time < 1 and loss <= bar for time, loss in left.values()),
        }
