"""How a baseline lost: two models on digits, as the table, the steps and the seeds change."""

from functools import cache
from statistics import mean
from typing import Any

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

FULL, SLOT = "full attention", "Linformer, k = 1"
WORDS = (
    "better in every seed",
    "better",
    "worse in every seed",
    "worse",
    "equal to within 0.01",
    "cannot tell",
    "has not learned it",
)
"""What `tfviz_lab.outcomes` may say."""
T95 = {3: 4.3026527297, 5: 2.7764451052}
"""Standard errors of a mean of so many that its 95 % interval reaches to either side."""
ALL_SEEDS, FIRST = "01234", "012"
TRIPLES = [f"{a}{b}{c}" for a in range(5) for b in range(a + 1, 5) for c in range(b + 1, 5)]


@cache
def grid() -> dict[str, Any]:
    """The stored runs."""
    found: dict[str, Any] = stored.load("baseline_lost")
    return found


def missed() -> list[list[list[list[int]]]]:
    """How many of the images are wrong: by model, table, steps and seed."""
    wrong = grid()["grid"]["wrong"]
    return [
        [[[len(seed) for seed in cell] for cell in row] for row in wrong[name]]
        for name in (FULL, SLOT)
    ]


def told() -> Numbers:
    """What the module is given: counts, and the lines that learn nothing but pixels."""
    given = {name: grid()[name] for name in ("images", "delta", "bar", "trivial")}
    return given | {name: grid()["grid"][name] for name in ("loudness", "steps")}


class BaselineLost(Explorer):
    """Errors of full attention and of Linformer with one slot, and what may be said of them.

    std, steps   how loud the table of positions begins, and for how many steps all are trained
    seeds        the runs that somebody made: all five, or any three of them
    """

    label = "A finding, as its baseline is trained better"
    rem = 34, 33.5, 38, 38, 90.5
    data = handed(told, missed=missed, names=[FULL, SLOT], words=WORDS, t95=T95, first=FIRST)

    std = knob(0.02, of=[0.02, 0.1, 0.5], label="standard deviation of the table at the start")
    steps = knob(400, of=[100, 400, 1600], label="steps of training")
    seeds = knob(
        FIRST,
        of={ALL_SEEDS: "all five", **{x: f"seeds {', '.join(x)}" for x in TRIPLES}},
        label="runs",
    )
    asks = "Train for 1,600 steps and take all five seeds. Which word is left of the finding?"

    def numbers(self) -> Numbers:
        """Errors by model and chosen seed, their means; the paired difference with its interval,
        the place of its word in WORDS, and whether the comparison is refused."""
        at = [
            grid()["grid"][n].index(x) for n, x in (("loudness", self.std), ("steps", self.steps))
        ]
        said = grid()["grid"]["outcomes"][at[0]][at[1]][self.seeds]
        many = grid()["images"]
        errors = [
            [model[at[0]][at[1]][int(seed)] / many for seed in self.seeds] for model in missed()
        ]
        return {
            "errors": errors,
            "means": [mean(row) for row in errors],
            "difference": said["difference"],
            "interval": said["interval"],
            "word": WORDS.index(said["word"]),
            "refused": int(said["refused"]),
        }
