"""One softmax over several sets of pairs: each by torch's fused kernel, merged by log-sum-exp.

With l = log Σ exp(scores) over the keys of one set, two results of a query become one by

    l = log(exp l₁ + exp l₂)        out = out₁ + σ(l₂ − l₁) (out₂ − out₁)

and with the l of all keys every set has its own share of the gradient (Dao 2022, FlashAttention):

    A = exp(scores − l)    dV = Aᵀ dOut    dScores = A ∘ (dOut Vᵀ − rowsum(dOut ∘ out))

so that sets are forgotten as soon as they are used, forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _fused
from tfviz.sub_quadratic.rows import Rows

FORWARD, VIEWS, BACKWARD = 2**21, 2**25, 2**19
"""Scores at once: what stays in the cache with the rows that are copied for them, or how much
memory they take; forward, forward where nothing is copied, and backward."""
LARGE = 2**19
"""From so many scores in one group on, the fused backward is the faster one."""


@dataclass(frozen=True)
class Call:
    """Groups of queries; each group meets the keys of its own group."""

    queries: Rows
    keys: Rows
    mask: Bool[Tensor, "#groups #m n"] | None = None  # None: every pair is allowed
    causal: bool = False  # query a of a group meets its keys 0 … a
    fresh: bool = False  # no call before this one has any of these queries
    _parts: dict[int, tuple[Call, ...]] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def alone(self) -> Bool[Tensor, "#groups #m 1"] | None:
        """The queries that have no key here, if there are any."""
        if self.mask is None:
            return None
        none = ~self.mask.any(-1, keepdim=True)
        return none if none.any() else None

    @property
    def scores(self) -> int:
        return self.keys.residues * self.keys.groups * self.queries.size * self.keys.size

    def parts(self, most: int) -> tuple[Call, ...]:
        """The same in calls of at most so many scores; at least one group each. Made once."""
        if most not in self._parts:
            self._parts[most] = tuple(self._split(most))
        return self._parts[most]

    def _split(self, most: int) -> Iterator[Call]:
        pairs = self.queries.size * self.keys.size
        groups = min(self.keys.groups, max(1, most // pairs))
        residues = min(self.keys.residues, max(1, most // (pairs * groups)))
        if (groups, residues) == (self.keys.groups, self.keys.residues):
            yield self
            return
        masks: Any = repeat(self.mask)
        if self.mask is not None and len(self.mask) > 1:
            masks = self.mask.split(groups) * -(-self.keys.residues // residues)
        rows = (x.parts(residues, groups) for x in (self.queries, self.keys))
        for queries, keys, mask in zip(*rows, masks, strict=False):
            yield replace(self, queries=queries, keys=keys, mask=mask)


Plan: TypeAlias = tuple[Call, ...]
"""Calls that together meet every pair of a pattern once."""


def freshened(calls: Sequence[Call], L: int) -> Plan:
    """Calls that know which of them are the first to see their queries."""
    seen = torch.zeros(L, dtype=torch.bool)
    known = []
    for call in calls:
        at = call.queries.positions
        known.append(replace(call, fresh=not bool(seen[at].any())))
        seen[at] = True
    return tuple(known)


def attend(
    Q: Float[Tensor, "n L d"], K: Float[Tensor, "n L d"], V: Float[Tensor, "n L dv"], plan: Plan
) -> Float[Tensor, "n L dv"]:
    """Attention over the pairs of a plan; a query without any key gives 0."""
    d, dv = Q.shape[-1], V.shape[-1]
    if d != dv:  # the kernel wants one width; columns of zeros change nothing
        Q, K, V = (F.pad(x, (0, max(d, dv) - x.shape[-1])) for x in (Q, K, V))
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    if Q.device.type == "cpu":
        return _Merged.apply(Q, K, V, plan, 1 / math.sqrt(d))[0][..., :dv]
    return formula(Q, K, V, plan, 1 / math.sqrt(d))[..., :dv]


def formula(Q: Tensor, K: Tensor, V: Tensor, plan: Plan, scale: float) -> Tensor:
    """The same by products, exponentials and sums alone: on every device, and differentiable as
    often as one likes. It keeps the scores of all pairs."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    q, k, v = (x.to(kind) for x in (Q, K, V))
    values = F.pad(v, (0, 1), value=1.0)  # a column of ones gathers the sum of the exponentials
    largest = q.new_full(q.shape[:2], torch.finfo(kind).min)
    found = []
    for call in plan:
        rows, columns = (
            x.positions.to(Q.device).view(x.residues, -1, x.size) for x in (call.queries, call.keys)
        )
        s = scale * q[:, rows] @ k[:, columns].transpose(-1, -2)
        mask = torch.ones(s.shape[-2:], dtype=torch.bool).tril() if call.causal else call.mask
        if mask is not None:
            s = s.masked_fill(~mask.to(Q.device), -math.inf)
        top = s.detach().amax(-1).flatten(1)
        largest = largest.scatter_reduce(1, rows.flatten().expand_as(top), top, "amax")
        found.append((rows, columns, s))
    total = values * 0  # zeros, and part of the graph
    for rows, columns, s in found:
        weighted = (s - largest[:, rows, None]).exp() @ values[:, columns]
        total = total.index_add(1, rows.flatten(), weighted.flatten(1, -2))
    out, denominator = total[..., :-1], total[..., -1:]
    return (out / denominator.masked_fill(denominator == 0, 1.0)).to(Q.dtype)


class _Merged(torch.autograd.Function):
    @staticmethod
    def forward(Q: Tensor, K: Tensor, V: Tensor, plan: Plan, scale: float) -> tuple[Tensor, Tensor]:
        kind = torch.promote_types(Q.dtype, torch.float32)
        out = torch.empty(Q.shape, dtype=kind)
        if sum(call.queries.rows for call in plan if call.fresh) < Q.shape[1]:
            out.zero_()  # some query has no key
        lse = torch.full((*Q.shape[:2], 1), -math.inf, dtype=kind)
        for call, n in _pieces(plan, len(Q), FORWARD, VIEWS):
            q, k, v = call.queries.take(Q[n]), call.keys.take(K[n]), call.keys.take(V[n])
            mask = additive(call.mask, q)
            o, l = _fused.forward(q, k, v, mask, causal=call.causal, scale=scale)
            l = l[..., None]
            if call.alone is not None:  # the kernel gives any number where there is no key
                l = l.masked_fill(call.alone, -math.inf)
            if call.fresh:
                call.queries.put(out[n], o)
                call.queries.put(lse[n], l)
            else:
                before = call.queries.take(lse[n])
                weight = (l - before).sigmoid_().nan_to_num_()  # NaN: neither has a key
                call.queries.lerp(out[n], o.to(kind), weight)
                call.queries.put(lse[n], torch.logaddexp(before, l))
        return out.to(Q.dtype), lse

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *qkv, ctx.plan, ctx.scale = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*qkv, *output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        Q, K, V, out, lse = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated in its turn

            def out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                return formula(q, k, v, ctx.plan, ctx.scale)

            return *_fused.again(out, (Q, K, V), ctx.needs_input_grad[:3], grad), None, None
        return *_gradients(Q, K, V, out, lse, grad, ctx.plan, ctx.scale), None, None


def _gradients(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    out: Tensor,
    lse: Tensor,
    grad: Tensor,
    plan: Plan,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    grad, kind = grad.contiguous(), lse.dtype
    dQ, dK, dV = (torch.zeros(x.shape, dtype=kind) for x in (Q, K, V))
    lse = lse.masked_fill(lse.isneginf(), torch.finfo(kind).max)  # no key: every weight is 0
    for call, n in _pieces([c for c in plan if _large(c)], len(Q), FORWARD, VIEWS):
        q, g, o, l = (call.queries.take(x[n]) for x in (Q, grad, out, lse))
        k, v = call.keys.take(K[n]), call.keys.take(V[n])
        mask = additive(call.mask, q)
        dq, dk, dv = _fused.backward(
            g, q, k, v, o, l[..., 0], mask, causal=call.causal, scale=scale
        )
        call.queries.add(dQ[n], dq)
        call.keys.add(dK[n], dk)
        call.keys.add(dV[n], dv)
    for call, n in _pieces([c for c in plan if not _large(c)], len(Q), BACKWARD):
        q, g, o, l = (call.queries.take(x[n]).to(kind) for x in (Q, grad, out, lse))
        k, v = call.keys.take(K[n]).to(kind), call.keys.take(V[n]).to(kind)
        q = q * scale
        A = (q @ k.transpose(-1, -2)).sub_(l)
        causal = torch.ones(A.shape[-2:], dtype=torch.bool).tril() if call.causal else None
        mask = additive(causal if call.causal else call.mask, A)
        if mask is not None:
            A += mask
        A = A.exp_()
        dS = (g @ v.transpose(-1, -2)).sub_((g * o).sum(-1, keepdim=True)).mul_(A)
        call.queries.add(dQ[n], (dS @ k).mul_(scale))
        call.keys.add(dK[n], dS.transpose(-1, -2) @ q)
        call.keys.add(dV[n], A.transpose(-1, -2) @ g)
    return dQ.to(Q.dtype), dK.to(K.dtype), dV.to(V.dtype)


def _large(call: Call) -> bool:
    return call.queries.size * call.keys.size > LARGE


def _pieces(
    calls: Sequence[Call], n: int, most: int, views: int = 0
) -> Iterator[tuple[Call, slice]]:
    """Parts of calls, and of the n heads and batch entries, of at most so many scores."""
    for call in calls:
        limit = max(most, views) if call.keys.is_view else most
        for part in call.parts(limit):
            heads = max(1, limit // part.scores)
            for first in range(0, n, heads):
                yield part, slice(first, first + heads)


def additive(mask: Bool[Tensor, "..."] | None, like: Tensor) -> Float[Tensor, "..."] | None:
    """0 where allowed and -infinity elsewhere, over the queries of `like`: what SDPA takes."""
    if mask is None:
        return None
    ones = mask.view(torch.uint8).to(like.dtype)
    bias = ones.reciprocal_().neg_().add_(1.0)  # 1 - 1/1 and 1 - 1/0: ten times as fast as a fill
    return bias.expand(*mask.shape[:-2], like.shape[-2], -1)[(None,) * (4 - mask.dim())]
