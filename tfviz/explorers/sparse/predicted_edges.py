"""SAC's smallest case: a predictor draws one edge, again and again, before and after it learns."""

from functools import cache
from itertools import accumulate

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.sparse import sac

STEPS, EVERY, DRAWS, DICE = 120, 15, 8, 6


@cache
def learnt() -> Numbers:
    """What the predictor would do every EVERY steps, rounded, and the dice it is drawn with."""
    learnt_chances = sac.bandit(STEPS, EVERY)
    first = [[round(x, 4) for x in row] for row in learnt_chances.first]
    second = [[[round(x, 4) for x in row] for row in table] for table in learnt_chances.second]
    dice = torch.rand(DICE, 2 * DRAWS, generator=torch.Generator().manual_seed(9))
    return {"first": first, "second": second, "dice": dice.double().tolist(), "every": EVERY}


def drawn(chances: list[float], u: float) -> int:
    """The first node where the chances so far exceed u of their sum."""
    so_far = accumulate(chances)
    return next((node for node, x in enumerate(so_far) if x > u * sum(chances)), len(chances) - 1)


class PredictedEdges(Explorer):
    """Six nodes; the label stands at node 4 and is asked for at node 1.

    learnt    which snapshot of training, 15 steps apart
    """

    label = "SAC: one edge, drawn again and again, and how the reward changes later draws"
    rem = 35, 29.5, 31, 31, 77
    data = handed(learnt, reader=sac.READER, mate=sac.MATE)

    named = knob(4, low=0, high=2 * DRAWS, label="nodes drawn")
    learnt = knob(0, low=0, high=STEPS // EVERY, label="trained for")
    dice = knob(0, low=0, high=DICE - 1, label="other draws")
    asks = "Only the edge 1 → 4 earns more than a guess. Press play before and after training."

    def numbers(self) -> Numbers:
        """The edges drawn so far, the chances of the next node, and that of the edge 1 → 4."""
        known = learnt()
        first, second = known["first"][self.learnt], known["second"][self.learnt]
        nodes: list[int] = []
        for t in range(self.named):
            chances = second[nodes[-1]] if t % 2 else first
            nodes.append(drawn(chances, known["dice"][self.dice][t]))
        edges = [nodes[t : t + 2] for t in range(0, self.named - 1, 2)]
        following = second[nodes[-1]] if self.named % 2 else first
        chance = first[sac.READER] * second[sac.READER][sac.MATE]
        right = edges.count([sac.READER, sac.MATE])
        return {"edges": edges, "next": following, "chance": chance, "right": right}
