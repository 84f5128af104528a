"""A cloud of points that a few seeds pool (PMA); what points read of each other through them."""

import math
from functools import cache

import torch

from tfviz import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

MOVED = 4  # the point that is dragged


@cache
def cloud() -> dict[str, list[list[float]]]:
    """Nine points in the plane."""
    dice = torch.Generator().manual_seed(5)
    return {"points": (1.8 * torch.rand(9, 2, generator=dice) - 0.9).round(decimals=2).tolist()}


class SeedPooling(Explorer):
    """Nine points without an order. A seed is a direction: the further a point lies along it, the
    larger its weight. Projections are left out: points are their own keys and values."""

    label = "Seeds that pool a cloud of points"
    rem = 39.5, 39.5, 40.5, 34.5, 95
    data = handed(cloud, moved=MOVED)

    k = knob(1, of=[1, 2, 3], label="seeds", letter="k")
    angle = knob(30, low=0, high=355, step=5, label="direction of the first seed, in degrees")
    beta = knob(3.0, of=[0.0, 1.0, 3.0, 8.0], label="length of each seed", letter="β")
    x = knob(-0.5, low=-1.0, high=1.0, step=0.05, label=f"point {MOVED}, to the right")
    y = knob(0.5, low=-1.0, high=1.0, step=0.05, label=f"point {MOVED}, upwards")
    asks = "Choose three seeds, and drag point 4 around: which seeds give it much weight?"

    def numbers(self) -> Numbers:
        """Weights of each seed, what it pools, and what points read of each other through them."""
        X = exact(cloud()["points"])
        X[MOVED] = exact([self.x, self.y])
        turn = math.radians(self.angle) + 2 * math.pi * torch.arange(self.k).double() / self.k
        seeds = torch.stack([turn.cos(), turn.sin()], -1)
        loud = self.beta * math.sqrt(2)  # takes back the division by √d
        pooled, weights = attention(loud * seeds, X, X)
        answers = attention(loud * X, pooled, pooled)[1]
        return {"seeds": seeds, "weights": weights, "pooled": pooled, "map": answers @ weights}
