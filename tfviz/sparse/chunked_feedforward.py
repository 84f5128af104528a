"""Chunked feed-forward: the wide hidden layer exists for a few positions at a time.

Kitaev, Kaiser, Levskaya 2020 (arXiv 2001.04451, section 3). The network sees each place alone, so

    FFN(X) = [FFN(X⁽¹⁾); …; FFN(X⁽ᶜ⁾)]

and the largest tensor shrinks from L·d_ff to L·d_ff/c. In training autograd keeps every chunk's
hidden layer all the same, unless the chunk is computed again (`again`), as in reversible layers.

>>> X = torch.arange(10.0).view(1, 5, 2)
>>> torch.equal(chunked(torch.exp, X, 3), X.exp())
True
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["chunked"]


@named
def chunked(
    function: Callable[[Tensor], Tensor],
    X: Float[Tensor, "*b L d"],
    chunks: int,
    again: bool = False,
) -> Float[Tensor, "*b L e"]:
    """function, which sees each row alone, over `chunks` parts of the rows; sizes differ by one.

    again   compute each part once more in the backward pass instead of keeping what is inside

    Raises ValueError unless 1 <= chunks <= L.
    """
    _arguments.integer("chunks", chunks, 1, X.shape[-2])

    def one(part: Tensor) -> Tensor:
        if again and torch.is_grad_enabled():
            done: Tensor = checkpoint(function, part, use_reentrant=False)
            return done
        return function(part)

    return torch.cat([one(part) for part in X.tensor_split(chunks, -2)], -2)
