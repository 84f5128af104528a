"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.beyond_text.conformer_block import depthwise
from tfviz.exhibits.exhibit import Exhibit, N, drawn, spread


def near_and_far() -> Tensor:
    """What each of 24 outputs is made of: its neighbours through a convolution, all samples through
    attention."""
    near = depthwise(torch.eye(N), torch.full((N, 7), 1 / 7))
    far = (1.5 * drawn(N, N, seed=4)).softmax(-1)
    return spread((near + far).sqrt())


EXHIBITS = {
    "conformer_block": Exhibit(
        near_and_far,
        why_not="its convolution looks ahead, so that a GPT cannot have it; `peaks` compares it",
    ),
}
