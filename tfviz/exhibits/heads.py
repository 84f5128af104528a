"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import Exhibit, N, drawn, spread
from tfviz.heads.decoupled_head_size import drawn_by
from tfviz.heads.grouped_query_attention import reads
from tfviz.heads.multi_query_attention import multi_query_definition


def four_questions() -> Tensor:
    """The maps of four heads that read the same keys."""
    X, W_q, W = drawn(N // 2, 8, seed=3), drawn(4, 8, 8, seed=5), torch.eye(8)
    A = multi_query_definition(X, 0.6 * W_q, W, W, torch.zeros(32, 8))[1]
    maps = [a / a.amax(-1, keepdim=True) for a in A]
    return torch.cat([torch.cat(maps[:2], 1), torch.cat(maps[2:], 1)])


def groups() -> Tensor:
    """From top to bottom 24 heads of queries, side by side six heads of keys: who reads which."""
    return (torch.tensor(reads(N, 6))[:, None] == torch.arange(N) // 4).float()


def what_three_numbers_draw() -> Tensor:
    """A narrow head's attempt at a random map: blocks, where the map has single keys."""
    return spread(drawn_by((2 * drawn(N, N, seed=6)).softmax(-1), 3).sqrt())


OWN = "its own experiment compares it, in a model with eight heads, where this one has four"
EXHIBITS = {
    "multi_query_attention": Exhibit(four_questions, why_not=OWN),
    "grouped_query_attention": Exhibit(groups, why_not=OWN),
    "decoupled_head_size": Exhibit(
        what_three_numbers_draw,
        why_not="it is a choice of one size: chapter 29 fits maps with heads of several",
    ),
}
