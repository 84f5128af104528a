"""A Decision Transformer walks on a graph, asked for a return; also behaviour cloning."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

NAMES = "ABCDEFGHIJKLMNOPQRST"
HORIZON, FAILURE = 10, 10


@cache
def trained() -> Numbers:
    """The graph, and the walk for each wish and start, as letters, from the experiment."""
    shown: Numbers = stored.load("return_conditioning")["shown"]
    return shown


def starts() -> list[str]:
    return [name for n, name in enumerate(NAMES) if n != trained()["goal"]]


class ReturnConditionedWalk(Explorer):
    """Twenty places, each step costs 1, and O is the goal.

    step   steps taken so far; a walk that is over stays where it is
    """

    label = "Walks on a graph by a model that is asked for a return"
    rem = 44, 44, 44, 42, 76
    data = handed(trained, names=NAMES, horizon=HORIZON, failure=FAILURE)

    start = knob("K", of=[name for name in NAMES if name != "O"], label="start")
    wish = knob(8, low=1, high=HORIZON, label="the return that we ask for")
    cloning = knob(False, label="behaviour cloning: it gets no wish")
    step = knob(HORIZON, low=0, high=HORIZON, label="steps taken")
    asks = "Start at A, six steps from O, and ask for −3. Then switch to behaviour cloning."

    def numbers(self) -> Numbers:
        """The places of the walk, what is left of the wish before each step, and the return."""
        known = trained()
        row = known["cloned"] if self.cloning else known["walks"][self.wish - 1]
        walk = [NAMES.index(name) for name in row[starts().index(self.start)]]
        arrived = walk[-1] == known["goal"]
        return {
            "walk": walk,
            "left": [t - self.wish for t in range(len(walk) - 1)],
            "achieved": -(len(walk) - 1) - (0 if arrived else FAILURE),
            "away": known["away"][NAMES.index(self.start)],
        }
