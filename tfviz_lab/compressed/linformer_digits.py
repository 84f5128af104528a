"""Which digit is it? Linformer by k, with one matrix for all, and with one that does not learn.

    python -m tfviz_lab linformer_digits

By the protocol, an image read as 16 patches. "k = 4" has an E and an F for each head of each layer,
"one matrix" shares one among all of them, and "mean pooling" has E = F that does not learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfviz.compressed.linformer import Linformer, layerwise, mean_pooling
from tfviz_lab.compare import PATCHES
from tfviz_lab.protocol import WHICH_DIGIT, experiment, one_run

PACKAGES = ["torch", "numpy", "scikit-learn", "scipy"]
EXAMS = (WHICH_DIGIT,)
K = 4


class Pooled(Linformer):
    """Whose E and F are mean pooling and do not learn."""

    def __init__(self, h: int, length: int, k: int) -> None:
        super().__init__(h, length, k, "headwise")
        for matrix in (self.E, self.F):
            matrix.data = mean_pooling(k, length)[None]
            matrix.requires_grad_(False)


def own(k: int) -> dict[str, Any]:
    """Linformer with an E and an F for each head."""
    return {"core": partial(Linformer, length=PATCHES, k=k)}


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "k = 1": lambda: own(1),
    "k = 4": lambda: own(K),
    "k = 16": lambda: own(16),
    "one matrix": lambda: {"core": layerwise(PATCHES, K)},
    "mean pooling": lambda: {"core": partial(Pooled, length=PATCHES, k=K)},
}
BESIDE = {"one matrix": "k = 4", "mean pooling": "k = 4"}

runs, follow, collect = experiment(VARIANTS, *EXAMS, reference="full attention", beside=BESIDE)


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])
