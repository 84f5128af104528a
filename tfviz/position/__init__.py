"""Part II, positions: one file for each mechanism. Those inside attention are cores.

>>> i, j = positions(2, 3)
>>> (i - j).tolist()
[[1, 0, -1], [2, 1, 0]]
"""

from collections.abc import Callable

from torch import Tensor

from tfviz.cores import Dense, positions

__all__ = ["Bias", "positions"]


class Bias(Dense):
    """A score bias that is a plain function of the indices, such as `lambda i, j: -0.1 * (i - j)`.

    It may return (Lq, Lk), or (h, Lq, Lk) where heads differ, and holds for every length.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return self.function(*positions(Q.shape[2], K.shape[2], Q.device)).to(Q.dtype)
