"""Hyper-connections: m residual streams, which each sublayer reads, writes and mixes anew.

A token has m rows of width d, X, in the place of one; all are its embedding at first. Around a
sublayer F, with weights p, o (m) and M (m × m) that are made of the token's own streams,

    x = Σ_c p_c X_c        X ← Mᵀ X + oᵀ F(LN(x))
    p = σ(p̂) + ε,  o = 2 σ(ô),  M = sinkhorn(M̂)        [p̂; ô; M̂] = s ⊙ (RMS(X) W) + b

and after the last block σ-weighted streams are added up. Zhu et al. 2024 (arXiv 2409.19606) have M
free; Xie et al. 2025 (arXiv 2512.24880, "mHC") make its rows and columns sum to 1, so that the
product of many keeps its size and mixing keeps the mean of the streams. What is here is that, as
DeepSeek-V4 in transformers has it (`DeepseekV4HyperConnection`); its start is ours: all streams are
read alike, each is written to in full and stays by itself.

>>> streams = HyperConnections(d=4, m=3)
>>> M = streams.weights(torch.randn(1, 1, 3, 4))[2]
>>> (M.sum(-1) - 1).abs().max() < 1e-3, (M.sum(-2) - 1).abs().max() < 1e-5
(tensor(True), tensor(True))
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.sparse.sparse_sinkhorn import sinkhorn

__all__ = ["HyperConnections", "ReadStreams"]

EPS = 1e-6


class ReadStreams(nn.Module):
    """One row of the m streams of a token: Σ_c (σ(s · (RMS(X) W)_c + b_c) + ε) X_c.

    At the beginning it is their mean.
    """

    @named
    def __init__(self, d: int, m: int) -> None:
        super().__init__()
        self.W, self.b, self.s = _heard(d, m, m), nn.Parameter(_mean(m)), _small(1)

    @named
    def forward(self, X: Float[Tensor, "b L m d"]) -> Float[Tensor, "b L d"]:
        p = (self.s * (_unit(X) @ self.W.T) + self.b).sigmoid() + EPS
        return (p[..., None] * X).sum(-2)


class HyperConnections(nn.Module):
    """The order of a block with m streams: `GPT(…, streams=4, order=HyperConnections)`.

    `rounds` of Sinkhorn normalise the rows and the columns of M; None leaves M free, as in Zhu et
    al., with M̂ added to the unit matrix.
    """

    last = ReadStreams

    @named
    def __init__(self, d: int, m: int, rounds: int | None = 20) -> None:
        super().__init__()
        m = _arguments.integer("m", m, 1)
        self.rounds = None if rounds is None else _arguments.integer("rounds", rounds, 1)
        alone = torch.zeros(m, m) if rounds is None else 8 * torch.eye(m)
        self.W = _heard(d, m, m * (2 + m))
        self.b = nn.Parameter(torch.cat([_mean(m), torch.zeros(m), alone.flatten()]))
        self.s = _small(3)

    def weights(
        self, X: Float[Tensor, "b L m d"]
    ) -> tuple[Float[Tensor, "b L m"], Float[Tensor, "b L m"], Float[Tensor, "b L m m"]]:
        """(p, o, M) of each token."""
        m = X.shape[-2]
        s = self.s.repeat_interleave(torch.tensor([m, m, m * m], device=X.device))
        p, o, M = (s * (_unit(X) @ self.W.T) + self.b).split([m, m, m * m], -1)
        M = M.unflatten(-1, (m, m))
        if self.rounds is None:
            M = M + torch.eye(m, dtype=M.dtype, device=M.device)
        else:
            M = sinkhorn(M, 2 * self.rounds)
        return p.sigmoid() + EPS, 2 * o.sigmoid(), M

    @named
    def forward(
        self,
        X: Float[Tensor, "b L m d"],
        F: Callable[[Tensor], Tensor],
        LN: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "b L m d"]:
        if X.dim() != 4 or X.shape[2] * X.shape[3] != self.W.shape[1]:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; give (b, L, m, d) with m · d = {self.W.shape[1]}: "
                "a model with `streams=m` makes such rows"
            )
        p, o, M = self.weights(X)
        said = F(LN((p[..., None] * X).sum(-2)))
        return M.mT @ X + o[..., None] * said[..., None, :]


def _unit(X: Float[Tensor, "b L m d"]) -> Float[Tensor, "b L m*d"]:
    """All streams of a token as one row of mean square 1."""
    row = X.flatten(-2)
    return row * (row.square().mean(-1, keepdim=True) + EPS).rsqrt()


def _heard(d: int, m: int, n: int) -> nn.Parameter:
    d, m = _arguments.integer("d", d, 1), _arguments.integer("m", m, 1)
    return nn.Parameter(torch.randn(n, m * d) * (m * d) ** -0.5)


def _small(n: int) -> nn.Parameter:
    """What the streams say weighs little at first."""
    return nn.Parameter(torch.full((n,), 0.01))


def _mean(m: int) -> Float[Tensor, "m"]:
    """b with σ(b) = 1/m; as near to 1 as matters for one stream."""
    return torch.full((m,), 1 / m).logit(eps=1e-4)
