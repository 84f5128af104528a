"""FlashAttention: a softmax over all keys, of which no more than a block is looked at at a time.

Dao and others 2022 (`dao2022flashattention`). For each query three things are carried from block to
block: the largest score so far m, the sum of the weights so far ℓ, and the sum of the weighted
values so far o. For the keys j of the next block,

    m' = max(m, max_j s_j)
    ℓ' = exp(m − m') ℓ + Σ_j exp(s_j − m')
    o' = exp(m − m') o + Σ_j exp(s_j − m') v_j

and o/ℓ is the softmax over all keys that were read, exactly. This is the recurrence alone: the
paper's subject is a kernel that keeps these numbers in the processor's fast memory.

>>> import torch
>>> s, v = torch.tensor([1.0, 3.0, 2.0, 0.0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
>>> outputs_so_far(s, v, block=2)
tensor([1.8808, 2.2139])
>>> s.softmax(0) @ v
tensor(2.2139)
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["outputs_so_far"]


@named
def outputs_so_far(
    scores: Float[Tensor, "L"], values: Float[Tensor, "L"], block: int
) -> Float[Tensor, "blocks"]:
    """The output o/ℓ of one query after each block of its keys; three numbers are kept.

    Raises TypeError unless both are tensors of real numbers. Raises ValueError unless there are as
    many values as scores, at least one, and the block has at least one key.
    """
    _arguments.tensor("scores", scores, "(L,)")
    _arguments.tensor("values", values, "(L,)")
    if scores.ndim != 1 or scores.shape != values.shape or not len(scores):
        raise ValueError(
            f"scores {tuple(scores.shape)} and values {tuple(values.shape)}: give one value for "
            "each score of the query, and at least one"
        )
    _arguments.integer("block", block, 1)
    largest, total, output = scores.new_tensor(-math.inf), scores.new_zeros(()), 0.0
    outputs = []
    for s, v in zip(scores.split(block), values.split(block), strict=True):
        new = torch.maximum(largest, s.max())
        fade, weights = (largest - new).exp(), (s - new).exp()
        total = fade * total + weights.sum()
        output = fade * output + weights @ v
        largest = new
        outputs.append(output / total)
    return torch.stack(outputs)
