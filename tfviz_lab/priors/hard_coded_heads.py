"""Heads that are hard-coded at the places −1 and 0, in the small GPT of `prior_only`.

    python -m tfviz_lab hard_coded_heads    → results/hard_coded_heads.json

The same model, budget and seeds; `prior_only` has the same with learned heads and with averages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tfviz.priors.hard_coded_gaussian import HardCoded
from tfviz_lab.compare import experiment
from tfviz_lab.priors.prior_only import placed

PACKAGES = ["torch", "numpy"]
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "hard-coded": partial(placed, core=HardCoded),
}
runs, measure, collect = experiment(VARIANTS, tasks=("text",), steps=300)
