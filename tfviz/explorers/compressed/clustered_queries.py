"""Queries in the plane, their clusters, and the rows of weights that they share."""

import math

import torch

from tfviz.compressed.clustered_attention import clustered_definition, lloyd
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

REACH = 2.4
MOVED = 3  # the query that can be dragged
QUERIES = [
    [1.3, 1.9],
    [2.0, 1.5],
    [1.6, 1.0],
    [0.1, 1.3],
    [-1.9, -0.6],
    [-1.3, -1.5],
    [-1.0, -0.7],
    [-1.9, -1.4],
]
L = len(QUERIES)
KEYS = [
    [round(r * math.cos(math.radians(a)), 2), round(r * math.sin(math.radians(a)), 2)]
    for a, r in zip(range(20, 380, 45), [2.0, 1.6, 2.1, 1.5, 2.0, 1.7, 1.4, 1.9], strict=True)
]


class ClusteredQueries(Explorer):
    """Eight queries and eight keys of two numbers: true, clustered and improved maps.

    x, y    the place of query 3
    """

    label = "Clustered attention: queries that share a row"
    rem = 44, 44, 43, 41, 97
    data = handed(queries=QUERIES, keys=KEYS, reach=REACH, moved=MOVED)

    C = knob(2, of=[1, 2, 3, 4, 8], label="clusters", letter="C")
    k = knob(3, low=0, high=L, label="best keys of a cluster", letter="k")
    x = knob(0.1, low=-REACH, high=REACH, step=0.1, label="query 3, to the right", letter="x")
    y = knob(1.3, low=-REACH, high=REACH, step=0.1, label="query 3, upwards", letter="y")
    asks = "Drag query 3 towards the other cluster. When does it switch, and whose rows change?"

    def numbers(self) -> Numbers:
        """The cluster of each query, the centroids, the three maps, and by how much the rows of the
        last two miss the true ones: the sum of absolute differences."""
        Q, K = exact(QUERIES), exact(KEYS)
        Q[MOVED] = exact([self.x, self.y])
        cluster = lloyd(Q, self.C)
        true = attention(Q, K, K)[1]
        maps = {
            name: clustered_definition(Q, K, K, cluster, k)[1]
            for name, k in (("clustered", 0), ("improved", self.k))
        }
        centroids = [Q[cluster == c].mean(0) for c in cluster.unique()]
        missed = {f"{name} misses": (A - true).abs().sum(-1) for name, A in maps.items()}
        return {
            "cluster": cluster,
            "centroids": torch.stack(centroids),
            "true": true,
            **maps,
            **missed,
        }
