"""Which digit is it? Linformer by k, by what shares its matrices, and with ones that do not learn.

    python -m tfviz_lab linformer_digits

An encoder of two layers and four heads reads an image as 16 patches (`patches` of `compare`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tfviz.compressed.linformer import Linformer, layerwise, mean_pooling
from tfviz_lab.compare import PATCHES, experiment

PACKAGES = ["torch", "numpy", "scikit-learn"]
K = 4


class Fixed(Linformer):
    """Whose E and F do not learn: a mean pooling, or as they were drawn."""

    def __init__(self, h: int, length: int, k: int, pooled: bool) -> None:
        super().__init__(h, length, k, "headwise")
        for matrix in (self.E, self.F):
            if pooled:
                matrix.data = mean_pooling(k, length)[None]
            matrix.requires_grad_(False)


def own(k: int, sharing: str = "none") -> Callable[..., Linformer]:
    return partial(Linformer, length=PATCHES, k=k, sharing=sharing)


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "none": lambda: {"core": own(K)},
    "headwise": lambda: {"core": own(K, "headwise")},
    "key-value": lambda: {"core": own(K, "key-value")},
    "layerwise": lambda: {"core": layerwise(PATCHES, K)},
    "mean pooling": lambda: {"core": partial(Fixed, length=PATCHES, k=K, pooled=True)},
    "not learned": lambda: {"core": partial(Fixed, length=PATCHES, k=K, pooled=False)},
    "k = 1": lambda: {"core": own(1)},
    "k = 2": lambda: {"core": own(2)},
    "k = 8": lambda: {"core": own(8)},
    "k = 16": lambda: {"core": own(16)},
}
runs, measure, collect = experiment(VARIANTS, tasks=("patches",))
