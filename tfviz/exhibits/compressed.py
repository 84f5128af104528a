"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tfviz.compressed.linear_transformer import LinearAttention, linear_definition
from tfviz.dense_attention import CAUSAL
from tfviz.exhibits.exhibit import Exhibit, Gpt, N, drawn, spread


def soft_shares() -> Tensor:
    """The weights of a causal text, each row as dark as its largest one."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = linear_definition(walk, walk, walk, CAUSAL.mask(N))[1]
    return spread(A / A.amax(-1, keepdim=True))


# --- in the race ----------------------------------------------------------------------------------


def summed(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": LinearAttention}


EXHIBITS = {"linear_transformer": Exhibit(soft_shares, race=summed)}
