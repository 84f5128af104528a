"""Adaptive span: each head learns how far back it looks, through a mask with a soft edge.

Sukhbaatar, Grave, Bojanowski, Joulin 2019 (arXiv 1905.07799). A key x tokens back is weighed with

    m_z(x) = clip((R + z − x) / R, 0, 1)        1 up to z, 0 from z + R on, a ramp between

    a_ij = m_z(i − j) exp(s_ij) / Σ_r m_z(i − r) exp(s_ir)

and z, one number for each head with 0 ≤ z ≤ S, is learned with the weights, at a price:
loss + λ · mean of z over the heads of each layer. Keys from z + R on are not computed: a head costs
O(L (z + R) d).

In the paper a token sees those before it, x = 1, 2, …; the authors' code counts them from 0. Here
it sees itself too, as elsewhere in this library, with x = 0: there is always one key. The paper
adds q_i · p_{i−j} to the scores (`shaw_relative`); here that is left to the model's positions.

>>> ramp(torch.arange(7), torch.tensor(2.0), R=4)
tensor([1.0000, 1.0000, 1.0000, 0.7500, 0.5000, 0.2500, 0.0000])
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions, refuse_given_positions, stored
from tfviz.dense_attention import CAUSAL

__all__ = ["AdaptiveSpan", "Span", "span_attention", "span_definition"]

BLOCK = 64
"""Queries that meet their keys in one product."""


def ramp(x: Tensor, z: Tensor, R: float) -> Tensor:
    """m_z(x): how much of a key x tokens away is let through."""
    return ((R + z - x) / R).clamp(0, 1)


def log_ramp(x: Tensor, z: Tensor, R: float) -> Tensor:
    """What is added to the scores; −∞ where nothing gets through, and then without gradient."""
    m = ramp(x, z, R)
    return m.where(m > 0, 1).log().masked_fill(m <= 0, -math.inf)


@named
def span_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    z: Float[Tensor, "*#b #L"],
    R: float,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """Causal softmax over everything, then the mask, then each row divided by its sum. z is that of
    each query, (…, L), or (…, 1) for all of a head."""
    check(z, R)
    i, j = positions(Q.shape[-2], K.shape[-2], Q.device)
    s = (Q @ K.mT / math.sqrt(Q.shape[-1])).masked_fill(j > i, -math.inf)
    A = s.softmax(-1) * ramp(i - j, z.unsqueeze(-1), R)
    A = A / A.sum(-1, keepdim=True)
    return A @ V, A


@named
def span_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    z: Float[Tensor, "*#b h #L"],
    R: float,
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L Σ_h (z_h + R) d): each head meets the keys that its longest span reaches.

    z is (h, 1), or (b, h, L) where each query has its own. Raises TypeError or ValueError for other
    kinds and shapes, spans that are negative or not finite, and R <= 0.
    """
    _qkv.check(Q, K, V, self_attention=True, reads_values=True)
    check(z, R)
    b, h, L, _ = Q.shape
    if z.shape not in ((h, 1), (b, h, L)):
        raise ValueError(f"z has shape {tuple(z.shape)}; give {(h, 1)}, or {(b, h, L)}")
    spans = z.unsqueeze(0).unbind(1) if z.dim() == 2 else z.unbind(1)
    heads = zip(Q.unbind(1), K.unbind(1), V.unbind(1), spans, strict=True)
    return torch.stack([_head(*head, R) for head in heads], 1)


def check(z: Tensor, R: float) -> None:
    _arguments.tensor("z", z, "(h, 1) or (b, h, L)")
    if _arguments.real("R", R, 0) == 0:
        raise ValueError("R = 0 is a step, from which z gets no gradient; choose R > 0")
    if not torch.isfinite(z.detach().sum()):
        raise ValueError("z holds NaN or infinity; look where it was computed, or clamp it at S")
    if z.detach().min() < 0:
        raise ValueError(f"z holds {z.min().item():.3g}; a span cannot be negative: clamp it at 0")


def reached(z: Tensor, R: float) -> int:
    """How many keys before a token itself the longest of these spans lets through at all."""
    return math.ceil(z.detach().max().item() + R) - 1


def _head(q: Tensor, k: Tensor, v: Tensor, z: Tensor, R: float) -> Tensor:
    """One head, (b, L, d), with z of shape (1, 1) or (b, L). The first rows have few keys and are
    one product; all others come in blocks, which share one mask if z is the same for all."""
    L = q.shape[1]
    W = min(L - 1, reached(z, R))
    first = W + (L - W) % BLOCK
    n, here, each = (L - first) // BLOCK, torch.arange(L, device=q.device), z.numel() > 1

    def part(q: Tensor, k: Tensor, v: Tensor, x: Tensor, z: Tensor) -> Tensor:
        seen = log_ramp(x, z.unsqueeze(-1), R).masked_fill(x < 0, -math.inf)
        return _fused.attention(q, k, v, seen.to(q.dtype))

    done = []
    if first:
        x = here[:first, None] - here[:first]
        Q, K, V = (X[:, None, :first] for X in (q, k, v))
        done.append(part(Q, K, V, x, z[:, None, :first] if each else z.squeeze()).squeeze(1))
    if n:  # the keys of a block, and the W before it, are a view
        x = here[:BLOCK, None] + W - torch.arange(BLOCK + W, device=q.device)
        K, V = (X[:, first - W :].unfold(1, BLOCK + W, BLOCK).mT for X in (k, v))
        own = z[:, first:].unflatten(1, (n, BLOCK)) if each else z.squeeze()
        Q = q[:, first:].unflatten(1, (n, BLOCK))
        done.append(part(Q, K, V, x, own).flatten(1, 2))
    return torch.cat(done, 1)


class Span(Dense):
    """A core whose heads look back as far as `spans` says; `z` is what it said last."""

    @named
    def __init__(self, S: float, R: float) -> None:
        super().__init__()
        self.S, self.R = _arguments.real("S", S, 0), _arguments.real("R", R, 0)
        if not self.S:
            raise ValueError("S = 0 lets no head look back, and nothing is learned; choose S > 0")
        self.z = torch.zeros(())
        check(self.z, R)

    def __getstate__(self) -> dict[str, Any]:
        return stored(self)

    def spans(self, Q: Float[Tensor, "b h L d"]) -> Float[Tensor, "*#b h #L"]:
        """(h, 1), or (b, h, L): what is to be learned."""
        raise NotImplementedError(f"{type(self).__name__} must say its spans")

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        i, j = positions(Q.shape[2], K.shape[2], Q.device)
        self.z = self.spans(Q)
        return log_ramp((i - j).abs(), self.z.unsqueeze(-1), self.R)

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        """By blocks where a text asks itself; all pairs for other patterns, padding, kept keys."""
        refuse_given_positions(type(self).__name__)
        other = where.pattern != CAUSAL or where.crosses or where.attention_mask is not None
        if other or where.need_weights or Q.shape[2] != K.shape[2]:
            return super().attend(Q, K, V, where)
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        self.z = self.spans(Q)
        return span_attention(Q, K, V, self.z, self.R), None


class AdaptiveSpan(Span):
    """One learned z = S · share for each of h heads; after each update it is put back into [0, S].

    S   the longest span;  R   the width of the ramp;  start   z at the beginning
    """

    @named
    def __init__(self, h: int, S: float, R: float, start: float = 0.0) -> None:
        super().__init__(S, R)
        share = _arguments.real("start", start, 0, self.S) / self.S
        self.share = nn.Parameter(torch.full((_arguments.integer("h", h, 1), 1), share))

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[1] != len(self.share):
            h, asked = len(self.share), Q.shape[1]
            raise ValueError(f"there are spans of {h} heads, Q has {asked}; make it for {asked}")

    def spans(self, Q: Tensor) -> Tensor:
        self.share.data.clamp_(0, 1)
        return self.S * self.share


def price(model: nn.Module) -> Tensor:
    """Σ over layers of the mean span of the last call: what λ is multiplied with.

    Raises ValueError for a model in which no core has spans.
    """
    spans = [core.z.mean() for core in model.modules() if isinstance(core, Span)]
    if not spans:
        raise ValueError("no core of this model has spans; give it core=lambda: AdaptiveSpan(…)")
    return torch.stack(spans).sum()
