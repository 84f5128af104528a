"""Native sparse attention: a query reads means of blocks, the blocks that fit best, and a window.

Yuan and others 2025 (`yuan2025native`). Content decides which keys are read, and keys are read in
whole blocks, as hardware does. The paper compresses a block by a learned layer and scores blocks by
the weights of the compressed keys. Here a block is compressed to the mean of its keys, and is
scored by how well this mean fits the query, as in MoBA (`lu2025moba`). The gates that weigh the
three answers are left out.

>>> import torch
>>> Q = K = torch.tensor([[1.0], [1.0], [-1.0], [-1.0], [1.0], [1.0]])
>>> means, selected, window = branches(Q, K, block=2, chosen=1, lookback=1)
>>> selected[5].int(), window[5].int()  # the last query: the block that fits, and its own
(tensor([1, 1, 0, 0, 1, 1], dtype=torch.int32), tensor([0, 0, 0, 0, 1, 1], dtype=torch.int32))
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["branches"]


@named
def branches(
    Q: Float[Tensor, "L d"], K: Float[Tensor, "L d"], block: int, chosen: int, lookback: int
) -> tuple[Float[Tensor, "L L"], Bool[Tensor, "L L"], Bool[Tensor, "L L"]]:
    """What each query reads in three branches: the weights of the means of blocks, then two masks,
    the keys of the blocks that fit best with those of its own block, and those of a window.

    A query sees the means of the blocks that are complete before its own. The weight of a mean
    stands at each key of its block.

    Raises TypeError unless Q and K are tensors of real numbers. Raises ValueError unless both are
    (L, d), the block divides L, no more blocks are chosen than there are, and the lookback is not
    negative.
    """
    _arguments.tensor("Q", Q, "(L, d)")
    _arguments.tensor("K", K, "(L, d)")
    if Q.ndim != 2 or Q.shape != K.shape:
        raise ValueError(f"Q {tuple(Q.shape)} and K {tuple(K.shape)}: give both as (L, d)")
    L = len(K)
    if L % _arguments.integer("block", block, 1):
        raise ValueError(f"block = {block} does not divide L = {L}; choose one that does")
    _arguments.integer("chosen", chosen, 1, L // block)
    _arguments.integer("lookback", lookback, 0)
    j = torch.arange(L, device=Q.device)
    i, blocks = j[:, None], j[: L // block]
    earlier, own = blocks < i // block, blocks == i // block
    fit = Q @ K.unflatten(0, (-1, block)).mean(1).T / math.sqrt(Q.shape[1])
    fit = fit.masked_fill(~earlier, -math.inf)
    means = fit.softmax(-1).nan_to_num().repeat_interleave(block, 1)
    best = torch.zeros_like(earlier).scatter(1, fit.topk(chosen).indices, True) & earlier
    selected = (best | own).repeat_interleave(block, 1) & (j <= i)
    return means, selected, (j <= i) & (j >= i - lookback)
