"""What each exit of a trained model says of a text, for four ways to train the exits."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

TRAINED = {
    "aligned": "all exits alike",
    "aligned, ω = n": "later exits more",
    "mixed": "one drawn exit per letter",
    "last exit alone": "the last exit alone",
}


@cache
def stored_depths() -> Numbers:
    """The stored experiment: of each training and seed, what its exits say."""
    result = stored.load("exits")
    keys = ("right", "said", "tenths")
    depths = {n: [{k: one[k] for k in keys} for one in result["depths"][n]] for n in TRAINED}
    return {"depths": depths, "text": result["depths"]["aligned"][0]["text"]}


class ExitLadder(Explorer):
    """64 letters of a held-out text, and what four exits expect at each."""

    label = "What each exit says, for four ways to train exits"
    rem = 55.5, 51.5, 50, 80.5
    data = handed(stored_depths, trained=TRAINED)

    letter = knob(20, low=0, high=63, label="letter", letter="t")
    exit = knob(1, low=1, high=4, label="exit", letter="n")
    trained = knob("last exit alone", of=TRAINED, label="trained on")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Answer, then press play: where do lower exits already say what the last one says?"

    def numbers(self) -> Numbers:
        """Right letters of each exit; p of the right letter at this place, in tenths; how many of
        the 64 letters this exit says as the last one does."""
        one = stored_depths()["depths"][self.trained][self.seed]
        last, mine = one["said"][-1], one["said"][self.exit - 1]
        alike = sum(a == b for a, b in zip(mine, last, strict=True))
        tenths = [int(row[self.letter]) for row in one["tenths"]]
        return {"right": one["right"], "tenths": tenths, "alike": alike}
