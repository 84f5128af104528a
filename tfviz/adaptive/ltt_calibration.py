"""Learn then Test: a threshold whose risk is at most δ, with probability 1 − ε.

    R(λ)                     the mean loss of a text, between 0 and 1
    H_k: R(λ_k) > δ          tested in order, the strictest λ first, each at the whole level ε;
                             the first that cannot be rejected ends it

    p = exp(−2 m max(0, δ − R̂)²)                              Hoeffding
    p = min(exp(−m h₁(min(R̂, δ), δ)), e · P(Bin(m, δ) ≤ ⌈m R̂⌉))   Hoeffding–Bentkus
    p = P(Bin(m, δ) ≤ m R̂)                                    exact, for losses of 0 or 1

h₁(a, b) = a ln(a/b) + (1 − a) ln((1 − a)/(1 − b)). Angelopoulos, Bates, Candès, Jordan, Lei 2021
(arXiv 2110.01052); p-values as in the authors' code (aangelopoulos/ltt, core/bounds.py). The m
texts (`n` in the code) must be drawn independently, from where the threshold will be used. δ is
their α, ε their δ.

>>> losses = np.array([[0, 0, 1, 1], [0, 0, 0, 1]] * 50)   # 100 texts, four thresholds
>>> learn_then_test(losses, delta=0.1, epsilon=0.05)       # two are safe: 0 of 100 lost
2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["binomial", "fixed_sequence", "hoeffding", "hoeffding_bentkus", "learn_then_test"]

PValue = Callable[[Any, int, float], NDArray[np.float64]]


@named
def hoeffding(risk: ArrayLike, n: int, delta: float) -> NDArray[np.float64]:
    """For losses anywhere in [0, 1]; 1 where the risk is δ or more."""
    return np.exp(-2 * n * np.maximum(0, delta - np.asarray(risk, float)) ** 2)


@named
def binomial(risk: ArrayLike, n: int, delta: float) -> NDArray[np.float64]:
    """Exact, for losses that are 0 or 1: so few or fewer of n, if each came with probability δ."""
    lost = np.asarray(risk, float) * n
    if not np.allclose(lost, np.round(lost)):
        raise ValueError(
            "the risk is not a count out of n: losses between 0 and 1 need hoeffding_bentkus"
        )
    return np.asarray(binom.cdf(np.round(lost), n, delta))


@named
def hoeffding_bentkus(risk: ArrayLike, n: int, delta: float) -> NDArray[np.float64]:
    """For losses anywhere in [0, 1], and never above `hoeffding`."""
    r = np.minimum(np.asarray(risk, float), delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(r > 0, r * np.log(r / delta), 0.0)
    h1 = below + (1 - r) * np.log((1 - r) / (1 - delta))
    lost = np.ceil(np.asarray(risk, float) * n - 1e-9)  # 0.29 · 100 is 29, not 30
    tail = np.e * binom.cdf(lost, n, delta)
    return np.minimum(np.exp(-n * h1), tail)


@named
def fixed_sequence(p: ArrayLike, epsilon: float) -> int:
    """How many hypotheses are rejected before the first with p > ε, in the order given."""
    _arguments.real("epsilon", epsilon, 0.0)
    kept = np.asarray(p, float) > epsilon
    return int(kept.argmax()) if kept.any() else len(kept)


@named
def learn_then_test(
    losses: ArrayLike, delta: float, epsilon: float, p_value: PValue = binomial
) -> int:
    """How many of the thresholds may be used, of a table (n texts, thresholds, strictest first).

    The last of them is the answer; with 0 none is safe: use the full model. Raises ValueError for
    losses outside of [0, 1], and for δ or ε outside of (0, 1).
    """
    table = np.asarray(losses, float)
    if table.ndim != 2 or not table.size or table.min() < 0 or table.max() > 1:
        raise ValueError(
            f"losses has shape {table.shape}; give (n, thresholds), with values from 0 to 1"
        )
    for name, value in (("delta", delta), ("epsilon", epsilon)):
        if not 0 < value < 1:
            raise ValueError(f"{name} = {value}; choose it between 0 and 1")
    return fixed_sequence(p_value(table.mean(0), len(table), delta), epsilon)
