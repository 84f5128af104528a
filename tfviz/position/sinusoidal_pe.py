"""Sinusoidal positions: clock hands that turn at different speeds, no parameters.

    ω_m = base^{−2m/d}    p_{i,2m} = sin(i ω_m)    p_{i,2m+1} = cos(i ω_m)    m = 0 … d/2 − 1

Vaswani et al. 2017 (arXiv 1706.03762), section 3.5, with base = 10 000; i and m count from 0. What
follows: every row has length √(d/2), two rows k places apart have the product Σ_m cos(k ω_m), and a
step of k places is the same rotation M_k wherever it starts.

>>> [round(x, 3) for x in sinusoids(torch.tensor(1), 4).tolist()]
[0.841, 0.54, 0.01, 1.0]
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["Sinusoidal", "sinusoid", "sinusoids", "wavelengths"]


@named
def sinusoid(i: Any, c: Any, *, d: int, base: float = 10_000.0) -> Any:
    """p_{i,c}, entry c of row i, as the paper writes it: a formula of two indices (tensors)."""
    angle = i / base ** ((c - c % 2) / d)
    return torch.where(c % 2 == 0, torch.sin(angle), torch.cos(angle))


@named
def sinusoids(i: Num[Tensor, "*L"], d: int, base: float = 10_000.0) -> Float[Tensor, "*L d"]:
    """p_i for any positions, also negative or fractional ones; in float32. d must be even."""
    angle = i[..., None] * speeds(d, base, i.device)  # (…, L, d/2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def speeds(
    d: int, base: float = 10_000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "d/2"]:
    """ω_m: by how many radians hand m turns from one position to the next."""
    if _arguments.integer("d", d, 2) % 2:
        raise ValueError(f"d = {d} is odd, but sine and cosine come in pairs; choose an even d")
    return _arguments.real("base", base, 1.0) ** (
        -torch.arange(0, d, 2, device=device, dtype=dtype) / d
    )


@named
def wavelengths(d: int, base: float = 10_000.0) -> Float[Tensor, "d/2"]:
    """2π/ω_m: after how many positions hand m has gone once around."""
    return 2 * math.pi / speeds(d, base)


def hand(k: Any, m: Any, *, d: int, base: float = 10_000.0) -> Any:
    """What hand m adds to the product of two rows k apart, cos(k ω_m): a formula of two indices."""
    return torch.cos(k / base ** (2 * m / d))


def similarity(k: Num[Tensor, "*K"], d: int, base: float = 10_000.0) -> Float[Tensor, "*K"]:
    """p_i p_{i+k}ᵀ = Σ_m cos(k ω_m): the same for every i, and for k and −k."""
    return (k[..., None] * speeds(d, base, k.device)).cos().sum(-1)


def shift(k: float, d: int, base: float = 10_000.0) -> Float[Tensor, "d d"]:
    """M_k with p_{i+k} = p_i M_kᵀ for every i: each pair (sin, cos) is turned by k ω_m."""
    angle = k * speeds(d, base)
    M = torch.zeros(d, d)
    even = torch.arange(0, d, 2)
    M[even, even] = M[even + 1, even + 1] = angle.cos()
    M[even, even + 1], M[even + 1, even] = angle.sin(), -angle.sin()
    return M


def sinusoids_in_halves(
    i: Num[Tensor, "*L"], d: int, base: float = 10_000.0
) -> Float[Tensor, "*L d"]:
    """The form of tensor2tensor and fairseq: all sines, then all cosines, and speeds from 1 to
    exactly 1/base, where the paper's end at base^{2/d}/base. Not the same rows in another order."""
    half = len(speeds(d, base))  # checks d and base
    if half < 2:
        raise ValueError(f"d = {d} has a single speed; the form in halves needs d >= 4")
    omega = base ** (-torch.arange(half, device=i.device) / (half - 1))
    angle = i[..., None] * omega
    return torch.cat([angle.sin(), angle.cos()], -1)


class Sinusoidal(nn.Module):
    """Positions (L,) → scale · p_i (L, d), for the `positions` of a model.

    Vaswani et al. multiply the token's embedding by √d and leave p_i as it is; where a model does
    not (GPT, BERT), `scale` brings the two to one size.
    """

    @named
    def __init__(self, d: int, base: float = 10_000.0, scale: float = 1.0) -> None:
        super().__init__()
        self.d, self.base, self.scale = d, base, _arguments.real("scale", scale)
        speeds(d, base)  # errors belong here, not into the first pass

    @named
    def forward(self, i: Num[Tensor, "L"]) -> Float[Tensor, "L d"]:
        return self.scale * sinusoids(i, self.d, self.base)
