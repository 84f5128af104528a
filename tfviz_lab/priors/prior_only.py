"""What is lost without queries and keys? The same small GPT with heads that are only a prior.

    python -m tfviz_lab prior_only    → results/prior_only.json

full attention                  with rotary positions, as everywhere in the book
full attention, own positions   with the learned table that the others have, who compare nothing
                                and so have nothing that could be turned
averages                        average attention as its authors' code has it
averages, no gate               each answer is the mean alone
hard-coded heads                at the places −1 and 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfviz.position.learned_pe import Learned
from tfviz.priors.average_attention import AverageAttention
from tfviz.priors.hard_coded_gaussian import HardCoded
from tfviz_lab.compare import TRAIN_LENGTH, WIDTH
from tfviz_lab.protocol import LETTERS, experiment, one_run

PACKAGES = ["torch", "numpy", "scipy"]
EXAMS = (LETTERS,)
OWN = "full attention, own positions"


def placed(**told: Any) -> dict[str, Any]:
    return {"positions": Learned(TRAIN_LENGTH, WIDTH), **told}


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "full attention, own positions": placed,
    "averages": partial(placed, mix=AverageAttention),
    "averages, no gate": partial(placed, mix=partial(AverageAttention, gate=False)),
    "hard-coded heads": partial(placed, core=HardCoded),
}
runs, follow, collect = experiment(
    VARIANTS,
    *EXAMS,
    reference="full attention",
    beside={name: OWN for name in ("averages", "averages, no gate", "hard-coded heads")},
)


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return one_run(config, seed, EXAMS, lambda name: VARIANTS[name])
