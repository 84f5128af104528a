"""What is lost without queries and keys? The same small GPT with heads that are only a prior.

    python -m tfviz_lab prior_only    → results/prior_only.json

Models of one width, with learned positions: attention as usual, average attention as its authors'
code has it, with the paper's feed-forward layer (as wide as the block's own), without its gate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tfviz.position.learned_pe import Learned
from tfviz.priors.average_attention import AverageAttention
from tfviz_lab.compare import TRAIN_LENGTH, WIDTH, experiment

PACKAGES = ["torch", "numpy"]


def placed(**told: Any) -> dict[str, Any]:
    return {"positions": Learned(TRAIN_LENGTH, WIDTH), **told}


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "learned": placed,
    "averages": partial(placed, mix=AverageAttention),
    "averages and FFN": partial(placed, mix=partial(AverageAttention, d_ff=4 * WIDTH)),
    "averages, no gate": partial(placed, mix=partial(AverageAttention, gate=False)),
}
runs, measure, collect = experiment(VARIANTS, tasks=("text", "recall"), steps=300)
