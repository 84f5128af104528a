"""CSALR: landmarks as in Nyström attention, with the identity added before inverting.

Chen, Gong, Ge, Du 2020 (IJCAI), by the authors' code (czyczyyzc/Compressed_Self-Attention). With
the three softmax matrices C_q (L, m), M (m, m) and C_k (m, L) of Nyström attention,

    A = (C_q + E) (M + I)⁻¹ C_k,        E[i, c] = 1 if token i stands in stretch c, else 0

M is positive and its rows sum to one, so -1 is no eigenvalue and the inverse exists, however badly
conditioned: for loud scores it is singular in floating point, and the pseudo-inverse is taken. The
rows of (M + I)⁻¹ C_k sum to ½ and those of C_q + E to 2: the rows of A sum to one,
and for m = L it is full attention. Without E they sum to ½, and it is not. Entries may be negative.
It is not causal.

The authors' code does not divide scores by √d (`scale` = 1, ours too); it pools images in two
directions, has two groups of channels for heads, and adds γ times the answers to its input, with γ
= 0 at first.

>>> import torch
>>> X = torch.zeros(4, 2)
>>> csalr_definition(X, X, X, 2)[1].sum(-1)
tensor([1., 1., 1., 1.])
>>> csalr_definition(X, X, X, 2, E=False)[1].sum(-1)
tensor([0.5000, 0.5000, 0.5000, 0.5000])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.compressed.nystromformer import between, landmarks
from tfviz.cores import Where, identity

__all__ = ["Csalr", "csalr_attention", "csalr_definition"]


@named
def csalr_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    m: int,
    E: bool = True,
    scale: float = 1.0,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output, and the L × L matrix (C_q + E) (M + I)⁻¹ C_k; without E if `E` is False."""
    Q_m, K_m, L = landmarks(Q, m), landmarks(K, m), Q.shape[-2]

    def softmax(a: Tensor, b: Tensor) -> Tensor:
        return (scale * a @ b.mT).softmax(-1)

    one = torch.eye(m, dtype=Q.dtype, device=Q.device)
    own = one.repeat_interleave(L // m, 0)  # row i is that of token i's stretch
    left = softmax(Q, K_m) + (own if E else 0)
    A = left @ torch.linalg.inv(softmax(Q_m, K_m) + one) @ softmax(Q_m, K)
    return A @ V, A


@named
def csalr_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    m: int,
    E: bool = True,
    scale: float = 1.0,
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L m d + m³): E hands each token the answer of its own stretch."""
    _qkv.check(Q, K, V, self_attention=True)
    _arguments.real("scale", scale)
    with _fused.full_precision(Q):
        kind = torch.promote_types(V.dtype, torch.float32)
        q, k, v = (X.to(kind) for X in (Q, K, V))
        Q_m, K_m = landmarks(q, m), landmarks(k, m)
        M = between(Q_m, K_m, scale)
        one = torch.eye(m, dtype=M.dtype, device=M.device)
        heard = _fused.attention(Q_m, k, v, scale=scale)
        answers, singular = torch.linalg.solve_ex(M + one, heard)
        # landmarks that exchange all their weight: no inverse in floating point
        if not singular.is_meta and singular.any():
            answers = torch.linalg.pinv(M + one) @ heard
        out = _fused.attention(q, K_m, answers, scale=scale)
        return (out + answers.repeat_interleave(Q.shape[2] // m, 2) if E else out).to(V.dtype)


class Csalr(nn.Module):
    """CSALR as a core: `BERT(…, core=partial(Csalr, m=32))`.

    E         whether each token also gets the answer of its own stretch, as in the authors' code
    scale     what scores are multiplied by

    It takes texts whose length m divides. It is not causal, and does not know padding, caches, or
    patterns other than full.
    """

    @named
    def __init__(self, m: int, E: bool = True, scale: float = 1.0) -> None:
        super().__init__()
        self.m = _arguments.integer("m", m, 1)
        self.E, self.scale = E, _arguments.real("scale", scale)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("each landmark is a mean of tokens, later ones too", "landmarks"):
            raise ValueError(
                "pattern = causal(): each landmark is a mean of tokens, so every query would read "
                "what comes after it; CSALR is for encoders: give pattern = full()"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))

        def attend(V: Tensor) -> Tensor:
            return csalr_attention(Q, K, V, self.m, self.E, self.scale)

        return attend(V), attend(identity(V)) if where.need_weights else None
