"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import Exhibit, N, drawn, spread
from tfviz.heads.collaborative_heads import blocks
from tfviz.heads.grouped_query_attention import reads
from tfviz.heads.multi_query_attention import multi_query_definition
from tfviz.heads.talking_heads import talking_definition


def four_questions() -> Tensor:
    """The maps of four heads that read the same keys."""
    X, W_q, W = drawn(N // 2, 8, seed=3), drawn(4, 8, 8, seed=5), torch.eye(8)
    A = multi_query_definition(X, 0.6 * W_q, W, W, torch.zeros(32, 8))[1]
    maps = [a / a.amax(-1, keepdim=True) for a in A]
    return torch.cat([torch.cat(maps[:2], 1), torch.cat(maps[2:], 1)])


def groups() -> Tensor:
    """From top to bottom 24 heads of queries, side by side six heads of keys: who reads which."""
    return (torch.tensor(reads(N, 6))[:, None] == torch.arange(N) // 4).float()


def before_and_after_talking() -> Tensor:
    """Above, the maps of two heads; below, a head that negates the first, and how they differ."""
    X, W = drawn(N // 2, 8, seed=3), drawn(2, 8, 8, seed=5)
    Q, V = 0.6 * X @ W, X.expand(2, -1, -1)
    P_l, both = torch.tensor([[1.0, -1.0], [0.0, 0.0]]), torch.eye(2)
    plain = talking_definition(Q, X.expand(2, -1, -1), V, both, both)[1]
    negated = talking_definition(Q, X.expand(2, -1, -1), V, P_l, both)[1]
    apart = spread(negated[0] - negated[1])
    maps = [a / a.amax(-1, keepdim=True) for a in (*plain, negated[1])]
    return torch.cat([torch.cat(maps[:2], 1), torch.cat([maps[2], apart], 1)])


def from_blocks_to_shared() -> Tensor:
    """Mixing vectors of three heads over 24 features: above in blocks, below shared by all."""
    shared = drawn(3, N, seed=2).abs().clamp(max=2) / 2
    return torch.cat([blocks(3, N), shared]).repeat_interleave(N // 6, 0)


OWN = "its own experiment compares it, in a model with eight heads, where this one has four"
EXHIBITS = {
    "talking_heads": Exhibit(
        before_and_after_talking,
        why_not="its own experiment compares it, with heads of 16 numbers and with heads of 4",
    ),
    "collaborative_heads": Exhibit(
        from_blocks_to_shared,
        why_not="its own experiment compares it, as what becomes of a trained layer",
    ),
    "multi_query_attention": Exhibit(four_questions, why_not=OWN),
    "grouped_query_attention": Exhibit(groups, why_not=OWN),
}
