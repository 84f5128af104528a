"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from torch import Tensor

from tfviz.dense_attention import CAUSAL
from tfviz.exhibits.exhibit import STEPS, Exhibit, N, spread
from tfviz.priors.average_attention import share


def even_shares() -> Tensor:
    """1/(i + 1) for each key up to the query; the root of it, so that far rows can be seen."""
    return spread((share(STEPS[:, None], STEPS) * CAUSAL.mask(N)).sqrt())


EXHIBITS = {
    "average_attention": Exhibit(
        even_shares,
        why_not="it replaces the whole layer: chapter 27 trains it beside learned heads",
    ),
}
