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
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

Bias = Float[Tensor, "#n #groups #m keys"] | None


def forward(
    q: Float[Tensor, "n groups m d"],
    k: Float[Tensor, "n groups_kv keys d"],
    v: Float[Tensor, "n groups_kv keys d"],
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
    k: Float[Tensor, "n groups_kv keys d"],
    v: Float[Tensor, "n groups_kv keys d"],
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
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = scale * q.to(kind) @ k.to(kind).mT
    if bias is not None:
        s = s + bias
    if causal:
        s = s.masked_fill(
            torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), -math.inf
        )
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
    K: Float[Tensor, "b h_kv Lk d"],
    V: Float[Tensor, "b h_kv Lk dv"],
    mask: Bool[Tensor, "#b #h #Lq Lk"] | Bias = None,
    causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "b h Lq dv"]:
    """torch's scaled_dot_product_attention, to the last bit, which can be differentiated twice.

    A mask, True = may attend, or a bias. Without `scale` it is 1/√d; each head of keys and values
    serves h / h_kv heads of queries. What torch computes in another way than by the kernel of a
    CPU is left to it: by products it differentiates twice.

    The kernels take values as wide as keys, and for others torch stores all scores. Where these are
    more than twice as many numbers as the rows, zeros make the narrower side as wide as the other:
    as numbers of queries and keys they add nothing to a score, and those of values are cut off.

    On a CPU the kernel answers 0 where a score is NaN, so Q, K and V are looked at before.

    Raises ValueError for NaN or infinity in them, and NotImplementedError for the second derivative
    of another fused kernel.
    """
    if Q.device.type == "cpu" and not _is_transformed():
        for name, X in (("Q", Q), ("K", K), ("V", V)):
            _arguments.finite(name, X)
    d, dv = Q.shape[-1], V.shape[-1]
    wide = max(d, dv)
    if d != dv and d == K.shape[-1] and min(Q.shape[-2], K.shape[-2]) > 2 * wide > 0:
        scale = 1.0 / math.sqrt(d) if scale is None else scale
        Q, K, V = (F.pad(X, (0, wide - X.shape[-1])) for X in (Q, K, V))
        return attention(Q, K, V, mask, causal, scale)[..., :dv]
    if not _learns_by_the_kernel(Q, K, V, mask):
        share = Q.dim() > 2 and Q.shape[-3] != K.shape[-3]
        out = F.scaled_dot_product_attention(
            Q, K, V, mask, is_causal=causal, scale=scale, enable_gqa=share
        )
        node = None if _is_transformed() else out.grad_fn
        if node is not None and node.name().startswith("ScaledDotProduct"):
            first_derivative_only(
                out,
                "torch's fused attention",
                "ask for the weights, Where(…, need_weights=True), take the definition, or compute "
                "within `with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`",
            )
        return out
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=Q.dtype).masked_fill_(~mask, -math.inf)
    if mask is not None and mask.dim() == 2:
        mask = mask[None, None]
    scale = 1.0 / math.sqrt(Q.shape[-1]) if scale is None else scale
    return _Attention.apply(Q, K, V, mask, causal, scale)[0]


def _learns_by_the_kernel(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None) -> bool:
    """Whether somebody may ask for gradients of what torch gives to the kernel of a CPU."""
    learns = torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad)
    if not learns or _is_transformed():
        return False
    allowed = torch.backends.cuda.flash_sdp_enabled()  # on a CPU too: see sdpa_kernel
    if Q.device.type != "cpu" or not allowed or torch.is_autocast_enabled("cpu"):
        return False
    if mask is not None and (mask.requires_grad or mask.dim() not in (2, 4)):
        return False
    if not (Q.dim() == K.dim() == 4 and K.shape == V.shape and Q.numel() and K.numel()):
        return False
    return len(Q) == len(K) and Q.shape[1] % K.shape[1] == 0 and Q.shape[-1] == K.shape[-1]


def full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """While this lasts, nothing on the device of x goes to half precision by itself. On a device
    that has no such thing, meta for one, there is nothing to switch off."""
    kind = x.device.type
    known = torch.amp.is_autocast_available(kind)
    return torch.autocast(kind, enabled=False) if known else nullcontext()


def _is_transformed() -> bool:
    """Whether torch.compile or a transform of torch.func, such as vmap, runs the code."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


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
    empty = not q.numel() or not k.numel()
    if empty or len(q) != len(k) or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}; give the same groups, none empty, "
            "or so many of keys that each serves as many of queries"
        )
    in_half = q.dtype in (torch.float16, torch.bfloat16)
    if bias is not None and bias.dtype not in (q.dtype, torch.float32 if in_half else q.dtype):
        raise ValueError(f"bias is {bias.dtype}, q {q.dtype}; give bias.to(q.dtype)")
    wanted = (*q.shape[:3], k.shape[2])
    if bias is not None and (
        bias.dim() != 4 or any(n not in (1, m) for n, m in zip(bias.shape, wanted, strict=True))
    ):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; give {wanted}, or 1 for some")
