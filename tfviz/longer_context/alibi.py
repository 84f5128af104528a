"""ALiBi: a fixed slope times the distance is subtracted from every score, and nothing else is told.

    s_ij = q_i k_jᵀ / √d_head − m (i − j),   j ≤ i
    m = 2^{−8 k / h} for head k = 1 … h, if h is a power of two

Press, Smith, Lewis 2021 (arXiv 2108.12409). No parameters and no position vectors. For keys 0 … i
in their order the bias of a row is m [−i, …, −1, 0]; a softmax does not feel a constant, so
m [0, 1, …, i] is the same: one number for each *key*. For other h the authors' code takes the
slopes of the power of two below h, then every second one of the power above. The paper's model is
causal; where keys after the query are seen, this library takes −m |i − j|.

>>> [round(1 / m, 3) for m in slopes(4).tolist()]
[4.0, 16.0, 64.0, 256.0]
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions, refuse_given_positions
from tfviz.dense_attention import CAUSAL

__all__ = ["Alibi", "key_bias", "slopes"]


@named
def slopes(h: int) -> Float[Tensor, "h"]:
    """m of each head: the first looks nearest, the h-th of a power of two has 2⁻⁸."""
    below = 2 ** (_arguments.integer("h", h, 1).bit_length() - 1)
    m = 2.0 ** (-8 / below * torch.arange(1, below + 1))
    between = 2.0 ** (-4 / below * (2 * torch.arange(h - below) + 1))
    return torch.cat([m, between])


def ramp(i: Any, j: Any, *, m: Any) -> Any:
    """−m |i − j|, what is added to a score: a formula of the indices."""
    return -m * abs(i - j)


@named
def key_bias(m: Float[Tensor, "h"], L: int) -> Float[Tensor, "h 1 L"]:
    """m j: the same softmax as `ramp` where all keys are j ≤ i, with one number for each key."""
    return m[:, None, None] * torch.arange(L, device=m.device)


def with_places(
    Q: Float[Tensor, "b h L d"], K: Float[Tensor, "b h_kv L d"], m: Float[Tensor, "h"]
) -> tuple[Float[Tensor, "b h L d1"], Float[Tensor, "b h_kv L d1"]]:
    """One number more in each query and key, with which q_i k_jᵀ / √d is `key_bias` larger.

    To each key its place j, counted from the middle of the text, to each query m √d.
    """
    L, d = Q.shape[-2:]
    place = torch.arange(L, dtype=K.dtype, device=K.device) - L // 2
    m = m.to(Q.dtype) * d**0.5
    last = m[:, None, None].expand(*Q.shape[:-1], 1), place[:, None].expand(*K.shape[:-1], 1)
    return torch.cat([Q, last[0]], -1), torch.cat([K, last[1]], -1)


class Alibi(Dense):
    """ALiBi as the core of a layer of h heads; nothing in it is learned."""

    by_distance = True
    m: Tensor

    @named
    def __init__(self, h: int) -> None:
        super().__init__()
        self.register_buffer("m", slopes(h), persistent=False)

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.m):
            raise ValueError(f"m is for {len(self.m)} heads, Q has {Q.shape[1]}; give Alibi them")

    def bias(self, Q: Tensor, K: Tensor) -> Float[Tensor, "h Lq Lk"]:
        i, j = positions(Q.shape[-2], K.shape[-2], Q.device)
        return ramp(i, j, m=self.m[:, None, None])

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        """A causal text at once goes to the fused kernel, without a bias: `with_places`.

        In half precision far places would be rounded: there, and everywhere else, by the bias.
        """
        refuse_given_positions("Alibi")
        at_once = (
            where.pattern == CAUSAL and where.attention_mask is None and Q.shape[2] == K.shape[2]
        )
        if where.need_weights or not at_once or Q.dtype not in (torch.float32, torch.float64):
            return super().attend(Q, K, V, where)
        scale = Q.shape[-1] ** -0.5
        Q, K = with_places(Q, K, self.m)
        V = F.pad(V, (0, 1))  # the kernel wants all three as wide
        out = _fused.attention(Q, K, V, causal=True, scale=scale)
        return out[..., :-1], None
