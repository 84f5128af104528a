"""Reversible layers: the input of a block can be worked out from its output, so none is kept.

Gomez, Ren, Urtasun, Grosse 2017 (arXiv 1707.04585), in the Transformer Kitaev et al. 2020 (section
3). Two streams instead of one; F is attention and G the feed-forward network in the Reformer:

    Y₁ = X₁ + F(X₂)        X₂ = Y₂ − G(Y₁)
    Y₂ = X₂ + G(Y₁)        X₁ = Y₁ − F(X₂)

Backward, each block first recovers its input, then computes F and G once more, with the random
numbers (dropout) of the first time.

>>> X = torch.tensor([1.0, 2.0])
>>> inverse(*forward(X, X, [(torch.sin, torch.cos)]), [(torch.sin, torch.cos)])
(tensor([1., 2.]), tensor([1., 2.]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["Reversible"]

Function = Callable[[Tensor], Tensor]
Blocks = Sequence[tuple[Function, Function]]


def forward(X1: Tensor, X2: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
    """The definition, block after block (F, G); autograd keeps what every block made."""
    for F, G in blocks:
        X1 = X1 + F(X2)
        X2 = X2 + G(X1)
    return X1, X2


def inverse(Y1: Tensor, Y2: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
    """The inputs that led to these outputs, up to rounding."""
    for F, G in reversed(blocks):
        Y2 = Y2 - G(Y1)
        Y1 = Y1 - F(Y2)
    return Y1, Y2


@contextmanager
def _dice(state: Tensor) -> Iterator[None]:
    """Random numbers as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield


class _Stack(torch.autograd.Function):
    """`forward`, keeping only what comes out."""

    @staticmethod
    def forward(ctx: Any, X1: Tensor, X2: Tensor, blocks: Blocks, *weights: Tensor) -> Any:
        ctx.blocks, ctx.weights, ctx.dice = blocks, weights, []
        for F, G in blocks:
            ctx.dice.append(torch.get_rng_state())
            X1 = X1 + F(X2)
            ctx.dice.append(torch.get_rng_state())
            X2 = X2 + G(X1)
        ctx.save_for_backward(X1, X2)
        return X1, X2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        Y1, Y2 = ctx.saved_tensors
        d1, d2 = grads
        weights, dice = [w for w in ctx.weights if w.requires_grad], list(ctx.dice)
        total: dict[int, Tensor] = {}

        def again(function: Function, X: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
            """function(X) as it was, and the gradient of its input; its weights' are added up."""
            X = X.detach().requires_grad_()
            with torch.enable_grad(), _dice(dice.pop()):
                out = function(X)
            dX, *more = torch.autograd.grad(out, [X, *weights], d, allow_unused=True)
            for w, dw in zip(weights, more, strict=True):
                if dw is not None:
                    total[id(w)] = total[id(w)] + dw if id(w) in total else dw
            return out.detach(), torch.zeros_like(X) if dX is None else dX

        for F, G in reversed(ctx.blocks):
            out, dX = again(G, Y1, d2)
            Y2, d1 = Y2 - out, d1 + dX  # X₂
            out, dX = again(F, Y2, d1)
            Y1, d2 = Y1 - out, d2 + dX  # X₁
        return d1, d2, None, *(total.get(id(w)) for w in ctx.weights)


class Reversible(nn.Module):
    """A stack of reversible blocks (F, G), both modules of shape (b, L, d) → (b, L, d).

    The input goes into both streams; out comes their mean. Raises ValueError for an empty stack,
    TypeError for F or G that are no modules: their weights must be known.
    """

    @named
    def __init__(self, blocks: Sequence[tuple[nn.Module, nn.Module]]) -> None:
        super().__init__()
        if not blocks:
            raise ValueError("blocks is empty; give at least one pair (F, G)")
        for part in (part for pair in blocks for part in pair):
            if not isinstance(part, nn.Module):
                raise TypeError(
                    f"{part!r} is no nn.Module: its weights would get no gradient; give pairs of "
                    "modules (F, G)"
                )
        self.parts = nn.ModuleList(part for pair in blocks for part in pair)

    @named
    def forward(self, X: Tensor) -> Tensor:
        blocks = list(zip(self.parts[::2], self.parts[1::2], strict=True))
        Y1, Y2 = _Stack.apply(X, X, blocks, *self.parameters())
        return (Y1 + Y2) / 2


WAYS = ("kept", "checkpointed", "reversible")


def activations(way: str, N: int, L: int, d: int, chunks: int = 1) -> int:
    """Numbers held for the backward pass of N pre-norm blocks at its worst moment, d_ff = 4 d.

    Attention needs 6 L d of them (its input, the normalised input, Q, K, V, what the heads say),
    the feed-forward 10 L d (2, and its hidden layer before and after the GELU); a fused kernel
    stores no weights. *Kept*: all of it. *Checkpointed*: each block's input, and one block made
    again. *Reversible*: the two streams at the end, and one part of a block made again, the
    feed-forward in chunks.

    Raises ValueError for another way or a size below 1.
    """
    for name, value in (("N", N), ("L", L), ("d", d), ("chunks", chunks)):
        _arguments.integer(name, value, 1)
    attend, feed = 6 * L * d, 10 * L * d
    if way == "kept":
        return N * (attend + feed)
    if way == "checkpointed":
        return N * L * d + attend + feed
    if way == "reversible":
        return 2 * L * d + max(attend, -(-feed // chunks))
    raise ValueError(f"way = {way!r}; choose one of {', '.join(WAYS)}")
