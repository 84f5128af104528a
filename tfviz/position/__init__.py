"""Part II, positions: one file for each mechanism, and what all of them may do to a model."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments


class Positions(nn.Module):
    """What a position encoding may do inside attention; this one does nothing.

    A scheme overrides one method or more, and what it learns is its own: a model makes one for each
    layer. `positions(Q, K)` says at which places the queries and keys stand, also with a cache.
    """

    reads_weights = False  # True where `values` is overridden: attention then makes all L² weights

    def turn(self, X: Float[Tensor, "b h L d_head"], start: int) -> Tensor:
        """Queries or keys that stand at start, start + 1, …, rotated."""
        return X

    def bias(
        self, Q: Float[Tensor, "b h Lq d_head"], K: Float[Tensor, "b h_kv Lk d_head"]
    ) -> Float[Tensor, "*b_h Lq Lk"] | None:
        """What is added to Q Kᵀ/√d_head, a tensor that broadcasts to (b, h, Lq, Lk), or None."""
        return None

    def values(self, A: Float[Tensor, "b h Lq Lk"]) -> Float[Tensor, "b h Lq d_head"]:
        """What is added to A V."""
        raise NotImplementedError(f"{type(self).__name__} reads the weights; give it `values`")


def positions(
    Lq: int, Lk: int, device: Any = None
) -> tuple[Int[Tensor, "Lq 1"], Int[Tensor, "Lk"]]:
    """(i, j), which broadcast to all pairs: the queries are the last Lq of the Lk >= Lq places."""
    _arguments.integer("Lk", Lk, Lq)
    j = torch.arange(Lk, device=device)
    return j[Lk - Lq :, None], j


class Bias(Positions):
    """A score bias that is a plain function of the indices, such as `lambda i, j: -0.1 * (i - j)`.

    It may return (Lq, Lk), or (h, Lq, Lk) where heads differ, and holds for every length.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return self.function(*positions(Q.shape[2], K.shape[2], Q.device)).to(Q.dtype)
