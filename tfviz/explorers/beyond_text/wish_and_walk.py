"""The scene of the chapter on reinforcement learning: a return is asked for, and a walk follows."""

from functools import cache

import torch

from tfviz import stored
from tfviz.beyond_text.decision_transformer import returns_to_go
from tfviz.explorers.base import Explorer, Numbers, handed, knob

NAMES = "ABCDEFGHIJKLMNOPQRST"
START, FAILURE, MOST = "M", 10, 10


@cache
def walks() -> Numbers:
    """The graph, and a trained model's walk from the start for each wish, as letters."""
    shown: Numbers = stored.load("return_conditioning")["shown"]
    begin = [name for n, name in enumerate(NAMES) if n != shown["goal"]].index(START)
    graph: Numbers = {name: shown[name] for name in ("places", "paths", "goal")}
    return {**graph, "walks": [row[begin] for row in shown["walks"]]}


class WishAndWalk(Explorer):
    """Twenty places; each step costs 1, and a walk that has not arrived after ten costs 10 more."""

    label = "A return is asked for, and a model walks on a graph"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(walks, names=NAMES, failure=FAILURE)

    wish = knob(7, low=1, high=MOST, label="the return that we ask for, without its minus")

    def numbers(self) -> Numbers:
        """The places of the walk, and the returns that the walks of all wishes earned."""
        known = walks()
        rows = [[NAMES.index(name) for name in row] for row in known["walks"]]

        def earned(row: list[int]) -> float:
            rewards = -torch.ones(len(row) - 1, dtype=torch.float64)
            rewards[-1] -= FAILURE * (row[-1] != known["goal"])
            return returns_to_go(rewards)[0].item()

        return {"walk": rows[self.wish - 1], "returns": [earned(row) for row in rows]}
