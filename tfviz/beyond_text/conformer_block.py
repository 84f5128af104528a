"""The Conformer: attention for what is far and a convolution for what is near, in one block.

    x̃ = x + ½ F₁(x),   x′ = x̃ + A(x̃),   x″ = x′ + C(x′),   y = LN(x″ + ½ F₂(x″))

Gulati et al. 2020 (arXiv 2005.08100), section 2.4. Each of F₁, A, C and F₂ normalises its input
first. F₁ and F₂ are two feed-forward layers with swish, A is attention with Transformer-XL's
distances, and C is the convolution module of section 2.2: pointwise to 2d, GLU, depthwise with k
taps, BatchNorm, swish, pointwise.

A convolution looks ahead, so this is a block for encoders. Samples beyond both ends, and those that
an attention mask calls padding, are 0 for it. In training, BatchNorm's means count padding, too.

>>> blocks = conformer(2, d=8, h=2, kernel=3).eval()
>>> blocks(torch.randn(1, 5, 8)).shape
torch.Size([1, 5, 8])
>>> offsets(32)
(-15, 16)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import FULL, made, sees_ahead
from tfviz.models.blocks import (
    AttentionMask,
    AttentionOptions,
    Cache,
    FeedForward,
    Layer,
    Memory,
    MultiHeadAttention,
    Order,
    Seq,
    Stack,
    made_feed,
    made_norm,
    post_norm,
    pre_norm,
)
from tfviz.position.xl_relative import xl

__all__ = ["Conformer", "Convolution", "conformer", "depthwise", "half_step", "offsets", "reach"]

WITH_SWISH = partial(FeedForward, phi=nn.SiLU)
PARTS = ("feed", "attend", "convolve", "feed")


@named
def half_step(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    """The pre-norm order with half of what the layer says."""
    return X + F(LN(X)) / 2


@named
def offsets(kernel: int) -> tuple[int, int]:
    """(first, last): an output sees the samples from so many places before it to so many after it.

    An even kernel sees one more after it than before it: padding "same" of TensorFlow.
    """
    kernel = _arguments.integer("kernel", kernel, 1)
    return -((kernel - 1) // 2), kernel // 2


@named
def reach(kernel: int, layers: int) -> tuple[int, int]:
    """The same for so many convolutions on top of each other.

    >>> reach(31, 17)
    (-255, 255)
    """
    first, last = offsets(kernel)
    layers = _arguments.integer("layers", layers, 0)
    return layers * first, layers * last


@named
def depthwise(
    X: Float[Tensor, "*batch L d"], taps: Float[Tensor, "d kernel"]
) -> Float[Tensor, "*batch L d"]:
    """y_ic = Σ_o taps[c, o] x_(i+o)c by the definition, o from first to last: 0 beyond the ends."""
    L, (first, last) = X.shape[-2], offsets(taps.shape[-1])
    out = torch.zeros_like(X)
    for i in range(L):
        for n, o in enumerate(range(first, last + 1)):
            if 0 <= i + o < L:
                out[..., i, :] += taps[:, n] * X[..., i + o, :]
    return out


class Convolution(nn.Module):
    """Pointwise to 2d, GLU, depthwise, BatchNorm, swish, pointwise. It normalises nothing first."""

    @named
    def __init__(self, d: int, kernel: int = 31) -> None:
        super().__init__()
        first, last = offsets(kernel)
        self.ends = (-first, last)
        self.W_1, self.W_2 = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d, bias=False)
        self.depthwise = nn.Conv1d(d, d, kernel, groups=d, bias=False)
        self.norm = nn.BatchNorm1d(d)

    @named
    def forward(self, X: Seq, attention_mask: AttentionMask = None) -> Seq:
        X = F.glu(self.W_1(X))  # the second half is the gate
        if attention_mask is not None:
            X = X * attention_mask[..., None]
        near = self.depthwise(F.pad(X.mT, self.ends))
        return self.W_2(F.silu(self.norm(near)).mT)


class Conformer(nn.Module):
    """One block. `parts` says which modules it has, and in which order.

    step       what becomes of a feed-forward layer's answer; pre_norm would take all of it
    core       of the attention; Transformer-XL's distances in both directions, unless it is given
    attention  what `mix` takes besides: pattern, h_kv, project and join

    Raises ValueError for an order that is not post_norm, as another would have the stack normalise
    once more, and, when it is called, for a pattern that hides what comes after, a memory or a
    cache.
    """

    @named
    def __init__(
        self,
        d: int,
        h: int,
        order: Order = post_norm,
        *,
        kernel: int = 31,
        parts: Sequence[str] = PARTS,
        step: Order = half_step,
        d_ff: int | None = None,
        phi: Callable[[], nn.Module] | None = None,
        n: int = 0,
        mix: Callable[..., nn.Module] = MultiHeadAttention,
        feed: Callable[..., nn.Module] = WITH_SWISH,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        **attention: Unpack[AttentionOptions],
    ) -> None:
        super().__init__()
        if order is not post_norm:
            raise ValueError(
                f"order = {getattr(order, '__name__', order)!r}: a Conformer block ends with a "
                "norm of its own, and is for encoders; give order=post_norm, so that none is added"
            )
        sizes = {"d": d, "h": h, "n": n}
        if mix is MultiHeadAttention:
            attention.setdefault("core", xl(h, d // h, bidirectional=True))
        makers: dict[str, Callable[[], nn.Module]] = {
            "feed": lambda: made_feed(feed, sizes, d_ff, phi),
            "attend": lambda: made("mix", mix, sizes, **attention),
            "convolve": lambda: Convolution(d, kernel),
        }
        if unknown := [part for part in parts if part not in makers]:
            raise ValueError(f"parts holds {unknown[0]!r}; choose from {', '.join(makers)}")
        self.parts = nn.ModuleList(makers[part]() for part in parts)
        self.names = tuple(parts)
        self.norms = nn.ModuleList(made_norm(norm, d) for _ in parts)
        self.norm, self.step = made_norm(norm, d), step

    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        if memory is not None or cache is not None:
            given = "a memory" if memory is not None else "a cache"
            raise ValueError(
                f"{given} is given, but a Conformer block reads one whole sequence; call it "
                "without, as an encoder"
            )
        self._check_ahead(X.shape[1])
        for name, part, LN in zip(self.names, self.parts, self.norms, strict=True):
            if name == "feed":
                X = self.step(X, part, LN)
            else:
                X = pre_norm(X, partial(part, attention_mask=attention_mask), LN)
        return self.norm(X)

    def _check_ahead(self, L: int) -> None:
        for name, part in zip(self.names, self.parts, strict=True):
            pattern = getattr(part, "pattern", FULL)
            if name != "attend" or L < 2:
                continue
            if not sees_ahead(pattern, L, L):
                raise ValueError(
                    f"pattern = {pattern!r} hides what comes after a position, but the convolution "
                    "of a Conformer block looks ahead; use the block in an encoder, with full "
                    "attention"
                )


@named
def conformer(N: int, d: int, h: int, **options: Any) -> Stack:
    """N blocks; each ends with its own norm, so none comes after them."""
    return Stack(N, d, h, post_norm, block=Conformer, **options)
