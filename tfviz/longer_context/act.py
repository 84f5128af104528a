"""Adaptive computation time: a recurrent network decides at each input how long to think.

    s^k = S(s^{k−1}, x^k),   x^k = (x, 1) at the first step, (x, 0) at the others
    η^k = σ(s^k w + b)
    K = min{M, min{k' : Σ_{k ≤ k'} η^k ≥ 1 − ε}},   R = 1 − Σ_{k < K} η^k
    p^k = η^k for k < K,  p^K = R,   s = Σ p^k s^k,   y = Σ p^k y^k
    loss + τ Σ_t (K(t) + R(t))

Graves 2016 (arXiv 1603.08983), who writes n for k, N for K and h for η; so does the code below.
Σ p^k = 1, so with y^k = s^k W_y + b_y it is the same to read the mean state once: y = s W_y + b_y.
K is a whole number and has no gradient; the gradient of R is −1 by each η^k, k < K.

>>> halting(torch.tensor([0.3, 0.4, 0.5, 0.9])).p
tensor([0.3000, 0.4000, 0.3000, 0.0000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["ACT", "halting", "ponder"]


class Halted(NamedTuple):
    N: Int[Tensor, "*n"]
    R: Float[Tensor, "*n"]
    p: Float[Tensor, "*n M"]


@named
def halting(h: Float[Tensor, "*n M"], eps: float = 0.01) -> Halted:
    """Steps, remainder and weights, from the halting numbers of M steps.

    Raises ValueError for an h that is no probability.
    """
    _arguments.real("eps", eps, 0.0, 1.0)
    _arguments.tensor("h", h, "(…, M)")
    if not h.numel() or not ((h >= 0) & (h <= 1)).all():
        raise ValueError(
            f"h has shape {tuple(h.shape)} and holds {_outside(h)}; give what a sigmoid says, "
            "from 0 to 1, of at least one step"
        )
    before = h.cumsum(-1) - h  # Σ of the steps before
    n = torch.arange(1, h.shape[-1] + 1, device=h.device)
    last = (before + h >= 1 - eps) | (n == h.shape[-1])
    N = last.int().argmax(-1) + 1  # the first
    R = 1 - before.gather(-1, N[..., None] - 1).squeeze(-1)
    here = N[..., None]
    p = torch.where(n < here, h, torch.where(n == here, R[..., None], torch.zeros_like(h)))
    return Halted(N, R, p)


def _outside(h: Tensor) -> str:
    wrong = h[~((h >= 0) & (h <= 1))]
    return f"{wrong[0].item():.3g}" if len(wrong) else "nothing"


class Pondered(NamedTuple):
    """Of n rows: Σ p s, the last state, N, R, and how many ran at each step."""

    mean: Float[Tensor, "n d"]
    last: Float[Tensor, "n d"]
    N: Int[Tensor, "n"]
    R: Float[Tensor, "n"]
    ran: list[int]

    @property
    def cost(self) -> Float[Tensor, "n"]:
        """N + R."""
        return self.N + self.R


Step = Callable[[Tensor, int, Tensor], tuple[Tensor, Tensor]]
"""(states of all rows, n = 1, 2, …, numbers of the rows that run) → new states, h: of those."""


@named
def ponder(
    s: Float[Tensor, "n d"],
    step: Step,
    M: int,
    eps: float = 0.01,
    running: Int[Tensor, "r"] | None = None,
) -> Pondered:
    """Steps until every row has halted, M at most. A row that has halted is not computed again.

    Rows that are not in `running` at the start have N = R = 0 and the mean 0.
    """
    _arguments.integer("M", M, 1)
    _arguments.real("eps", eps, 0.0, 1.0)
    running = torch.arange(len(s), device=s.device) if running is None else running
    mean, N, ran = torch.zeros_like(s), s.new_zeros(len(s), dtype=torch.long), list[int]()
    total, R = s.new_zeros(len(s)), s.new_zeros(len(s))
    for n in range(1, M + 1):
        if not len(running):
            break
        new, h = (part.to(s.dtype) for part in step(s, n, running))  # not so under autocast
        before = total[running]
        halts = (before + h >= 1 - eps) | (n == M)
        p = torch.where(halts, 1 - before, h)
        s = s.index_copy(0, running, new)
        mean = mean.index_add(0, running, p[:, None] * new)
        total, R = total.index_copy(0, running, before + p), R.index_copy(0, running, p)
        N[running] = n
        ran.append(len(running))
        running = running[~halts]
    return Pondered(mean, s, N, R, ran)


class Thought(NamedTuple):
    y: Float[Tensor, "b L d_out"]
    N: Int[Tensor, "b L"]
    R: Float[Tensor, "b L"]

    def price(self) -> Float[Tensor, ""]:
        """The mean over inputs of N + R: what τ is multiplied with."""
        return (self.N + self.R).mean()


class ACT(nn.Module):
    """A recurrent network that takes N(t) steps of its cell at input t.

    cell   torch.nn.GRUCell or RNNCell;  M   the most steps;  bias   b at the start
    """

    @named
    def __init__(
        self, d_in: int, d: int, d_out: int, *, M: int = 10, eps: float = 0.01, bias: float = 1.0,
        cell: Callable[[int, int], nn.Module] = nn.GRUCell,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d, self.M, self.eps = _arguments.integer("d", d, 1), M, eps
        self.cell, self.halt, self.read = cell(d_in + 1, d), nn.Linear(d, 1), nn.Linear(d, d_out)
        nn.init.constant_(self.halt.bias, _arguments.real("bias", bias))

    @named
    def forward(self, x: Float[Tensor, "b L d_in"], s: Tensor | None = None) -> Thought:
        """`s` is the state to begin with, (b, d): zeros, if it is left out."""
        _arguments.tensor("x", x, "(b, L, d_in)")
        if x.dim() != 3 or not x.numel():
            raise ValueError(
                f"x has shape {tuple(x.shape)}; give (b, L, d_in), at least one input: x[None] for "
                "one text"
            )
        s = x.new_zeros(len(x), self.d) if s is None else _arguments.tensor("s", s, "(b, d)")
        if s.shape != (len(x), self.d):
            raise ValueError(
                f"s has shape {tuple(s.shape)}; give {(len(x), self.d)}, a state for each text"
            )
        found = []
        for x_t in x.unbind(1):
            found.append(self._think(x_t, s))
            s = found[-1].mean
        y, N, R = (
            torch.stack(part, 1)
            for part in ([f.mean for f in found], [f.N for f in found], [f.R for f in found])
        )
        return Thought(self.read(y), N, R)

    def _think(self, x: Float[Tensor, "b d_in"], s: Float[Tensor, "b d"]) -> Pondered:
        def step(s: Tensor, n: int, running: Tensor) -> tuple[Tensor, Tensor]:
            flag = x.new_full((len(running), 1), float(n == 1))
            new = self.cell(torch.cat([x[running], flag], 1), s[running])
            return new, self.halt(new).sigmoid().squeeze(1)

        return ponder(s, step, self.M, self.eps)
