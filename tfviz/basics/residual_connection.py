"""Skip connections: a module adds to its input instead of replacing it.

    z = x + F(x)        ∂z/∂x = I + J        N of them:  (I + J_1)(I + J_2) … (I + J_N)

He et al. 2015 (arXiv 1512.03385); around every module of the Transformer since Vaswani et al. 2017.
Vectors are rows, so J holds ∂F_c/∂x_r in row r, column c, and a change dx travels as dx (I + J).
Multiplied out, the product is a sum over 2^N paths, each through some of the modules and past the
others (Veit et al. 2016, arXiv 1605.06431). For the map itself that holds only if all F are linear.

>>> skip(torch.ones(2), lambda x: 2 * x).tolist()
[3.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz._arguments import named

__all__ = ["Residual", "skip"]

Layer = Callable[[Tensor], Tensor]


@named
def skip(X: Float[Tensor, "*L d"], F: Layer) -> Float[Tensor, "*L d"]:
    """X + F(X). Raises ValueError if F changes the shape."""
    added = F(X)
    if added.shape != X.shape:
        raise ValueError(
            f"F makes {tuple(added.shape)} of {tuple(X.shape)}; what a skip adds must have the "
            "shape of its input, so end F with a projection back to it"
        )
    return X + added


class Residual(nn.Module):
    """`skip` around a module."""

    @named
    def __init__(self, F: nn.Module) -> None:
        super().__init__()
        self.F = F

    @named
    def forward(self, X: Float[Tensor, "*L d"]) -> Float[Tensor, "*L d"]:
        return skip(X, self.F)


def stream(X: Float[Tensor, "*L d"], modules: Iterable[Layer]) -> list[Float[Tensor, "*L d"]]:
    """The residual stream: X, and what it is after each of the modules, in turn, with skips."""
    states = [X]
    for F in modules:
        states.append(skip(states[-1], F))
    return states


# --- the gradient's ways back ---------------------------------------------------------------------


def paths_literally(J: Sequence[Float[Tensor, "d d"]]) -> list[Float[Tensor, "d d"]]:
    """For k = 0 … N: the sum over all paths through exactly k of the N modules, one by one."""
    d = len(J[0])
    by_length = [torch.zeros(d, d, dtype=J[0].dtype) for _ in range(len(J) + 1)]
    for k in range(len(J) + 1):
        for taken in combinations(range(len(J)), k):  # in the order of the layers
            product = torch.eye(d, dtype=J[0].dtype)
            for n in taken:
                product = product @ J[n]
            by_length[k] += product
    return by_length


def paths(J: Sequence[Float[Tensor, "d d"]]) -> list[Float[Tensor, "d d"]]:
    """The same with N² products instead of 2^N: a path of k modules either ends in J_n or not."""
    by_length = [torch.eye(len(J[0]), dtype=J[0].dtype)]
    for J_n in J:
        longer = [P @ J_n for P in by_length]
        kept = [*by_length, torch.zeros_like(J_n)]
        by_length = [kept[0], *(a + b for a, b in zip(kept[1:], longer, strict=True))]
    return by_length


def row_spread(X: Float[Tensor, "*b L d"]) -> Float[Tensor, "*b"]:
    """‖X − mean row‖ / ‖X‖: 0 if all rows are the same, near 1 if they have little in common."""
    return (X - X.mean(-2, keepdim=True)).norm(dim=(-2, -1)) / X.norm(dim=(-2, -1))
