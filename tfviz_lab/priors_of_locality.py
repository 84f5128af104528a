"""Localness and the Gaussian prior in the small GPT of `prior_only`, beside heads without a prior.

    python -m tfviz_lab priors_of_locality    → results/priors_of_locality.json

The same model, budget and seeds; `prior_only` has the same model with learned heads alone, and
`hard_coded` has it with hard-coded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tfviz.priors.gaussian_transformer import Gaussian
from tfviz.priors.localness_gaussian import Localness
from tfviz_lab.compare import experiment
from tfviz_lab.prior_only import placed

PACKAGES = ["torch", "numpy"]
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "localness": partial(placed, core=Localness),
    "Gaussian prior": partial(placed, core=Gaussian),
}
runs, measure, collect = experiment(VARIANTS, tasks=("text",), steps=300)
