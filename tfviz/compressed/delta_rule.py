"""Linear recurrences: a state that lets the old fade, and forgets what a key said before.

Gated linear attention (`yang2023gated`) and the delta rule (`yang2024parallelizing`, with a gate
`yang2024gated`) keep the state of linear attention and take something away from it at each step.
With a gate g and the strength of overwriting β,

    S_t = g (I − β k_tᵀ k_t) S_{t−1} + k_tᵀ v_t

The papers' β also scales what is written, k_tᵀ v_t, and their g and β differ from token to token.
Here both are fixed, and what is written keeps its size, so that the sum (g = 1, β = 0), the gate
(β = 0) and the delta rule (g = β = 1) can be compared.

>>> import torch
>>> keys = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
>>> read_back(keys, kept=1, overwritten=1)  # the third token asks for what the first one wrote
tensor([[1., 0., 0.],
        [0., 1., 0.],
        [0., 0., 1.]])
>>> read_back(keys, kept=0.5, overwritten=0)[2]
tensor([0.2500, 0.0000, 1.0000])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["read_back"]


@named
def read_back(keys: Float[Tensor, "L d"], kept: float, overwritten: float) -> Float[Tensor, "L L"]:
    """How much of each value the state gives back to the key of each step.

    The value v_t is the unit vector t, so that row t is k_t S_t. `kept` is the gate g and
    `overwritten` is β.

    Raises TypeError unless the keys are a tensor of real numbers. Raises ValueError unless they are
    (L, d) and both numbers are between 0 and 1.
    """
    _arguments.tensor("keys", keys, "(L, d)")
    if keys.ndim != 2:
        raise ValueError(f"keys {tuple(keys.shape)} are not (L, d): give one row for each token")
    _arguments.real("kept", kept, 0, 1)
    _arguments.real("overwritten", overwritten, 0, 1)
    L, d = keys.shape
    values, state = torch.eye(L, dtype=keys.dtype, device=keys.device), keys.new_zeros(d, L)
    rows = []
    for k, v in zip(keys, values, strict=True):
        state = kept * (state - overwritten * torch.outer(k, k @ state)) + torch.outer(k, v)
        rows.append(k @ state)
    return torch.stack(rows)
