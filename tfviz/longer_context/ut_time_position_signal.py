"""A signal of position and step, for a layer that is used again and again.

    P^k_{i,2m} = sin(i ω_m) + sin(k ω_m)      P^k_{i,2m+1} = cos(i ω_m) + cos(k ω_m)

Dehghani et al. 2018 (arXiv 1807.03819): the sum of two sinusoidal codes (`sinusoidal_pe`). The
paper and the code below write t for the step k. The sum does not change when i and k are swapped:
position 3 at step 5 looks like position 5 at step 3. In tensor2tensor all sines stand before all
cosines, steps count from 0, and by default the code of a step is a learned vector.

>>> code = time_position(torch.arange(8), 5, d=16)
>>> torch.equal(code[3], time_position(torch.tensor(5), 3, d=16))
True
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.position.sinusoidal_pe import sinusoids, speeds

__all__ = ["LearnedSteps", "TimePosition", "time_position"]


@named
def time_position(
    i: Num[Tensor, "*L"], t: float, d: int, base: float = 10_000.0, step_base: float | None = None
) -> Float[Tensor, "*L d"]:
    """P^k_i, where k is `t`. Another `step_base` than `base` tells the two apart; None: `base`."""
    return sinusoids(i, d, base) + sinusoids(torch.tensor(t), d, step_base or base).to(i.device)


class TimePosition(nn.Module):
    """scale · P^k_i, as the sum of a part by place and a part by step; k is `t`, from 1.

    steps   False: only the place is told, at every step
    """

    @named
    def __init__(
        self, d: int, base: float = 10_000.0, scale: float = 1.0, steps: bool = True,
        step_base: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d, self.base, self.steps = d, base, steps
        self.step_base = step_base or base
        self.scale = _arguments.real("scale", scale)
        speeds(d, base), speeds(d, self.step_base)  # errors belong here

    def place(self, i: Num[Tensor, "L"]) -> Float[Tensor, "L d"]:
        return self.scale * sinusoids(i, self.d, self.base)

    def step(self, t: int) -> Float[Tensor, "d"]:
        return self.scale * self.steps * sinusoids(torch.tensor(t), self.d, self.step_base)

    @named
    def forward(self, i: Num[Tensor, "L"], t: int) -> Float[Tensor, "L d"]:
        return self.place(i) + self.step(t)


class LearnedSteps(TimePosition):
    """Sinusoids for places, and a learned vector for each of T steps."""

    @named
    def __init__(self, d: int, T: int, base: float = 10_000.0, scale: float = 1.0) -> None:
        super().__init__(d, base, scale)
        self.E = nn.Parameter(0.02 * torch.randn(_arguments.integer("T", T, 1), d))

    def step(self, t: int) -> Float[Tensor, "d"]:
        return self.E[_arguments.integer("t", t, 1, len(self.E)) - 1]
