"""The scene of chapter 23: queries gather under prototypes, and each prototype's row serves all."""

import torch

from tfviz.compressed.clustered_attention import clustered_definition, lloyd
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob, uniforms

L, SEED, SPREAD = 36, 4, 0.3
CENTRES = [[-1.5, 1.1], [1.4, 1.3], [0.1, -0.1], [-1.3, -1.3], [1.5, -1.1]]
KEYS = 12
RADIUS = 2.4


class PrototypeRows(Explorer):
    """36 queries of two numbers in five heaps, made up, and 12 keys on a circle."""

    label = "Queries under their prototypes, and the rows that are worked out"
    scene = True
    uses = ("shared/cells",)
    rem = 30, 30, 30, 31.5, 25
    data = handed(length=L, seed=SEED, spread=SPREAD, centres=CENTRES, keys=KEYS, radius=RADIUS)

    C = knob(5, low=1, high=L, label="prototypes", letter="C")

    def numbers(self) -> Numbers:
        """The cluster of each query, its row, and what share of the weight lies elsewhere."""
        noise = exact(uniforms(SEED, 2 * L).tolist()).view(L, 2)
        Q = exact(CENTRES)[torch.arange(L) % len(CENTRES)] + SPREAD * noise
        angles = torch.arange(KEYS, dtype=torch.float64) * 2 * torch.pi / KEYS
        K = RADIUS * torch.stack([angles.cos(), angles.sin()], -1)
        cluster = lloyd(Q, self.C)
        rows = clustered_definition(Q, K, K, cluster, 0)[1]
        elsewhere = (rows - attention(Q, K, K)[1]).abs().sum() / (2 * L)
        return {"cluster": cluster, "rows": rows, "elsewhere": elsewhere}
