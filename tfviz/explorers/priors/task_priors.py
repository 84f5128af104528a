"""One prior for each task: blocks on the diagonal, whose columns FiLM scales and shifts."""

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.priors.camtl_prior import task_prior

L, LIKED = 8, 2.0


def learned(r: int) -> torch.Tensor:
    """What a layer has learned, r blocks below each other: look left, and do not look right."""
    B = L // r
    i = torch.arange(L, dtype=torch.float64)[:, None] % B
    away = i - torch.arange(B)
    return LIKED * ((away == 1).double() - (away == -1).double())


class TaskPriors(Explorer):
    """Eight tokens with equal scores, so that the prior alone decides.

    i       the query whose row is shown
    gamma   γ, the same for all columns
    beta    β of the first column of each block; that of the others is 0
    """

    label = "A block-diagonal prior that a task scales and shifts"
    rem = 43.5, 43.5, 43.5, 39.5, 103.5
    data = handed(L=L, liked=LIKED)

    r = knob(2, of=[1, 2, 4], label="blocks", letter="r")
    gamma = knob(0.0, of=[-3.0, -2.0, -1.0, 0.0, 1.0], label="scale of the task", letter="γ")
    beta = knob(0.0, of=[0.0, 1.0, 2.0, 3.0], label="shift of each first column", letter="β")
    i = knob(4, low=0, high=L - 1, label="query", letter="i")
    asks = "Set γ to −2: where does this other task look? And what does β do to every block?"

    def numbers(self) -> Numbers:
        """The prior, and the weights where the scores of all pairs are equal."""
        B = L // self.r
        beta = torch.zeros(B, dtype=torch.float64)
        beta[0] = self.beta
        gamma = torch.full((B,), self.gamma, dtype=torch.float64)
        M = task_prior(learned(self.r), gamma, beta)
        return {"M": M, "weights": M.softmax(-1)}
