"""Attention: the definition, as literal as its equation, and the ways that models use it.

`heads_attention` leaves the work to torch's fused kernel, `sparse_attention` is sub-quadratic.

a_ij = exp(q_i k_jᵀ / √d) / Σ_{r ∈ S_i} exp(q_i k_rᵀ / √d)  for j in S_i, else 0
out_i = Σ_j a_ij v_j

>>> import torch
>>> from tfviz import patterns
>>> X = torch.eye(3)
>>> attention(X, X, X, patterns.causal())[1][0].tolist()
[1.0, 0.0, 0.0]
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tfviz import _arguments, _fused, _qkv, patterns
from tfviz.patterns.pattern import Pattern

__all__ = ["attention", "heads_attention", "visible"]

Step = Callable[[Tensor], Tensor]
CAUSAL, FULL = patterns.causal(), patterns.full()


def attention(
    Q: Float[Tensor, "*heads Lq d"],
    K: Float[Tensor, "*heads Lk d"],
    V: Float[Tensor, "*heads Lk dv"],
    pattern: Pattern | Bool[Tensor, "*#heads Lq Lk"] | None = None,
    bias: Float[Tensor, "*#heads Lq Lk"] | Callable[[Tensor, Tensor], Tensor] | None = None,
    scores: Step | None = None,
    mix: Step | None = None,
) -> tuple[Float[Tensor, "*heads Lq dv"], Float[Tensor, "*heads Lq Lk"]]:
    """Scaled dot-product attention by its definition: L² scores, for reading and for comparing.

    Args:
        Q, K, V: queries, keys, values with any leading dimensions (batch, heads).
        pattern: who may attend to whom: a Pattern, or a Boolean mask (True = allowed).
        bias: added to the scaled scores: a tensor, or a function of the positions (i, j).
        scores, mix: functions of the scores, before the pattern and the softmax, and of A.

    Rows of A sum to 1; a query without any key has a row of zeros and the output 0. Half precision
    is computed in float32, as the fused kernel does. A bias of nothing but 0 and 1 is added with a
    warning, unless it is learned: it may be meant as a mask. Raises TypeError or ValueError for
    shapes, dtypes or lengths that do not fit, and for NaN.
    """
    _qkv.check(Q, K, V, self_attention=isinstance(pattern, Pattern))
    dtype = Q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        Q, K, V = Q.float(), K.float(), V.float()
    s = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    if bias is not None:
        s = s + _bias(bias, s)
    if scores is not None:
        s = scores(s)
    if pattern is not None:
        s = s.masked_fill(~_mask(pattern, s), -math.inf)
    no_key = s.isneginf().all(-1, keepdim=True)
    A = s.masked_fill(no_key, 0.0).softmax(-1).masked_fill(no_key, 0.0)
    if mix is not None:
        A = mix(A)
    return (A @ V).to(dtype), A.to(dtype)


def heads_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h_kv Lk d"],
    V: Float[Tensor, "b h_kv Lk dv"],
    pattern: Pattern,
    bias: Float[Tensor, "*#heads Lq Lk"] | None = None,
    attention_mask: Bool[Tensor, "b Lk"] | None = None,
    need_weights: bool = False,
    scores: Step | None = None,
    mix: Step | None = None,
    at: Int[Tensor, "Lk"] | None = None,
) -> tuple[Float[Tensor, "b h Lq dv"], Float[Tensor, "b h Lq Lk"] | None]:
    """(out, A) of all heads: `attention` as models use it.

    The queries are the last L_q of the L_k positions, as in generation, or of those where the keys
    stand, `at`; `attention_mask` is False where a key is padding; each head of keys and values may
    serve several heads of queries (h_kv divides h). A is made only with `need_weights`, or where
    `scores` or `mix` do something to it; otherwise torch's fused kernel does the same work without
    it, and A is None. Raises TypeError or ValueError for a bias or `attention_mask` of another kind
    or shape, and for a pattern that does not fit the lengths or the heads.
    """
    (b, h, Lq, _), Lk, share = Q.shape, K.shape[2], Q.shape[1] // K.shape[1]
    if attention_mask is not None and len(attention_mask) not in (1, b):
        raise ValueError(
            f"attention_mask has {len(attention_mask)} rows, Q {b}; give one for each row of the "
            "batch"
        )
    if bias is not None and bias.dtype == torch.bool:
        raise TypeError("bias is Boolean; say who may attend to whom by the pattern")
    if need_weights or scores or mix:
        K, V = (x.repeat_interleave(share, 1) for x in (K, V))
        return attention(
            Q, K, V, visible(pattern, Lq, Lk, attention_mask, Q.device, at), bias, scores, mix
        )
    is_causal = Lq == Lk and bias is None and attention_mask is None and pattern == CAUSAL
    mask = None if is_causal else visible(pattern, Lq, Lk, attention_mask, Q.device, at)
    if mask is not None and mask.dim() > 2 and mask.shape[-3] not in (1, h):
        raise ValueError(f"{pattern!r} has {mask.shape[-3]} heads, Q {h}; give as many")
    if bias is not None:
        bias = bias.to(Q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    return _fused.attention(Q, K, V, mask, is_causal), None


def visible(
    pattern: Pattern,
    Lq: int,
    Lk: int,
    attention_mask: Bool[Tensor, "b Lk"] | None = None,
    device: torch.device | str = "cpu",
    at: Int[Tensor, "Lk"] | None = None,
) -> Bool[Tensor, "*b_h Lq Lk"] | None:
    """The mask of the last Lq of Lk positions, without the keys where `attention_mask` is False.
    With `at`, Lk keys stand at these positions, the queries at the last Lq of them.

    It broadcasts to (b, h, Lq, Lk); None where nothing is forbidden.

    Raises TypeError or ValueError if `attention_mask` is not Boolean or not (b, Lk), if the pattern
    does not exist for Lk positions, and for more queries than positions.
    """
    if attention_mask is not None and attention_mask.dtype != torch.bool:
        raise TypeError(
            f"attention_mask is {attention_mask.dtype}; give Booleans, False at padding: "
            "attention_mask != 0"
        )
    if attention_mask is not None and (attention_mask.dim() != 2 or attention_mask.shape[1] != Lk):
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; give (batch, {Lk}), "
            "all the keys"
        )
    mask = None if attention_mask is None else attention_mask[:, None, None]  # (b, 1, 1, Lk)
    if pattern == FULL:
        return mask
    if Lq > Lk:
        raise ValueError(
            f"{pattern!r} is about one sequence, whose last positions the queries are: {Lq} cannot "
            f"be among {Lk}; for keys of another sequence take patterns.full()"
        )
    L = Lk if at is None else int(at[-1]) + 1
    pattern.check_length(L)
    rows = pattern.rows(torch.arange(L - Lq, L, device="cpu"), L, at).to(device)
    return rows if mask is None else rows & mask


def _mask(pattern: Any, scores: Tensor) -> Tensor:
    if isinstance(pattern, Pattern):
        mask = pattern.mask(scores.shape[-1])
        if mask.dim() == 3 and (scores.dim() < 3 or scores.shape[-3] != len(mask)):
            raise ValueError(
                f"{pattern!r} has {len(mask)} heads, the scores have shape {tuple(scores.shape)}; "
                f"give Q, K, V of shape (…, {len(mask)}, L, d)"
            )
        return mask.to(scores.device)
    if not isinstance(pattern, Tensor) or pattern.dtype != torch.bool:
        kind = pattern.dtype if isinstance(pattern, Tensor) else type(pattern).__name__
        raise TypeError(
            f"pattern is {kind}; give a Pattern or a Boolean mask, True = allowed: mask.bool() if "
            "1 = allowed, mask == 0 if 1 = masked; numbers to add to the scores are a bias"
        )
    return _fitting("pattern", pattern, scores)


def _bias(bias: Any, scores: Tensor) -> Tensor:
    if not isinstance(bias, Tensor):
        if not callable(bias):
            raise TypeError(f"bias is a {type(bias).__name__}; give a tensor or a function of i, j")
        i, j = (torch.arange(n, device=scores.device) for n in scores.shape[-2:])
        bias = torch.as_tensor(bias(i[:, None], j[None, :]), device=scores.device)
    if bias.dtype == torch.bool:
        raise TypeError("bias is Boolean; a mask of who may attend to whom goes to pattern")
    if not bias.requires_grad and _arguments.only_zeros_and_ones(bias):
        warnings.warn(
            "bias holds only 0 and 1, and 1 added to a score masks nothing; if it is a mask, give "
            "truth values: pattern=mask.bool() if 1 = allowed, pattern=mask == 0 if 1 = masked",
            stacklevel=3,
        )
    if not bias.is_meta and (bias.isnan() | bias.isposinf()).any():
        raise ValueError("bias holds NaN or +infinity; only numbers and -infinity can be added")
    return _fitting("bias", bias, scores).to(scores.dtype)


def _fitting(name: str, x: Tensor, scores: Tensor) -> Tensor:
    try:
        fits = torch.broadcast_shapes(x.shape, scores.shape) == scores.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, the scores {tuple(scores.shape)} = "
            "(…, queries, keys); give one that broadcasts to them"
        )
    return x
