"""The check that every attention function makes of its queries, keys and values, and the kernel."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def fused_attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, **options: Any
) -> Tensor:
    """`scaled_dot_product_attention`. Where torch takes a fused kernel, a gradient of its gradient
    raises NotImplementedError with a remedy; where it falls back on products, there is one."""
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
    return tuple(g if g is None else _Never.apply(g) for g in gradients)


class _Never(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(
            "torch's fused attention has first derivatives only; for second derivatives ask for "
            "the weights, Where(…, weights=True), take the definition, or compute within "
            "`with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`"
        )


def check(Q: Tensor, K: Tensor, V: Tensor, *, self_attention: bool) -> None:
    """Raises TypeError or ValueError, with a remedy, unless Q, K, V are (…, L, d) and belong
    together. With `self_attention` there must be as many queries as keys."""
    for name, x in (("Q", Q), ("K", K), ("V", V)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}; give a tensor of shape (…, L, d)")
        if not x.is_floating_point():
            raise TypeError(f"{name} has dtype {x.dtype}; give real numbers, e.g. {name}.float()")
        if x.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; give (…, L, d)")
        if not x.numel():
            raise ValueError(f"{name} has shape {tuple(x.shape)} and is empty; no side may be 0")
        # one pass without a temporary; the slower look only if the sum overflowed or is not finite
        if not torch.isfinite(x.detach().sum()) and not torch.isfinite(x).all():
            raise ValueError(f"{name} holds NaN or infinity; look where it was computed")
    if not Q.dtype == K.dtype == V.dtype:
        raise TypeError(f"Q, K, V have dtypes {Q.dtype}, {K.dtype}, {V.dtype}; make them the same")
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"queries have width {Q.shape[-1]}, keys {K.shape[-1]}; project both to one width"
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(f"{K.shape[-2]} keys, {V.shape[-2]} values; give one value for each key")
    if self_attention and Q.shape[-2] != K.shape[-2]:
        raise ValueError(
            f"a Pattern relates L positions to themselves, but there are {Q.shape[-2]} queries and "
            f"{K.shape[-2]} keys; give attention() a Boolean mask (queries, keys) instead"
        )
    if not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
        raise ValueError(
            f"Q, K, V have leading shapes {tuple(Q.shape[:-2])}, {tuple(K.shape[:-2])}, "
            f"{tuple(V.shape[:-2])}; make batch and heads the same, e.g. with expand"
        )
