"""The check that every attention function makes of its queries, keys and values, and the kernel."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def fused_attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, **options: Any
) -> Tensor:
    """`scaled_dot_product_attention`, which has a second derivative where torch falls back on
    products.

    Raises NotImplementedError for that of a fused kernel.
    """
    out = F.scaled_dot_product_attention(Q, K, V, attn_mask, **options)
    node = None if torch.compiler.is_compiling() else out.grad_fn
    if node is not None and node.name().startswith("ScaledDotProduct"):
        first_derivative_only(
            out,
            "torch's fused attention",
            "ask for the weights, Where(…, need_weights=True), take the definition, or compute "
            "within `with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`",
        )
    return out


def first_derivative_only(out: Tensor, what: str, remedy: str) -> None:
    """Lets `out`, which `what` has made, be differentiated once. A second derivative, for which
    torch's own error names a kernel, is refused with this remedy.
    """

    def refusing(gradients: tuple[Tensor | None, ...], _: Any) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return gradients
        says = f"{what} has first derivatives only; for second derivatives {remedy}"
        return tuple(g if g is None else _Never.apply(g, says) for g in gradients)

    if out.grad_fn is not None:
        out.grad_fn.register_hook(refusing)


class _Never(torch.autograd.Function):
    """A gradient that can be read, and not differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, says: str) -> Tensor:
        ctx.says = says
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(ctx.says)


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
