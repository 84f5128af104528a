"""Head size apart from the number of heads: W_m^q, W_m^k, W_m^v are d × d_p, with d_p free.

Bhojanapalli, Yun, Rawat, Reddi, Kumar 2020 (arXiv 2002.07028). By convention d_p = d/h, so more
heads are narrower heads. The scores of a head, Q Kᵀ with Q and K of width d_p, have rank d_p at
most, and so a narrow head cannot draw every map of weights. Theorem 1: where the L rows of X are
linearly independent (d ≥ L) and d_p ≥ L, there are W^q and W^k for every positive map P, so that

    softmax(X W^q (X W^k)ᵀ/√d_p) = P

The softmax does not see a constant that is added to a row of scores, so what counts is the rank of
log P with the mean of each row taken off: `rank_needed`, L − 1 at most. `weights_for` makes the
matrices. A layer has 4 h d d_p weights; with d_p = d/h it is the usual one.

>>> P = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
>>> rank_needed(P), parameters(d=512, h=8, d_p=64), parameters(d=512, h=8, d_p=128)
(2, 1048576, 2097152)
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.blocks import MultiHeadAttention

__all__ = ["FreeHeads", "drawn_by", "rank_needed", "weights_for"]


class FreeHeads(MultiHeadAttention):
    """h heads of `d_p` numbers in a model of width d, which h need not divide:
    `GPT(…, mix=partial(FreeHeads, d_p=32))`. W_o leads h · d_p numbers back to d."""

    @named
    def __init__(self, d: int, h: int, *, d_p: int, **options: Any) -> None:
        d, h = _arguments.integer("d", d, 1), _arguments.integer("h", h, 1)
        d_p = _arguments.integer("d_p", d_p, 1)
        if own := [name for name in ("project", "join") if options.get(name) is not None]:
            raise ValueError(
                f"{' and '.join(own)} would replace the matrices of d_p = {d_p} numbers; "
                "leave it out"
            )
        super().__init__(h * d_p, h, **options)
        self.W_qkv = nn.Linear(d, sum(self.widths))
        self.W_o = nn.Linear(h * d_p, d)


def parameters(d: int, h: int, d_p: int) -> int:
    """4 h d d_p: the weights of a layer, without biases."""
    sizes = {"d": d, "h": h, "d_p": d_p}
    d, h, d_p = (_arguments.integer(name, x, 1) for name, x in sizes.items())
    return 4 * h * d * d_p


def _checked(P: Float[Tensor, "L L"]) -> Float[Tensor, "L L"]:
    """P, if it is a map of positive weights whose rows sum to 1."""
    if _arguments.tensor("P", P, "(L, L)").dim() != 2 or P.shape[0] != P.shape[1]:
        raise ValueError(f"P has shape {tuple(P.shape)}; give a row of weights for each token")
    if not (P > 0).all() or not torch.allclose(P.sum(-1), torch.ones_like(P[0]), atol=1e-4):
        raise ValueError(
            f"P has weights from {P.min():.3g} on, and rows that sum to {P.sum(-1).min():.3g} and "
            f"{P.sum(-1).max():.3g}; give positive weights whose rows sum to 1, as a softmax does"
        )
    return P


def logits(P: Float[Tensor, "L L"]) -> Float[Tensor, "L L"]:
    """log P, the mean of each row taken off: scores of the least rank that make P."""
    scores = _checked(P).log()
    return scores - scores.mean(-1, keepdim=True)


@named
def rank_needed(P: Float[Tensor, "L L"], tol: float = 1e-5) -> int:
    """The least d_p with which a head can draw P, from rows that are linearly independent.

    Singular values below `tol` times the largest count as 0.
    """
    return int(torch.linalg.matrix_rank(logits(P), rtol=tol))


def queries_and_keys(
    P: Float[Tensor, "L L"], d_p: int
) -> tuple[Float[Tensor, "L d_p"], Float[Tensor, "L d_p"]]:
    """Q and K of width d_p whose scores Q Kᵀ/√d_p are nearest to those of P, by squares.

    The largest d_p singular values of `logits(P)` (Eckart and Young). P itself from `rank_needed`.
    """
    d_p, L = _arguments.integer("d_p", d_p, 1), len(P)
    U, S, Vh = torch.linalg.svd(logits(P))
    n = min(d_p, L)
    root = S[:n].sqrt() * d_p**0.25
    Q, K = (nn.functional.pad(X[:, :n] * root, (0, d_p - n)) for X in (U, Vh.mT))
    return Q, K


@named
def drawn_by(P: Float[Tensor, "L L"], d_p: int) -> Float[Tensor, "L L"]:
    """The map of a head of width d_p that comes nearest to P in its scores."""
    Q, K = queries_and_keys(P, d_p)
    A: Tensor = (Q @ K.mT / d_p**0.5).softmax(-1)
    return A


@named
def weights_for(
    X: Float[Tensor, "L d"], P: Float[Tensor, "L L"], d_p: int
) -> tuple[Float[Tensor, "d d_p"], Float[Tensor, "d d_p"]]:
    """W^q and W^k of Theorem 1, which make `drawn_by` of X with linearly independent rows."""
    L = len(_checked(P))
    if len(X) != L or int(torch.linalg.matrix_rank(X)) < L:
        raise ValueError(
            f"X has {len(X)} rows of rank {int(torch.linalg.matrix_rank(X))}, P has {L}; give as "
            "many rows that are linearly independent, so at least as wide as the text is long"
        )
    Q, K = queries_and_keys(P, d_p)
    back = torch.linalg.pinv(X)
    return back @ Q, back @ K


def divergence(P: Float[Tensor, "*b L L"], A: Float[Tensor, "*b L L"]) -> Float[Tensor, "*b"]:
    """KL(P ‖ A) in nats, the mean over rows."""
    return (P * (P.log() - A.log())).sum(-1).mean(-1)
