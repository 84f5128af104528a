"""Scores that cannot run away: queries and keys of one length, and a cap on what comes out.

Henry et al. 2020 (arXiv 2010.04245) give queries and keys the length 1 and learn a scale instead;
Dehghani et al. 2023 (ViT-22B, arXiv 2302.05442) apply LayerNorm to both, against scores so large
that training diverged. Many models of 2025 normalise each head by RMS (`q_norm` and `k_norm` of
Qwen3 in transformers):

    q̂ = γ_q ∘ q / √(mean q² + ε)        k̂ likewise with γ_k        s_ij = q̂_i k̂_jᵀ / √d_head

Without γ a score is √d_head at the most, whatever the lengths of queries and keys were. Qwen3 turns
them by their positions afterwards. A turn leaves lengths alone, so the order matters because of γ
alone. Gemma 2 (2024, arXiv 2408.00118) bounds the scores themselves, before the pattern hides any:

    s ← cap · tanh(s / cap)

Scores keep their order, and none is larger than the cap. If the cap came after the pattern, −∞
would become −cap, and hidden tokens would be seen again.

>>> import torch
>>> QKNorm(d_head=2, h=1, learned=False).norm_q(torch.tensor([3000.0, -3000.0]))
tensor([ 1., -1.])
>>> soft_cap(torch.tensor([-1000.0, 0.0, 1.0, 1000.0]), cap=50.0).round(decimals=2)
tensor([-50.,   0.,   1.,  50.])
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, build

__all__ = ["QKNorm", "SoftCap", "soft_cap"]


@named
def soft_cap(s: Float[Tensor, "*shape"], cap: float) -> Float[Tensor, "*shape"]:
    """cap · tanh(s / cap): scores in their order, within ±cap. Raises ValueError for a cap of 0."""
    return cap * (s / _positive(cap)).tanh()


class QKNorm(nn.Module):
    """Any core of a model, with queries and keys of each head normalised before it sees them.

    `partial(QKNorm, core=Rope)` normalises and then turns; with Dense there are no positions.
    `learned=False` leaves out γ. Keys are kept normalised. Raises ValueError for heads of another
    width.
    """

    @named
    def __init__(
        self, d_head: int, h: int, core: Any = Dense, *, learned: bool = True, eps: float = 1e-6
    ) -> None:
        super().__init__()
        size = _arguments.integer("d_head", d_head, 1)
        _arguments.real("eps", eps, 0.0)
        self.inner = build(core, size, _arguments.integer("h", h, 1))
        self.norm_q = nn.RMSNorm(size, eps, elementwise_affine=learned)
        self.norm_k = nn.RMSNorm(size, eps, elementwise_affine=learned)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if (wide := Q.shape[-1]) != self.norm_q.normalized_shape[0]:
            raise ValueError(f"heads are {wide} numbers wide; make it QKNorm({wide}, {Q.shape[1]})")
        return self.inner(self.norm_q(Q), self.norm_k(K), V, where)


class SoftCap(Dense):
    """Attention whose scores stay within ±cap: `GPT(…, core=partial(SoftCap, cap=50.0))`.

    All L² scores are made, because torch's fused kernel has no place for a cap. With rotary
    positions: `partial(Turned, core=partial(SoftCap, cap=50.0))`. Raises ValueError for a cap
    that is not above 0.
    """

    by_distance = True  # it looks at no position at all

    @named
    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = _positive(cap)

    def scores(self, s: Float[Tensor, "b h Lq Lk"], where: Where) -> Float[Tensor, "b h Lq Lk"]:
        return soft_cap(s, self.cap)


def _positive(cap: float) -> float:
    if _arguments.real("cap", cap, 0.0) == 0:
        raise ValueError("cap = 0 makes all scores alike; give a cap above 0, as 50 in Gemma 2")
    return cap
