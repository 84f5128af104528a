"""Torch's fused attention on a CPU, with how loud each answer is: the one room that calls it.

    o = softmax(q kᵀ scale + bias) v        z = log Σ exp(q kᵀ scale + bias)

The kernel is private to torch and trusts its caller: where the numbers of a row do not lie side by
side it reads foreign memory, where keys and values differ in number too, and without any key it
ends the process. So everything is looked at here, and rows are copied where they have to be.

>>> q = torch.ones(1, 1, 2, 3)
>>> o, z = forward(q, q, q, None, causal=False, scale=0.0)
>>> o[0, 0, 0].tolist(), round(z[0, 0, 0].exp().item(), 4)
([1.0, 1.0, 1.0], 2.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

Bias = Float[Tensor, "#n #groups #m keys"] | None


def forward(
    q: Float[Tensor, "n groups m d"],
    k: Float[Tensor, "n groups keys d"],
    v: Float[Tensor, "n groups keys d"],
    bias: Bias,
    *,
    causal: bool,
    scale: float,
) -> tuple[Float[Tensor, "n groups m d"], Float[Tensor, "n groups m"]]:
    """(o, z); z in float32 if q is in half precision. A row whose bias is −∞ throughout gets
    any numbers. `causal`: query a meets the keys 0 … a.

    Raises ValueError for shapes, types or devices that the kernel cannot take.
    """
    _check(q, k, v, bias)
    return FORWARD(*map(_rows, (q, k, v)), 0.0, causal, attn_mask=bias, scale=scale)


def backward(
    grad: Float[Tensor, "n groups m d"],
    q: Float[Tensor, "n groups m d"],
    k: Float[Tensor, "n groups keys d"],
    v: Float[Tensor, "n groups keys d"],
    o: Float[Tensor, "n groups m d"],
    z: Float[Tensor, "n groups m"],
    bias: Bias,
    *,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v for one of o. With the o and z of more keys than these, they
    are these keys' share of them. Raises ValueError as `forward` does."""
    _check(q, k, v, bias)
    if not (grad.shape == o.shape == q.shape and z.shape == q.shape[:-1]):
        shapes = [tuple(x.shape) for x in (grad, o, z)]
        raise ValueError(f"grad, o, z have shapes {shapes}, q {tuple(q.shape)}; give those of q")
    given = (*map(_rows, (grad, q, k, v, o)), z)
    return BACKWARD(*given, 0.0, causal, attn_mask=bias, scale=scale)


def formula(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """What `forward` gives, by products, exponentials and sums: differentiable as often as one
    likes, and with the memory of all scores. A row whose bias is −∞ throughout gives 0."""
    kind = torch.promote_types(q.dtype, torch.float32)
    s = scale * q.to(kind) @ k.to(kind).mT
    if bias is not None:
        s = s + bias
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    none = s.isneginf().all(-1, keepdim=True)
    z = s.masked_fill(none, 0.0).logsumexp(-1, keepdim=True)
    return ((s - z).exp() @ v.to(kind)).to(q.dtype), z.squeeze(-1)


def again(
    formula: Callable[..., Any], inputs: Sequence[Tensor], needed: Sequence[bool], *grads: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients that can be differentiated in their turn: those of a formula, computed anew.

    For the backward of an autograd.Function, in the gradient mode that `create_graph` asks for.
    """
    apart = [x.view_as(x) for x in inputs]  # one of them may be made of another, or be the same
    wanted = [x for x, n in zip(apart, needed, strict=True) if n]
    found = iter(torch.autograd.grad(formula(*apart), wanted, grads, create_graph=True))
    return tuple(next(found) if n else None for n in needed)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, bias: Bias, causal: bool, scale: float
    ) -> tuple[Tensor, Tensor]:
        return forward(q, k, v, bias, causal=causal, scale=scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *qkv, ctx.bias, ctx.causal, ctx.scale = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*qkv, *output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        q, k, v, o, z = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated in its turn

            def out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                return formula(q, k, v, ctx.bias, ctx.causal, ctx.scale)[0]

            return *again(out, (q, k, v), ctx.needs_input_grad[:3], grad), None, None, None
        given = (grad, q, k, v, o, z, ctx.bias)
        return *backward(*given, causal=ctx.causal, scale=ctx.scale), None, None, None


def attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    mask: Bool[Tensor, "#b #h #Lq Lk"] | Bias = None,
    causal: bool = False,
) -> Float[Tensor, "b h Lq dv"]:
    """torch's scaled_dot_product_attention, which on a CPU has no second derivative: this has.

    A mask, True = may attend, or a bias. What torch computes without the fused kernel, such as a
    bias that learns or values of another width, is left to it: there it differentiates twice.
    """
    learns = torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad)
    biased = mask is not None and (mask.requires_grad or mask.dim() not in (2, 4))
    on_cpu = Q.device.type == "cpu" and not torch.compiler.is_compiling()
    if not learns or biased or not on_cpu or not Q.shape[-1] == K.shape[-1] == V.shape[-1]:
        return F.scaled_dot_product_attention(Q, K, V, mask, is_causal=causal)
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=Q.dtype).masked_fill_(~mask, -math.inf)
    if mask is not None and mask.dim() == 2:
        mask = mask[None, None]
    return _Attention.apply(Q, K, V, mask, causal, Q.shape[-1] ** -0.5)[0]


def _rows(x: Tensor) -> Tensor:
    """x with the numbers of each row side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _check(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> None:
    given = (q, k, v) if bias is None else (q, k, v, bias)
    if {x.device.type for x in given} != {"cpu"}:
        devices = ", ".join(str(x.device) for x in given)
        raise ValueError(f"q, k, v and bias are on {devices}; the fused kernel runs on a CPU")
    if not q.dtype == k.dtype == v.dtype or not q.is_floating_point():
        raise ValueError(
            f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; give real numbers of one"
        )
    if not (q.dim() == k.dim() == 4 and k.shape == v.shape and q.shape[-1] == k.shape[-1]):
        shapes = [tuple(x.shape) for x in (q, k, v)]
        raise ValueError(f"q, k, v have shapes {shapes}; give four dimensions and one width")
    if q.shape[:2] != k.shape[:2] or not q.numel() or not k.numel():
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}; give the same groups, none empty"
        )
    in_half = q.dtype in (torch.float16, torch.bfloat16)
    if bias is not None and bias.dtype not in (q.dtype, torch.float32 if in_half else q.dtype):
        raise ValueError(f"bias is {bias.dtype}, q {q.dtype}; give bias.to(q.dtype)")
    wanted = (*q.shape[:3], k.shape[2])
    if bias is not None and (
        bias.dim() != 4 or any(n not in (1, m) for n, m in zip(bias.shape, wanted, strict=True))
    ):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; give {wanted}, or 1 for some")
