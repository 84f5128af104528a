"""Which digit is it? Luna by its number of vectors, and with a P that does not travel on.

    python -m tfviz_lab luna_digits

An encoder of two layers and four heads reads an image as 16 patches (`patches` of `compare`), as
in `linformer_digits`, which has the same encoder with full attention.
"stays" has as many vectors as "l = 4", but each layer packs with its own, and hands up nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from tfviz.compressed.luna import Luna, nested
from tfviz.cores import Where
from tfviz_lab.compare import PIXEL_WIDTH, experiment

PACKAGES = ["torch", "numpy", "scikit-learn"]


class Stays(Luna):
    """Whose P is the layer's own: nothing arrives from below, and nothing goes up."""

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        where.hand_up(None)
        answer = super().forward(Q, K, V, where)
        where.hand_up(None)
        return answer


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "stays": lambda: {"core": lambda d_head, h: Stays(d_head, h, 4)},
    "l = 1": lambda: {"core": nested(1, PIXEL_WIDTH)},
    "l = 4": lambda: {"core": nested(4, PIXEL_WIDTH)},
    "l = 8": lambda: {"core": nested(8, PIXEL_WIDTH)},
}
runs, measure, collect = experiment(VARIANTS, tasks=("patches",))
