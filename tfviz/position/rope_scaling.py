"""Speeds for texts longer than in training: which of RoPE's clocks are slowed down, how much.

    θ_m = base^{−2m/d}      s = new length / length      r_m = length · θ_m / 2π

    interpolated   θ_m / s
    ntk_aware      (base · s^{d/(d−2)})^{−2m/d}
    ntk_by_parts   γ_m θ_m + (1 − γ_m) θ_m / s      γ_m = (r_m − α)/(β − α), cut to [0, 1]
    yarn           the same with a ramp over m, and all scores divided by t, √(1/t) = 0.1 ln s + 1

`length` is that of the texts in training, in which clock m made r_m turns; d is the width of one
head, m counts from 0. Chen et al. 2023 (arXiv 2306.15595), section 2.3: position interpolation.
Peng et al. 2023 (YaRN, arXiv 2309.00071), sections 3.1, 3.2 and 3.4: the others; NTK-aware scaling
was found by bloc97, and is called dynamic where s grows with the text that is read (section 3.3).
Llama 3.1 (`apply_scaling` in Meta's llama-models) is by parts with α = 1 and β = 4.

>>> changed = yarn(64, factor=4, length=4096) / interpolated(64, factor=1)
>>> (changed == 1).sum().item(), (changed == 1 / 4).sum().item()  # of 32 clocks
(11, 9)
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.position import sinusoidal_pe

__all__ = ["interpolated", "llama3", "ntk_aware", "ntk_by_parts", "yarn", "yarn_temperature"]

Speeds = Float[Tensor, "d_head/2"]


@named
def interpolated(d_head: int, factor: float, base: float = 10_000.0) -> Speeds:
    """θ_m/s: all clocks turn `factor` times more slowly, as if positions were divided by it."""
    return plain(d_head, base) / _arguments.real("factor", factor, 1.0)


@named
def ntk_aware(d_head: int, factor: float, base: float = 10_000.0) -> Speeds:
    """Those of a larger base: the fastest clock stays, the slowest turns `factor` times more
    slowly. Raises ValueError for a head of one pair, which is both."""
    _arguments.integer("d_head", d_head, 4)
    power = _arguments.real("factor", factor, 1.0) ** (d_head / (d_head - 2))
    return plain(d_head, _arguments.real("base", base, 1.0) * power)


@named
def ntk_by_parts(
    d_head: int,
    factor: float,
    length: int,
    base: float = 10_000.0,
    *,
    alpha: float = 1.0,
    beta: float = 32.0,
) -> Speeds:
    """Clocks that made more than `beta` turns in training stay, those with fewer than `alpha` turn
    `factor` times more slowly, and between them γ grows with the turns, as the paper writes it."""
    theta = plain(d_head, base)
    _in_order("alpha", alpha, "beta", beta)
    turns = _arguments.integer("length", length, 1) * theta / (2 * math.pi)
    return _mixed(theta, ((turns - alpha) / (beta - alpha)).clamp(0, 1), factor)


@named
def yarn(
    d_head: int,
    factor: float,
    length: int,
    base: float = 10_000.0,
    *,
    beta_slow: float = 1.0,
    beta_fast: float = 32.0,
    truncate: bool = True,
) -> Speeds:
    """By parts as YaRN's published code and Hugging Face have it: between the clocks that made
    `beta_fast` and `beta_slow` turns in training, γ falls with the number m of the clock.

    `truncate` widens this range to whole numbers m. The paper's own ramp is in `ntk_by_parts`, its
    other half in `yarn_temperature`.
    """
    theta = plain(d_head, base)
    if base == 1:
        raise ValueError("base = 1.0 makes all clocks equally fast; choose base > 1")
    _in_order("beta_slow", beta_slow, "beta_fast", beta_fast)
    radians = _arguments.integer("length", length, 1) / (2 * math.pi)
    first, last = (
        d_head * math.log(radians / turns) / (2 * math.log(base))  # m with so many turns
        for turns in (beta_fast, beta_slow)
    )
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    m = torch.arange(len(theta), dtype=theta.dtype)
    return _mixed(theta, 1 - ((m - first) / max(last - first, 1e-3)).clamp(0, 1), factor)


@named
def yarn_temperature(factor: float) -> float:
    """t, by which YaRN divides all scores, √(1/t) = 0.1 ln s + 1: for `Rope(temperature=…)`.

    √(1/t) is what Hugging Face calls the attention factor: it multiplies the cosines and sines of
    queries and of keys, and so the scores twice. (The first preprint had t the other way round.)
    """
    return (0.1 * math.log(_arguments.real("factor", factor, 1.0)) + 1) ** -2


@named
def llama3(
    d_head: int,
    factor: float = 8.0,
    length: int = 8192,
    base: float = 500_000.0,
    *,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Speeds:
    """Those of Llama 3.1: by parts, from one turn in training to four; no temperature."""
    _in_order("low_freq_factor", low_freq_factor, "high_freq_factor", high_freq_factor)
    return ntk_by_parts(d_head, factor, length, base, alpha=low_freq_factor, beta=high_freq_factor)


def plain(d_head: int, base: float) -> Speeds:
    """θ_m, those of RoPE and of the sinusoids, in float64."""
    _arguments.integer("d_head", d_head, 2)
    return sinusoidal_pe.speeds(d_head, base, dtype=torch.float64)


def _mixed(theta: Tensor, gamma: Tensor, factor: float) -> Tensor:
    """γ θ + (1 − γ) θ/s."""
    return gamma * theta + (1 - gamma) * theta / _arguments.real("factor", factor, 1.0)


def _in_order(slow: str, few: float, fast: str, many: float) -> None:
    """Raises ValueError unless these are numbers of turns, and the first is the smaller."""
    if not 0 < _arguments.real(slow, few, 0.0) < _arguments.real(fast, many, 0.0):
        raise ValueError(f"{slow} = {few}, {fast} = {many}; choose 0 < {slow} < {fast}")
