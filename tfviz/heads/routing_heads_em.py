"""EM routing of heads: votes that lie together make a cluster, and each output is one.

The votes u_mc of the heads m for the outputs c (`routing_heads_dynamic.HeadVotes`) are explained by
a Gaussian for each output, with a mean μ_c and a variance for each number. T times, from shares
r_mc = 1/outputs, the M-step (the first two lines) and the E-step (the last one):

    R_c = Σ_m a_m r_mc,                              μ_c = Σ_m a_m r_mc u_mc / R_c,
    v_c = Σ_m a_m r_mc (u_mc − μ_c)² / R_c + ε,      p_c = σ(λ (β_p − Σ_k (β_s + ½ ln v_ck) R_c))
    r_mc = p_c N(u_mc; μ_c, v_c) / Σ_c′ p_c′ N(u_mc′; μ_c′, v_c′)      between rounds

and output c is p_c μ_c: how sure times what. Hinton, Sabour, Frosst 2018, procedure 1, where ½ ln v
is ln σ, β_s is β_u and β_p is β_a; on the heads of attention Gu, Feng 2019 (arXiv 1909.00188) and
Li et al. 2019 (arXiv 1904.03100). a_m says how much head m counts, 1 unless it is given.

The densities are far too small for a float when a vote is far away, so the E-step stays in
logarithms. Equal votes have no variance, so ε is added to it: the floor. In the place of W^o:
`GPT(…, join=EMRouting)`; O(L), like dynamic routing.

>>> votes = torch.tensor([[[0.0], [1.0]], [[0.0], [-1.0]], [[6.0], [0.0]]])  # 3 heads, 2 outputs
>>> for fit in em_rounds(votes, 3, sharpness=0.0):
...     print(round(fit.mean[0, 0].item(), 2), fit.shares[:, 0].numpy().round(2))
2.0 [0.5 0.5 0.5]
0.78 [0.32 0.32 0.1 ]
0.09 [0.45 0.45 0.01]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.heads.routing_heads_dynamic import HeadVotes, Votes, looked_at

__all__ = ["EMRouting", "em_definition", "em_rounds"]


class Fit(NamedTuple):
    """The shares of a round, and the Gaussians that they make of the votes."""

    shares: Float[Tensor, "*b h outputs"]
    mean: Float[Tensor, "*b outputs d"]
    variance: Float[Tensor, "*b outputs d"]
    sure: Float[Tensor, "*b outputs"]

    @property
    def out(self) -> Float[Tensor, "*b outputs d"]:
        return self.sure[..., None] * self.mean


@named
def em_rounds(
    votes: Votes,
    rounds: int = 3,
    *,
    counts: Float[Tensor, "*b h"] | None = None,
    beta_s: Float[Tensor, "outputs"] | float = 0.0,
    beta_p: Float[Tensor, "outputs"] | float = 0.0,
    sharpness: float = 0.01,
    floor: float = 1e-4,
) -> list[Fit]:
    """Every round of EM routing; the last one is the answer.

    `counts` is a_m, `sharpness` λ, `floor` ε. A head with a count of 0 is not heard.
    """
    looked_at(votes)
    _arguments.real("sharpness", sharpness, 0.0)
    if _arguments.real("floor", floor, 0.0) == 0:
        raise ValueError("floor = 0 divides by the variance of equal votes, which is 0; give 1e-4")
    if counts is not None:
        _arguments.finite("counts", _arguments.tensor("counts", counts, "(…, heads)"))
    if counts is not None and counts.shape != votes.shape[:-2]:
        raise ValueError(
            f"counts has shape {tuple(counts.shape)}, votes {tuple(votes.shape)}; give a number "
            f"for each head, {tuple(votes.shape[:-2])}"
        )
    kind, dtype = torch.promote_types(votes.dtype, torch.float32), votes.dtype
    votes = votes.to(kind)  # squares of halves overflow at 256
    if counts is not None:
        counts = counts.to(kind)
        if not counts.is_meta and (counts < 0).any():
            raise ValueError(f"counts holds {float(counts.min()):.3g}; choose counts >= 0")
    beta_s, beta_p = _beta("beta_s", beta_s, kind), _beta("beta_p", beta_p, kind)
    if isinstance(beta_s, Tensor):
        beta_s = beta_s[..., None]
    shares, made = torch.full_like(votes[..., 0], 1 / votes.shape[-2]), list[Fit]()
    for _ in range(_arguments.integer("rounds", rounds, 1)):
        heard = shares if counts is None else shares * counts[..., None]
        total = heard.sum(-2)  # R_c
        weights = (heard / total.clamp(min=torch.finfo(total.dtype).tiny)[..., None, :])[..., None]
        mean = (weights * votes).sum(-3)
        apart = votes - mean[..., None, :, :]
        variance = (weights * apart**2).sum(-3) + floor
        spread = torch.log(variance) / 2  # ln σ
        cost = (beta_s + spread).sum(-1) * total
        log_sure = F.logsigmoid(sharpness * (beta_p - cost))
        made.append(Fit(*(x.to(dtype) for x in (shares, mean, variance, log_sure.exp()))))
        far = (apart**2 / (2 * variance[..., None, :, :])).sum(-1)
        normal = spread.sum(-1) + votes.shape[-1] / 2 * math.log(2 * math.pi)
        log_joint = log_sure[..., None, :] - far - normal[..., None, :]
        shares = (log_joint - log_joint.logsumexp(-1, keepdim=True)).exp()
    return made


def _beta(name: str, beta: Tensor | float, kind: torch.dtype) -> Tensor | float:
    """β as it is used. Raises TypeError or ValueError unless it is one number, or one for each
    output."""
    if isinstance(beta, Tensor):
        return _arguments.finite(name, _arguments.tensor(name, beta, "(outputs,)")).to(kind)
    return _arguments.real(name, beta)


@named
def em_definition(
    votes: Float[Tensor, "h outputs d"],
    rounds: int = 3,
    *,
    counts: Float[Tensor, "h"] | None = None,
    beta_s: float = 0.0,
    beta_p: float = 0.0,
    sharpness: float = 0.01,
    floor: float = 1e-4,
) -> Fit:
    """The last round for one token as the paper writes it, with densities and not their logarithms.

    Where all densities of a vote vanish its shares are 0/0.
    """
    h, outputs, _ = votes.shape
    a = torch.ones(h).to(votes) if counts is None else counts

    def m_step(r: Tensor) -> Fit:
        mean, variance, sure = [], [], []
        for c in range(outputs):
            R = (a * r[:, c]).sum()
            mu = sum(a[m] * r[m, c] * votes[m, c] for m in range(h)) / R
            v = sum(a[m] * r[m, c] * (votes[m, c] - mu) ** 2 for m in range(h)) / R + floor
            cost = ((beta_s + v.sqrt().log()) * R).sum()
            mean.append(mu)
            variance.append(v)
            sure.append(torch.sigmoid(sharpness * (beta_p - cost)))
        return Fit(r, torch.stack(mean), torch.stack(variance), torch.stack(sure))

    def e_step(fit: Fit) -> Tensor:
        v = fit.variance
        density = torch.exp(-((votes - fit.mean) ** 2) / (2 * v)) / (2 * math.pi * v).sqrt()
        joint = fit.sure * density.prod(-1)
        return joint / joint.sum(1, keepdim=True)

    fit = m_step(torch.full((h, outputs), 1 / outputs).to(votes))
    for _ in range(rounds - 1):
        fit = m_step(e_step(fit))
    return fit


class EMRouting(nn.Module):
    """In the place of W^o: `GPT(…, join=EMRouting)`.

    Beside the votes it learns two numbers for each output, β_s and β_p, from 0 on.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        outputs: int | None = None,
        *,
        rounds: int = 3,
        sharpness: float = 0.01,
        floor: float = 1e-4,
    ) -> None:
        super().__init__()
        self.votes = HeadVotes(d, h, outputs)
        self.beta_s, self.beta_p = (nn.Parameter(torch.zeros(self.votes.W.shape[1])) for _ in "sp")
        self.rounds = _arguments.integer("rounds", rounds, 1)
        self.sharpness, self.floor = sharpness, floor

    @named
    def forward(
        self, heads: Float[Tensor, "b h L d_head"], X: Tensor | None = None
    ) -> Float[Tensor, "b L d"]:
        fits = em_rounds(
            self.votes(heads),
            self.rounds,
            beta_s=self.beta_s,
            beta_p=self.beta_p,
            sharpness=self.sharpness,
            floor=self.floor,
        )
        return fits[-1].out.flatten(2)
