"""Linformer in a small encoder of text.

    python -m tfviz_lab linformer    → results/linformer.json

By the protocol, hidden characters of English text, 64 at a time. Linformer, with k = 16, mixes
positions before it compares, so that nothing can be turned by its distance: it has a table of
positions. Full attention with the same table is measured too, and is no reference, for in these
steps neither hears its table: both are compared with full attention that is rotary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfviz.compressed.linformer import Linformer
from tfviz.position.learned_pe import Learned
from tfviz_lab.compare import TRAIN_LENGTH, WIDTH
from tfviz_lab.protocol import HIDDEN, experiment, one_run

PACKAGES = ["torch", "numpy", "scipy"]
EXAMS = (HIDDEN,)
K = 16


def own(**told: Any) -> dict[str, Any]:
    """With a learned table of positions."""
    return {"positions": Learned(TRAIN_LENGTH, WIDTH), **told}


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "full attention, own positions": own,
    "Linformer": lambda: own(core=partial(Linformer, length=TRAIN_LENGTH, k=K)),
}

runs, follow, collect = experiment(VARIANTS, *EXAMS, reference="full attention")


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])
