"""What each exit of a trained model predicts in a text, for four ways to train the exits."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

TRAINED = {
    "aligned": "all exits, equal weights",
    "aligned, ω = n": "all exits, weights ω = n",
    "mixed": "one random exit per letter",
    "last exit alone": "exit 4 alone",
}


@cache
def stored_depths() -> Numbers:
    """The stored experiment: of each training and seed, what its exits predict."""
    result = stored.load("exits")
    keys = ("right", "said", "tenths")
    depths = {n: [{k: one[k] for k in keys} for one in result["depths"][n]] for n in TRAINED}
    return {"depths": depths, "text": result["depths"]["aligned"][0]["text"]}


class TrainedExits(Explorer):
    """64 letters of a held-out text, and what four exits predict at each."""

    label = "What each exit predicts, for four ways to train exits"
    rem = 41, 41, 40.5, 43, 76.5
    data = handed(stored_depths, trained=TRAINED)

    letter = knob(20, low=0, high=63, label="letter", letter="t")
    exit = knob(4, low=1, high=4, label="exit", letter="n")
    trained = knob("aligned", of=TRAINED, label="what was trained")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Press play: for which letters does exit 1 already agree with exit 4?"

    def numbers(self) -> Numbers:
        """Accuracy of each exit; the probability of the right letter here, in tenths; how many of
        the 64 letters this exit predicts as the last one does."""
        one = stored_depths()["depths"][self.trained][self.seed]
        last, mine = one["said"][-1], one["said"][self.exit - 1]
        alike = sum(a == b for a, b in zip(mine, last, strict=True))
        tenths = [int(row[self.letter]) for row in one["tenths"]]
        return {"right": one["right"], "tenths": tenths, "alike": alike}
