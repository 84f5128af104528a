"""Dynamic routing of heads: what heads found is put together by agreement, in a few rounds.

Head m proposes a vector for each of the outputs c, its votes u_mc = o_m W_mc. Then, T times,

    r_m = softmax_c(l_m),      s_c = Σ_m r_mc u_mc,      ω_c = squash(s_c),      l_mc += ω_c · u_mc

from l = 0. A head divides its share 1 among the outputs, and gives more to those that its votes
agree with. Sabour, Frosst, Hinton 2017 (arXiv 1710.09829), section 2; on the heads of attention Gu,
Feng 2019 (arXiv 1909.00188) and Li et al. 2019 (arXiv 1904.03100). `squashed=False` is the simple
routing of the latter, as we recall it: ω_c is the mean s_c / Σ_m r_mc.

The outputs side by side are what the layer says, in the place of W^o: `GPT(…, join=
DynamicRouting)`. The votes of all heads are cut out of h W^o, so the simple routing of one round is
W^o itself. Each token is routed for itself, so it costs O(L), and streams.

>>> votes = torch.tensor([[[1.0], [0.0]], [[1.0], [0.0]], [[-1.0], [0.0]]])  # 3 heads, 2 outputs
>>> for shares, out in routing_rounds(votes, 3, squashed=False):
...     print(shares[:, 0].numpy().round(2), out[0].numpy().round(2))
[0.5 0.5 0.5] [0.33]
[0.58 0.58 0.42] [0.47]
[0.69 0.69 0.31] [0.63]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["DynamicRouting", "HeadVotes", "dynamic_definition", "routing_rounds", "squash"]

Votes = Float[Tensor, "*b h outputs d"]


class Round(NamedTuple):
    """The shares of a round, and what they make of the votes."""

    shares: Float[Tensor, "*b h outputs"]
    out: Float[Tensor, "*b outputs d"]


@named
def squash(s: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """The same direction, and a length below 1: |s|² / (1 + |s|²). Zero stays zero."""
    kind = torch.promote_types(s.dtype, torch.float32)  # squares of halves overflow at 256
    x = s.to(kind)
    # beyond this length the answer has length 1 to the last digit; squares must not overflow
    x = x / (x.detach().abs().amax(-1, keepdim=True) / torch.finfo(kind).max ** 0.25).clamp(min=1)
    square = (x * x).sum(-1, keepdim=True)
    return (x * (square + torch.finfo(kind).tiny).sqrt() / (1 + square)).to(s.dtype)


@named
def routing_rounds(votes: Votes, rounds: int = 3, squashed: bool = True) -> list[Round]:
    """Every round of dynamic routing; the last one is the answer."""
    looked_at(votes)
    agreed, made = torch.zeros_like(votes[..., 0]), list[Round]()
    for _ in range(_arguments.integer("rounds", rounds, 1)):
        shares = agreed.softmax(-1)
        s = torch.einsum("...mc,...mcd->...cd", shares, votes)
        out = squash(s) if squashed else s / shares.sum(-2)[..., None]
        made.append(Round(shares, out))
        agreed = agreed + torch.einsum("...cd,...mcd->...mc", out, votes)
    return made


@named
def dynamic_definition(
    votes: Float[Tensor, "h outputs d"], rounds: int = 3, squashed: bool = True
) -> Round:
    """The last round for one token, head by head and output by output."""
    h, outputs, _ = votes.shape
    agreed = [[torch.zeros(()).to(votes)] * outputs for _ in range(h)]
    for _ in range(rounds):
        shares = [[x.exp() / sum(y.exp() for y in row) for x in row] for row in agreed]
        out = []
        for c in range(outputs):
            s: Tensor = sum(shares[m][c] * votes[m, c] for m in range(h))  # type: ignore[assignment]
            length = s.norm()
            out.append(
                length**2 / (1 + length**2) * s / length
                if squashed
                else s / sum(shares[m][c] for m in range(h))
            )
        agreed = [[agreed[m][c] + out[c] @ votes[m, c] for c in range(outputs)] for m in range(h)]
    return Round(torch.stack([torch.stack(row) for row in shares]), torch.stack(out))


def looked_at(votes: Tensor) -> None:
    """Raises TypeError or ValueError for what are no votes, and says what would be."""
    shape = "(…, heads, outputs, numbers)"
    _arguments.tensor("votes", votes, shape)
    if votes.dim() < 3:
        raise ValueError(f"votes has shape {tuple(votes.shape)}; give {shape}")
    _arguments.finite("votes", votes)


# --- in a model -----------------------------------------------------------------------------------


class HeadVotes(nn.Module):
    """The votes of h heads for `outputs` vectors that make up d numbers.

    W (h, outputs, d / h, d / outputs) begins as h times a linear layer from d to d, so the mean of
    the votes of all heads begins as what W^o would say; and it has as many weights.
    """

    @named
    def __init__(self, d: int, h: int, outputs: int | None = None) -> None:
        super().__init__()
        d, h = _arguments.integer("d", d, 1), _arguments.integer("h", h, 1)
        outputs = h if outputs is None else _arguments.integer("outputs", outputs, 1)
        if d % h or d % outputs:
            raise ValueError(f"d = {d}, h = {h}, outputs = {outputs}; h and outputs must divide d")
        self.W = nn.Parameter(torch.empty(h, outputs, d // h, d // outputs))
        nn.init.uniform_(self.W, -h / math.sqrt(d), h / math.sqrt(d))

    @named
    def forward(self, heads: Float[Tensor, "b h L d_head"]) -> Float[Tensor, "b L h outputs d_out"]:
        if heads.dim() != 4 or (heads.shape[1], heads.shape[3]) != (len(self.W), self.W.shape[2]):
            raise ValueError(
                f"heads have shape {tuple(heads.shape)}; give (batch, {len(self.W)}, L, "
                f"{self.W.shape[2]}), or make the routing for as many heads of that width"
            )
        return torch.einsum("bmli,mcio->blmco", heads, self.W)


class DynamicRouting(nn.Module):
    """In the place of W^o: `GPT(…, join=DynamicRouting)`.

    `outputs` vectors, as many as heads unless it is given; `rounds` of routing.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        outputs: int | None = None,
        *,
        rounds: int = 3,
        squashed: bool = True,
    ) -> None:
        super().__init__()
        self.votes, self.squashed = HeadVotes(d, h, outputs), squashed
        self.rounds = _arguments.integer("rounds", rounds, 1)

    @named
    def forward(
        self, heads: Float[Tensor, "b h L d_head"], X: Tensor | None = None
    ) -> Float[Tensor, "b L d"]:
        return routing_rounds(self.votes(heads), self.rounds, self.squashed)[-1].out.flatten(2)
