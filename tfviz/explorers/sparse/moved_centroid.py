"""The scene of chapter 20: a centroid moves, and with it who may read whom."""

import torch
import torch.nn.functional as F

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.sparse import routing_transformer as routing

WORDS = {
    # word: the direction of its vector in degrees, and its length; the first one asks
    "blue": (97, 0.74),
    "red": (73, 0.86),
    "yellow": (78, 0.44),
    "green": (84, 0.88),
    "grey": (108, 0.5),
    "apple": (24, 0.7),
    "pear": (31, 0.92),
    "lemon": (44, 0.5),
    "plum": (51, 0.84),
    "cow": (132, 0.72),
    "horse": (144, 0.82),
    "sheep": (146, 0.5),
    "goat": (155, 0.86),
}
FIXED = [37, 143]
LENGTH = 4.5


class MovedCentroid(Explorer):
    """Words in three clusters, one of whose centroids moves. Their vectors are made up."""

    label = "Clusters of words around three centroids, one of which moves"
    scene = True
    rem = 30, 30, 30, 31.5, 26.5
    data = handed(words=WORDS, fixed=FIXED, length=LENGTH)

    angle = knob(90, low=44, high=136, label="direction of the centroid, in degrees")

    def numbers(self) -> Numbers:
        """The cluster of each word, full attention's weights of the first one, how much of them
        its cluster keeps, and to which direction a step of learning takes the centroid."""
        angles, lengths = (exact(x) for x in zip(*WORDS.values(), strict=True))
        X = LENGTH * lengths[:, None] * unit(angles)
        mu = unit(exact([FIXED[0], self.angle, FIXED[1]]))
        own = routing.clusters(X, mu)
        mine = F.one_hot(own, 3).T.bool()
        meet = routing.together(mine, mine)
        A = routing.routing_definition(X, X, X, torch.ones_like(meet[:1]))[1]
        step, _ = routing.moved(mu[None], torch.ones(1, 3).to(mu), X[None, None], 0.0)
        toward = torch.atan2(step[0, 1, 1], step[0, 1, 0]).rad2deg()
        kept = A[0, meet.any(0)[0]].sum()
        return {"clusters": own, "weights": A[0], "kept": kept, "toward": toward}


def unit(angles: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1 in these directions, in degrees."""
    angles = angles.deg2rad()
    return torch.stack([angles.cos(), angles.sin()], -1)
