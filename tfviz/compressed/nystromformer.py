"""Nyströmformer: the attention map from m landmarks, three thin matrices and a pseudo-inverse.

Xiong, Zeng, Chakraborty, Tan, Fung, Li, Singh 2021 (arXiv 2102.03902). The landmarks Q̃ and K̃ are
the means of m stretches of L/m queries and keys. With

    C_q = softmax(Q K̃ᵀ/√d)          (L, m)
    M   = softmax(Q̃ K̃ᵀ/√d)          (m, m)
    C_k = softmax(Q̃ Kᵀ/√d)          (m, L)

the matrix that is applied is C_q M⁺ C_k. Its rows sum to one where M has an inverse, its entries
may be negative, and for m = L it is full attention. The pseudo-inverse is the limit of

    Z ← Z (13 I − M Z (15 I − M Z (7 I − M Z))) / 4,       Z₀ = Mᵀ / (‖M‖₁ ‖M‖_∞)

of which the paper takes six steps. A step turns R = I − M Z into (3 R³ + R⁴)/4. Every landmark is a
mean over a stretch, and each softmax of C_k reads the whole text: it is not causal. To the answers
the paper adds a convolution of the values along the text, one kernel for each head.

What the authors' code does otherwise: Z₀ is divided by the largest column sum of the whole batch
and all heads, so that what a text gets depends on the others (Hugging Face has that too); for m = L
it takes softmax attention itself; padding is masked in C_k only. Padding is refused here.

>>> import torch
>>> M = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
>>> iterated_inverse(M, 1)[0]
tensor([0.9444, 0.1636])
>>> iterated_inverse(M, 6)[0]
tensor([ 1.5000, -0.5000])
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["Nystrom", "iterated_inverse", "landmarks", "nystrom_attention", "nystrom_definition"]


@named
def landmarks(X: Float[Tensor, "*b L d"], m: int) -> Float[Tensor, "*b m d"]:
    """The means of m stretches of L/m neighbours. Raises ValueError unless m divides L."""
    L = X.shape[-2]
    if L % _arguments.integer("m", m, 1):
        raise ValueError(
            f"m = {m} landmarks do not divide L = {L} tokens; choose a divisor, or cut the text"
        )
    return X.unflatten(-2, (m, L // m)).mean(-2)


@named
def iterated_inverse(M: Float[Tensor, "*b m m"], steps: int = 6) -> Float[Tensor, "*b m m"]:
    """The pseudo-inverse of each matrix after so many steps; 0 steps give the first guess."""
    _arguments.integer("steps", steps, 0)
    if _arguments.tensor("M", M, "(…, m, m)").dim() < 2 or M.shape[-1] != M.shape[-2]:
        raise ValueError(f"M has shape {tuple(M.shape)}; give square matrices, (…, m, m)")
    _arguments.finite("M", M)
    size = M.abs().sum(-1).amax(-1) * M.abs().sum(-2).amax(-1)
    Z = M.mT / size[..., None, None]
    one = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    for _ in range(steps):
        MZ = M @ Z
        Z = Z @ (13 * one - MZ @ (15 * one - MZ @ (7 * one - MZ))) / 4
    return Z


def between(Q_m: Float[Tensor, "*b m d"], K_m: Float[Tensor, "*b m d"], scale: float) -> Tensor:
    """M, the weights of landmarks over landmarks, (…, m, m), in float32 at least."""
    wide = torch.promote_types(Q_m.dtype, torch.float32)
    return (scale * Q_m.to(wide) @ K_m.to(wide).mT).softmax(-1)


def _inverse(M: Tensor, steps: int | None) -> Tensor:
    M = M.to(torch.promote_types(M.dtype, torch.float32))
    return torch.linalg.pinv(M) if steps is None else iterated_inverse(M, steps)


@named
def nystrom_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    m: int,
    steps: int | None = 6,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output, and the L × L matrix C_q M⁺ C_k; `steps` = None inverts M exactly."""
    Q_m, K_m = landmarks(Q, m), landmarks(K, m)

    def softmax(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b.mT / math.sqrt(Q.shape[-1])).softmax(-1)

    A = softmax(Q, K_m) @ _inverse(softmax(Q_m, K_m), steps) @ softmax(Q_m, K)
    return A @ V, A


@named
def nystrom_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    m: int,
    steps: int | None = 6,
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L m d + m³): the landmarks attend to all, are mixed, and all attend to them."""
    _qkv.check(Q, K, V, self_attention=True)
    with _fused.full_precision(Q):  # the inverse makes small errors large
        kind = torch.promote_types(Q.dtype, torch.float32)
        q, k, v = (X.to(kind) for X in (Q, K, V))
        Q_m, K_m = landmarks(q, m), landmarks(k, m)
        Z = _inverse(between(Q_m, K_m, 1 / math.sqrt(Q.shape[-1])), steps)
        return _fused.attention(q, K_m, Z @ _fused.attention(Q_m, k, v)).to(V.dtype)


class Nystrom(nn.Module):
    """Nyström attention as a core: `BERT(…, core=partial(Nystrom, m=32))`.

    steps     of the iteration; None inverts exactly
    kernel    width, odd, of the convolution of values that is added to the answers; None: none

    It takes texts whose length m divides. It is not causal, and does not know padding, caches, or
    patterns other than full.
    """

    @named
    def __init__(self, h: int, m: int, steps: int | None = 6, kernel: int | None = None) -> None:
        super().__init__()
        self.m = _arguments.integer("m", m, 1)
        self.steps = None if steps is None else _arguments.integer("steps", steps, 0)
        if kernel is not None and _arguments.integer("kernel", kernel, 1) % 2 == 0:
            raise ValueError(f"kernel = {kernel} has no middle; give an odd width")
        self.kernel = None
        if kernel is not None:
            bound = 1 / math.sqrt(kernel)
            self.kernel = nn.Parameter(torch.empty(h, kernel).uniform_(-bound, bound))

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("each landmark is a mean of tokens, later ones too", "landmarks"):
            raise ValueError(
                "pattern = causal(): each landmark is a mean of tokens, so every query would read "
                "what comes after it; Nyström attention is for encoders: give pattern = full()"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))

        def attend(V: Tensor) -> Tensor:
            return nystrom_attention(Q, K, V, self.m, self.steps) + self.convolved(V)

        return attend(V), attend(identity(V)) if where.need_weights else None

    def convolved(self, V: Float[Tensor, "b h L dv"]) -> Float[Tensor, "b h L dv"] | float:
        """The values, weighed along the text by each head's kernel; 0 without a kernel."""
        if self.kernel is None:
            return 0.0
        h, width = self.kernel.shape
        rows = V.transpose(1, 3).flatten(0, 1)  # (b · dv, L, h)
        kernel = self.kernel[:, None].to(V.dtype)
        out = F.conv1d(rows.mT, kernel, padding=width // 2, groups=h)
        return out.mT.unflatten(0, (len(V), -1)).transpose(1, 3)
