"""Attention with a bias for every pair, and how loud each answer is: softmaxes that will be joined.

    o = softmax(q kᵀ scale + bias) v        z = log Σ exp(q kᵀ scale + bias)

Answers over sets of keys without a common one blend to the softmax over all of them, with shares
softmax(z). Both have gradients, in all of q, k, v and bias; a bias up to NEVER is a pair that does
not exist.

>>> import torch
>>> q = torch.zeros(1, 1, 1, 2)
>>> v = torch.tensor([[1.0, 0.0], [0.0, 3.0]]).view(1, 1, 2, 2)
>>> o, z = answer(q, v, v, torch.zeros(1, 1, 1, 2), 1.0)
>>> o.flatten().tolist(), round(z.exp().item(), 4)
([0.5, 1.5], 2.0)
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tfviz import _fused

NEVER = -1e9


class _Loud(torch.autograd.Function):
    """By torch's fused kernel; the scores are made a second time for the gradients."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        d, dv = q.shape[-1], v.shape[-1]
        q_, k_, v_ = q, k, v
        if d != dv:  # the kernel wants one width; columns of zeros change nothing
            q_, k_, v_ = (F.pad(x, (0, max(d, dv) - x.shape[-1])) for x in (q, k, v))
        o, z = _fused.forward(q_, k_, v_, bias, causal=False, scale=scale)
        ctx.save_for_backward(q, k, v, bias, o[..., :dv], z)
        ctx.scale = scale
        return o[..., :dv], z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        q, k, v, bias, o, z = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients are to be differentiated in their turn

            def both(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
                return _fused.formula(q, k, v, bias, False, ctx.scale)

            given = (q, k, v, bias)
            return *_fused.again(both, given, ctx.needs_input_grad[:4], *grads), None
        dtype, bias_dtype, kind = q.dtype, bias.dtype, z.dtype
        q, k, v, o, do, dz = (x.to(kind) for x in (q, k, v, o, *grads))
        A = (ctx.scale * q @ k.mT).add_(bias).sub_(z.unsqueeze(-1)).clamp_(min=-80).exp_()
        F.threshold(A, 1e-30, 0.0, inplace=True)  # denormal numbers make products slow
        A.masked_fill_(bias <= NEVER, 0.0)
        dS = (do @ v.mT).sub_((do * o).sum(-1, keepdim=True)).add_(dz.unsqueeze(-1)).mul_(A)
        db = dS.sum_to_size(bias.shape).to(bias_dtype) if ctx.needs_input_grad[3] else None
        dqkv = ctx.scale * dS @ k, ctx.scale * dS.mT @ q, A.mT @ do
        return *(x.to(dtype) for x in dqkv), db, None


def answer(
    q: Float[Tensor, "n groups m d"],
    k: Float[Tensor, "n groups keys d"],
    v: Float[Tensor, "n groups keys dv"],
    bias: Float[Tensor, "#n #groups m keys"],
    scale: float,
) -> tuple[Float[Tensor, "n groups m dv"], Float[Tensor, "n groups m"]]:
    """(o, z) of the queries of each group over the keys of its own."""
    if q.device.type != "cpu":  # the kernel runs there alone
        return _fused.formula(q, k, v, bias, False, scale)
    return _Loud.apply(q, k, v, bias, scale)
