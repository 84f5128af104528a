"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.dense_attention import CAUSAL
from tfviz.exhibits.exhibit import STEPS, Exhibit, N, spread
from tfviz.priors.average_attention import share
from tfviz.priors.hard_coded_gaussian import hard_coded_definition


def even_shares() -> Tensor:
    """1/(i + 1) for each key up to the query; the root of it, so that far rows can be seen."""
    return spread((share(STEPS[:, None], STEPS) * CAUSAL.mask(N)).sqrt())


def bells() -> Tensor:
    """The maps of a head that looks four places back and of one that looks at itself."""
    A = hard_coded_definition(torch.ones(2, N, 1), CAUSAL.mask(N), [-4, 0], spread=1.5)[1]
    return spread(A.sum(0))


EXHIBITS = {
    "average_attention": Exhibit(
        even_shares,
        why_not="it replaces the whole layer: chapter 27 trains it beside learned heads",
    ),
    "hard_coded_gaussian": Exhibit(
        bells, why_not="nothing in it is learned: chapter 27 trains a model with it"
    ),
}
