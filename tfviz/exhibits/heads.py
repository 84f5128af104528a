"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import Exhibit, N, drawn
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


OWN = "four heads leave little to share, so `head_sharing` compares it in a model that has eight"
EXHIBITS = {
    "multi_query_attention": Exhibit(four_questions, why_not=OWN),
    "grouped_query_attention": Exhibit(groups, why_not=OWN),
}
