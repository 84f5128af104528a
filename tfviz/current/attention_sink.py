"""A learned sink: each head may attend to nothing, by a score that it learns.

OpenAI 2025 (gpt-oss, `sdpa` in `gpt_oss/torch/model.py`). Head m learns one number b_m, which
stands among the scores of every query and has no value:

    a_ij = exp(s_ij) / (exp(b) + Σ_r exp(s_ir))        s_ij = q_i k_jᵀ / √d_head

b is not divided by √d_head, and no pattern hides it. The weights of a row no longer sum to 1: with
l_i = log Σ_r exp(s_ir) over the keys that the pattern allows, they sum to σ(l_i − b), and

    out_i = σ(l_i − b) · softmax(s_i) V

So a sink is a gate on each head, opened by how loud the scores are. With b → −∞ it is plain
attention; b = 0 is the softmax with 1 in its denominator (Miller 2023). A query without any key
gives 0, as it does in all of this library; here no rule of its own is needed for it. A softmax
without a sink has to put its weight somewhere, and trained models put it on the first tokens, which
are called sinks, too (Xiao et al. 2023, arXiv 2309.17453, section 3.1).

>>> import torch
>>> X = torch.zeros(1, 1, 3, 4)  # every score is 0
>>> sink_attention(X, X, X, b=torch.tensor([0.0]))[1].sum(-1)
tensor([[[0.7500, 0.7500, 0.7500]]])
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.dense_attention import FULL, attention, visible
from tfviz.patterns.pattern import Pattern

__all__ = ["LearnedSink", "sink_attention"]

Mask = Bool[Tensor, "*#b_h Lq Lk"] | None


@named
def sink_attention(
    Q: Float[Tensor, "b h Lq d_head"],
    K: Float[Tensor, "b h Lk d_head"],
    V: Float[Tensor, "b h Lk d_head"],
    b: Float[Tensor, "h"],
    pattern: Pattern = FULL,
) -> tuple[Float[Tensor, "b h Lq d_head"], Float[Tensor, "b h Lq Lk"]]:
    """(out, A) as the equation says: b stands beside the scores, and its weight meets no value."""
    return _beside(Q, K, V, b, visible(pattern, Q.shape[2], K.shape[2], device=Q.device))


class LearnedSink(Dense):
    """Attention in which each head learns how much to leave unsaid: `GPT(…, core=LearnedSink)`.

    Unless weights are asked for it leaves the softmax to torch's fused kernel: the sink is one key
    more, [0, …, 0, 1] behind all others, and queries have b as their last number. With rotary
    positions: `partial(Turned, core=LearnedSink)`. Raises ValueError for another number of heads.
    """

    by_distance = True  # it looks at no position at all

    @named
    def __init__(self, h: int) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(_arguments.integer("h", h, 1)))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.b):
            raise ValueError(
                f"Q has {Q.shape[1]} heads, and there are {len(self.b)} sinks; make it "
                f"LearnedSink({Q.shape[1]})"
            )

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        (_, h, Lq, d), Lk = Q.shape, K.shape[2]
        mask = visible(where.pattern, Lq, Lk, where.attention_mask, Q.device, where.at)
        if mask is not None and mask.dim() > 2 and mask.shape[-3] not in (1, h):
            raise ValueError(f"{where.pattern!r} has {mask.shape[-3]} heads, Q {h}; give as many")
        if where.need_weights:
            K, V = (x.repeat_interleave(h // K.shape[1], 1) for x in (K, V))
            return _beside(Q, K, V, self.b, mask)
        b = (self.b * math.sqrt(d)).to(Q)[:, None, None].expand(len(Q), -1, Lq, 1)
        sink = F.pad(K.new_zeros(*K.shape[:2], 1, d), (0, 1), value=1.0)
        keys = torch.cat([F.pad(K, (0, 1)), sink], 2)
        out = _fused.attention(
            torch.cat([Q, b], -1), keys, F.pad(V, (0, 0, 0, 1)), _and_sink(mask), scale=d**-0.5
        )
        return out, None


def _beside(Q: Tensor, K: Tensor, V: Tensor, b: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Attention to the keys and to one more, whose score is b and whose value is 0."""

    def scores(s: Tensor) -> Tensor:
        return torch.cat([s[..., :-1], b.to(s)[:, None, None].expand_as(s[..., -1:])], -1)

    K, V = (F.pad(x, (0, 0, 0, 1)) for x in (K, V))
    out, A = attention(Q, K, V, _and_sink(mask), scores=scores)
    return out, A[..., :-1]


def _and_sink(mask: Mask) -> Mask:
    """The same pairs, and every query with the sink."""
    return mask if mask is None else F.pad(mask, (0, 1), value=True)
