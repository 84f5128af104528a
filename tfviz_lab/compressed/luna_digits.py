"""Which digit is it? Luna by its number of vectors, and with a P that does not travel on.

    python -m tfviz_lab luna_digits

By `protocol`: an encoder of two layers and four heads reads an image as 16 patches. "stays" has as
many vectors as "l = 4", with which it is compared, but each layer packs with its own, and hands up
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from tfviz.compressed.luna import Luna, nested
from tfviz.cores import Where
from tfviz_lab.compare import PIXEL_WIDTH
from tfviz_lab.protocol import WHICH_DIGIT, experiment, one_run

PACKAGES = ["torch", "numpy", "scikit-learn"]
EXAMS = (WHICH_DIGIT,)


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
    "full attention": lambda: {},
    "stays": lambda: {"core": lambda d_head, h: Stays(d_head, h, 4)},
    "l = 1": lambda: {"core": nested(1, PIXEL_WIDTH)},
    "l = 4": lambda: {"core": nested(4, PIXEL_WIDTH)},
}
runs, follow, collect = experiment(
    VARIANTS, *EXAMS, reference="full attention", beside={"stays": "l = 4"}
)


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])
