"""Set Transformer: attention for sets, and few learned vectors that read them: MAB, SAB, ISAB, PMA.

Lee, Lee, Kim, Kosiorek, Choi, Teh 2018 (arXiv 1810.00825), section 3. X and Y are sets, as rows of
matrices in any order; rFF is one feed-forward network for each row by itself:

    MAB(X, Y) = LN(H + rFF(H)),   H = LN(X + Multihead(X, Y, Y))        X asks, Y is read
    SAB(X)    = MAB(X, X)                                              L² weights
    ISAB_m(X) = MAB(X, MAB(I, X)),   I: m learned inducing points       2 L m weights
    PMA_k(Z)  = MAB(S, rFF(Z)),      S: k learned seeds                 a set to k vectors

None knows positions. If the rows of X are put in another order, those of SAB(X) and ISAB(X) follow
(they are equivariant), and PMA(X) stays what it is (it is invariant).

Scores are divided by the square root of the *whole* width, as the paper and the authors' code do;
elsewhere in this library it is that of a head. `full_width=False` divides by that one.

The authors' code (juho-lee/set_transformer) has no W^o, no LayerNorm unless asked, one linear layer
and ReLU for rFF, adds the projected queries and not X, and leaves out the rFF within PMA.

>>> import torch
>>> pool = PMA(d=8, h=2, k=3)
>>> X = torch.randn(1, 20, 8)
>>> torch.allclose(pool(X), pool(X.flip(1)), atol=1e-6), pool(X).shape
(True, torch.Size([1, 3, 8]))
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.dense_attention import attention

__all__ = ["ISAB", "MAB", "PMA", "SAB", "mab_definition", "row_network"]

Set = Float[Tensor, "b n d"]
Real = Bool[Tensor, "b n"] | None
"""False where a row is padding, for sets of several sizes in one batch."""


@named
def mab_definition(mab: MAB, X: Set, Y: Set) -> tuple[Set, Float[Tensor, "b h n m"]]:
    """MAB(X, Y) and its weights, by the formula."""
    Q, K, V = mab.heads(X, Y)
    heads, A = attention(Q * (mab.scale * math.sqrt(Q.shape[-1])), K, V)
    H = mab.norms[0](X + mab.W_o(heads.transpose(1, 2).flatten(2)))
    return mab.norms[1](H + mab.rFF(H)), A


@named
def row_network(d: int) -> nn.Sequential:
    """rFF: each row by itself."""
    return nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))


class MAB(nn.Module):
    """The multi-head attention block: X (b, n, d) asks the rows of Y (b, m, d)."""

    @named
    def __init__(self, d: int, h: int, full_width: bool = True) -> None:
        super().__init__()
        _arguments.integer("d", d, 1)
        if d % _arguments.integer("h", h, 1):
            raise ValueError(f"d = {d}, h = {h}; h must divide d")
        self.h, self.scale = h, 1 / math.sqrt(d if full_width else d // h)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d, d) for _ in range(4))
        self.rFF = row_network(d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))

    def heads(self, X: Set, Y: Set) -> tuple[Tensor, Tensor, Tensor]:
        """Q of X, K and V of Y, in heads."""
        _set("X", X, self.W_q.in_features)
        _set("Y", Y, self.W_q.in_features)
        if len(X) != len(Y):
            raise ValueError(f"X holds {len(X)} sets, Y {len(Y)}; give one Y for each X")
        QKV = (W(Z) for W, Z in ((self.W_q, X), (self.W_k, Y), (self.W_v, Y)))
        Q, K, V = (Z.unflatten(-1, (self.h, -1)).transpose(1, 2) for Z in QKV)
        return Q, K, V

    @named
    def forward(self, X: Set, Y: Set, real: Real = None) -> Set:
        """`real` is False at rows of Y that are padding."""
        Q, K, V = self.heads(X, Y)
        mask = None if real is None else _checked(real, Y)[:, None, None]
        heads = _fused.attention(Q, K, V, mask, scale=self.scale)
        H = self.norms[0](X + self.W_o(heads.transpose(1, 2).flatten(2)))
        out: Tensor = self.norms[1](H + self.rFF(H))
        return out


class SAB(MAB):
    """A set asks itself: L² weights."""

    @named
    def forward(self, X: Set, real: Real = None) -> Set:  # type: ignore[override]
        return super().forward(X, X, real)


class ISAB(nn.Module):
    """m learned inducing points I read the set, and the set reads what they have read."""

    @named
    def __init__(self, d: int, h: int, m: int, full_width: bool = True) -> None:
        super().__init__()
        self.I = _points(_arguments.integer("m", m, 1), d)
        self.reads, self.answers = MAB(d, h, full_width), MAB(d, h, full_width)

    @named
    def forward(self, X: Set, real: Real = None) -> Set:
        few = self.reads(self.I.expand(len(_set("X", X, self.I.shape[1])), -1, -1), X, real)
        out: Tensor = self.answers(X, few)
        return out


class PMA(nn.Module):
    """k learned seeds S pool the set to k vectors."""

    @named
    def __init__(self, d: int, h: int, k: int = 1, full_width: bool = True) -> None:
        super().__init__()
        self.S = _points(_arguments.integer("k", k, 1), d)
        self.rFF, self.pools = row_network(d), MAB(d, h, full_width)

    @named
    def forward(self, Z: Set, real: Real = None) -> Float[Tensor, "b k d"]:
        seeds = self.S.expand(len(_set("Z", Z, self.S.shape[1])), -1, -1)
        out: Tensor = self.pools(seeds, self.rFF(Z), real)
        return out


def _points(n: int, d: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n, d)))


def _set(name: str, X: Tensor, d: int) -> Tensor:
    """X. Raises TypeError or ValueError unless it is a batch of sets of rows of d numbers."""
    _arguments.tensor(name, X, f"(b, n, {d})")
    if X.dim() != 3 or X.shape[-1] != d or not X.shape[1]:
        raise ValueError(
            f"{name} has shape {tuple(X.shape)}; give (b, n, {d}): b sets of one row or more"
        )
    return X


def _checked(real: Tensor, Y: Tensor) -> Tensor:
    """`real`. Raises TypeError or ValueError unless it says of each row of Y whether it counts, and
    one of each set does."""
    if real.dtype != torch.bool:
        raise TypeError(f"real is {real.dtype}; give Booleans, False at padding")
    if real.shape != Y.shape[:2]:
        raise ValueError(f"real has shape {tuple(real.shape)}; give {tuple(Y.shape[:2])}")
    if not real.any(1).all():
        raise ValueError("real is False for all rows of a set; give each set one row or more")
    return real
