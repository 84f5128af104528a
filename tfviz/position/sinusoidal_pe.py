"""Sinusoidal positions: clock hands that turn at different speeds, no parameters.

    ω_m = base^{−2m/d}    p_{i,2m} = sin(i ω_m)    p_{i,2m+1} = cos(i ω_m)    m = 0 … d/2 − 1

Vaswani et al. 2017 (arXiv 1706.03762), section 3.5, with base = 10 000; i and m count from 0.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from tfviz import _checks


def sinusoids(i: Num[Tensor, "*L"], d: int, base: float = 10_000.0) -> Float[Tensor, "*L d"]:
    """p_i for any positions, also negative or fractional ones; in float32. d must be even."""
    if _checks.integer("d", d, 2) % 2:
        raise ValueError(f"d = {d} is odd, but sine and cosine come in pairs; choose an even d")
    omega = _checks.real("base", base, 1.0) ** (-torch.arange(0, d, 2, device=i.device) / d)
    angle = i[..., None] * omega  # (…, L, d/2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


class Sinusoidal(nn.Module):
    """Positions (L,) → scale · p_i (L, d), for the `positions` of a model.

    Vaswani et al. multiply the token's embedding by √d and leave p_i as it is; where a model does
    not (GPT, BERT), `scale` brings the two to one size.
    """

    def __init__(self, d: int, base: float = 10_000.0, scale: float = 1.0) -> None:
        super().__init__()
        self.d, self.base, self.scale = d, base, _checks.real("scale", scale)
        sinusoids(torch.zeros(1), d, base)  # errors belong here, not into the first pass

    def forward(self, i: Num[Tensor, "L"]) -> Float[Tensor, "L d"]:
        return self.scale * sinusoids(i, self.d, self.base)
