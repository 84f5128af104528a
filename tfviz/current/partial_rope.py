"""Partial rotary positions: some pairs of a head's numbers are turned, the others say only what.

    partial        θ_m = base^{−2m/(p d)}    the first p d numbers have a ladder of their own
    proportional   θ_m = base^{−2m/d}        the fastest clocks of the whole head's ladder
                   for m < p d/2; θ_m = 0 for the other pairs, which stand still

d is the width of one head, and m counts from 0. Scores of what stands still do not know how far
apart two tokens are: it can find a content at any distance, and what turns can tell near from far.
*Partial* are GPT-J (64 of 256 numbers) and GPT-NeoX (a quarter), Black et al. 2022 (arXiv
2204.06745), and what the configurations of Hugging Face call `partial_rotary_factor`.
*Proportional* is p-RoPE of Barbero et al. 2024 (arXiv 2410.06205), who found that trained models
use the slowest clocks hardly for positions, and stopped them. With the same p the two differ: a
ladder of its own reaches slow speeds within the numbers that turn, the fastest clocks do not.

Both give (d_head/2,) speeds in float64, for `Rope(speeds=…)`: GPT(…, core=lambda: Rope(64,
speeds=partial(partial_speeds, p=0.25))). Raises ValueError for p out of [0, 1], and for one that
does not turn whole pairs.

>>> partial_speeds(8, p=0.5).tolist(), proportional_speeds(8, p=0.5).tolist()
([1.0, 0.01, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0])
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.position.rope import speeds

__all__ = ["partial_speeds", "proportional_speeds"]

Speeds = Float[Tensor, "d_head/2"]


@named
def partial_speeds(d_head: int, p: float, base: float = 10_000.0) -> Speeds:
    """A whole ladder, from 1 down to nearly 1/base, in the first p · d_head numbers."""
    n = _pairs(d_head, p)
    return _standing(speeds(2 * n, base) if n else speeds(d_head, base)[:0], d_head)


@named
def proportional_speeds(d_head: int, p: float, base: float = 10_000.0) -> Speeds:
    """The ladder of the whole head, of which the fastest share p of clocks run."""
    n = _pairs(d_head, p)
    return _standing(speeds(d_head, base)[:n], d_head)


def _pairs(d_head: int, p: float) -> int:
    """How many pairs turn."""
    pairs = _arguments.integer("d_head", d_head, 2) // 2
    n = _arguments.real("p", p, 0.0, 1.0) * pairs
    if d_head % 2 or round(n) != n:
        raise ValueError(
            f"p = {p} of d_head = {d_head} numbers are {n:g} pairs; give an even d_head, and p a "
            f"multiple of 1/{pairs}"
        )
    return round(n)


def _standing(turning: Tensor, d_head: int) -> Speeds:
    return F.pad(turning, (0, d_head // 2 - len(turning)))
