"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.beyond_text.gtrxl import passed
from tfviz.exhibits.exhibit import Exhibit, N


def what_gates_leave() -> Tensor:
    """From top to bottom 24 gates, side by side biases from 0 to 6: how much of x is left."""
    shares = torch.tensor([passed(b) for b in torch.linspace(0, 6, N).tolist()])
    return shares ** torch.arange(1, N + 1)[:, None]


EXHIBITS = {
    "gtrxl": Exhibit(
        what_gates_leave,
        why_not="chapter 31 compares it, where an agent learns from rewards",
    ),
}
