"""torch's fused attention, with one clear error for what it cannot do: second derivatives."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def fused_attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, **options: Any
) -> Tensor:
    """`scaled_dot_product_attention`. Where torch takes a fused kernel, a gradient of its gradient
    raises RuntimeError with a remedy; the kernels that torch falls back on have one."""
    out = F.scaled_dot_product_attention(Q, K, V, attn_mask, **options)
    if not torch.compiler.is_compiling():
        node: Any = out.grad_fn
        if node is not None and node.name().startswith("ScaledDotProduct"):
            node.register_hook(_once)
    return out


def _once(gradients: tuple[Tensor | None, ...], _: Any) -> tuple[Tensor | None, ...]:
    """The gradients of a fused kernel, which can be read, and not differentiated."""
    if not torch.is_grad_enabled():
        return gradients
    return tuple(g if g is None else _NoSecond.apply(g) for g in gradients)


class _NoSecond(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            "torch's fused attention has no second derivative; make the model's answer within "
            "`with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`, or take "
            "tfviz.attention.attention, the definition"
        )
