"""Routing in the plane: centroids follow queries and keys, and bring pairs together."""

from functools import cache

import torch
import torch.nn.functional as F

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.sparse import routing_transformer as routing

L, STEPS, LOUD = 12, 12, 4.0


@cache
def tokens() -> dict[str, list[list[float]]]:
    """Twelve queries and twelve keys in four loose groups, and where centroids begin."""
    dice = torch.Generator().manual_seed(2)
    middle = torch.tensor([0.3, 1.8, 3.4, 5.0])
    vectors = {}
    for name in ("Q", "K"):
        angle = middle[torch.randperm(L, generator=dice) % 4]
        angle = angle + 0.35 * torch.randn(L, generator=dice)
        vectors[name] = LOUD * torch.stack([angle.cos(), angle.sin()], -1)
    start = torch.tensor([1.1, 0.9, 1.3, 0.7])
    vectors["start"] = torch.stack([start.cos(), start.sin()], -1)
    return {name: x.double().tolist() for name, x in vectors.items()}


class RoutingCentroids(Explorer):
    """Twelve queries and keys in the plane, routed to k centroids that move step by step.

    even    each takes the L/k queries and keys nearest to it, not all that are nearest to it
    """

    label = "Routing: centroids follow queries and keys, and bring pairs together"
    rem = 40.5, 40.5, 35, 37.5, 97
    data = handed(tokens, loud=LOUD)

    step = knob(0, low=0, high=STEPS, label="steps of training")
    k = knob(4, of=[2, 3, 4], label="centroids", letter="k")
    decay = knob(0.8, of=[0.0, 0.5, 0.8, 0.95], label="share of old value retained", letter="λ")
    even = knob(True, label="equal clusters: each takes L/k")
    query = knob(0, low=0, high=L - 1, label="query", letter="i")
    asks = "Press play: which centroids move, and how much of the attention do the clusters keep?"

    def numbers(self) -> Numbers:
        """Centroids, the cluster of each query and key, the keys that the query meets, and the
        shares of all pairs and of full attention's weight that meet."""
        Q, K, start = (exact(x) for x in tokens().values())
        mu, count = start[None, : self.k], torch.ones(1, self.k, dtype=torch.float64)
        for _ in range(self.step):
            mu, count = routing.moved(mu, count, torch.cat([Q, K])[None, None], self.decay)
        mu, own = mu[0], [routing.clusters(X, mu[0]) for X in (Q, K)]

        def mine(X: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            if self.even:
                return routing.taken(routing.members(X, mu, L // self.k), L)
            return F.one_hot(at, self.k).T.bool()

        meet = routing.together(mine(Q, own[0]), mine(K, own[1])).any(0)
        A = (Q @ K.T / 2**0.5).softmax(-1)
        clusters = {"mu": mu, "queries": own[0], "keys": own[1]}
        shares = {"pairs": meet.double().mean(), "mass": (A * meet).sum() / L}
        return clusters | shares | {"meets": meet[self.query].nonzero().flatten()}
