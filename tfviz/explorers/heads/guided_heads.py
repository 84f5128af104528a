"""The pattern that a guided head is shown, its map, and the least loss that any map can have."""

import torch
from torch import Tensor

from tfviz.explorers.base import Explorer, Numbers, knob
from tfviz.heads.guided_attention import PATTERNS, floors, guided_loss, targets

OWN = 3.0
"""At first, the head looks mainly at the query's own token, whose score is higher by this much."""


class GuidedHeads(Explorer):
    """Target and map of one head on a short text, and the squared distance of each row.

    The map lies between one that looks mainly at the query's own token and the best that a softmax
    can do for the pattern.
    """

    label = "A pattern that a head is shown, and how close each row can get to it"
    rem = 42.5, 42.5, 41.5, 40, 77.5

    pattern = knob("previous", of={name: f"{name} token" for name in PATTERNS}, label="pattern")
    causal = knob(False, label="causal mask")
    L = knob(6, low=3, high=10, label="tokens", letter="L")
    learned = knob(0.3, low=0.0, high=1.0, step=0.1, label="learning progress")
    asks = "Choose “next token” and the causal mask: which queries can still follow the pattern?"

    def visible(self) -> Tensor:
        full = torch.ones(self.L, self.L, dtype=torch.bool)
        return full.tril() if self.causal else full

    def numbers(self) -> Numbers:
        """The target, the map (0 where it may not look), and of each row the loss and its
        floor."""
        T, visible = targets(self.pattern, self.L).double(), self.visible()
        scores = OWN * torch.eye(self.L, dtype=torch.float64)
        start = scores.masked_fill(~visible, -torch.inf).softmax(-1)
        reached = (T * visible).sum(-1, keepdim=True) > 0
        even = visible / visible.sum(-1, keepdim=True)
        best = torch.where(reached, T, even.double())
        A = (1 - self.learned) * start + self.learned * best
        return {
            "T": T,
            "A": A,
            "rows": (A - T).square().sum(-1),
            "floors": floors(T, visible),
            "loss": guided_loss(A, T),
        }
