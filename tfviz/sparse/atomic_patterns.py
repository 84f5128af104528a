"""The five atomic patterns: global, band, dilated, random, block local; and what a union is worth.

After the taxonomy of Lin, Wang, Liu, Qiu 2021 (arXiv 2106.04554), 0-based, both sides:

    global         i < g or j < g            the first g tokens read all and are read by all
    band           |i − j| ≤ w
    dilated        |i − j| ≤ w r and r divides i − j
    random         r keys for each query, drawn once
    block local    ⌊i/b⌋ = ⌊j/b⌋

A causal model takes the part with j ≤ i. The formulas live in `tfviz.patterns`; here is how five of
them get the same number of pairs, and two numbers that tell what the pairs connect.

>>> pattern = five(64, keys=8)["band"]
>>> pattern.reach(64).diameter, round(spectral_gap(pattern, 64), 3)
(16, 0.009)
"""

from __future__ import annotations

from functools import reduce
from math import sqrt
from operator import or_

import torch

from tfviz import _arguments, patterns
from tfviz.patterns import Pattern


def union(*parts: Pattern) -> Pattern:
    """Every pair that one of the parts has. Raises ValueError without any part."""
    if not parts:
        raise ValueError("parts is empty; give at least one pattern")
    return reduce(or_, parts)


def five(L: int, keys: int, gap: int = 4, seed: int = 0) -> dict[str, Pattern]:
    """One of each kind for L tokens with about L · keys pairs, as far as whole numbers allow.

    The global tokens are g with g (2L − g) ≈ L · keys; windows have ⌊keys/2⌋ on each side, less at
    the ends of the sequence.
    """
    _arguments.integer("L", L, 1)
    _arguments.integer("keys", keys, 1, L)
    tokens = max(1, round(L - sqrt(L * (L - keys))))
    return {
        "global": patterns.global_tokens(count=tokens),
        "band": patterns.band(radius=keys // 2),
        "dilated": patterns.dilated(radius=keys // 2, dilation=gap),
        "random": patterns.random_keys(count=keys, seed=seed),
        "block local": patterns.block_local(block=keys),
    }


def spectral_gap(pattern: Pattern, L: int) -> float:
    """1 − λ₂ of a walk that steps along the pairs, either way, or stays: 0 if it cannot get
    everywhere, near 1 if after a few steps it may be anywhere.

    With M the symmetric 0/1 matrix of the linked pairs and the diagonal, D its row sums, λ₂ is the
    second largest eigenvalue of D⁻¹ M, the same as that of D^−½ M D^−½.
    """
    mask = pattern.mask(_arguments.integer("L", L, 2))
    if mask.dim() == 3:
        mask = mask.any(0)  # heads of one layer work together
    linked = (mask | mask.T | torch.eye(L, dtype=torch.bool)).double()
    root = linked.sum(-1).rsqrt()
    values = torch.linalg.eigvalsh(root[:, None] * linked * root)  # ascending
    return max(0.0, 1 - values[-2].item())
