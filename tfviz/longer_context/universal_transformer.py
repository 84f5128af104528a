"""Universal Transformer: one block, applied T times; recurrence in depth, not in time.

    U^k = LN((H^{k−1} + P^k) + MHA(H^{k−1} + P^k))
    H^k = LN(U^k + Transition(U^k)),    k = 1 … T, with the same weights

Dehghani et al. 2018 (arXiv 1807.03819), who write t for the step k, as the code below does, and A
for U. P^k is a code for place and step (`ut_time_position_signal`). It is added before each step,
so the skip connection passes it on, too. Transition is the feed-forward part here; the paper also
has a separable convolution. The order of LN is the block's: post-norm is
the paper's; tensor2tensor normalises before and once at the end by default.

Any model of blocks becomes one: its stacks keep the first block.

>>> from tfviz.models.gpt import GPT
>>> model = universal(GPT(vocab=11, d=8, h=2, N=1, order=post_norm), T=6)
>>> model(torch.tensor([[3, 1, 4]])).shape, len(list(model.stack.block.parameters()))
(torch.Size([1, 3, 11]), 12)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache, Kept, levels, places
from tfviz.longer_context.ut_time_position_signal import TimePosition
from tfviz.models.blocks import AttentionMask, Block, Memory, Seq, Stack
from tfviz.models.blocks import post_norm as post_norm  # for the example above

__all__ = ["Universal", "universal"]


class Universal(nn.Module):
    """T steps of one block. `norm` is what the last state passes through, T may be changed later.

    With a cache every step keeps keys and values of its own: T times those of one layer.
    """

    @named
    def __init__(
        self, block: Block, T: int, signal: TimePosition | None, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.block, self.signal, self.norm = block, signal, norm or nn.Identity()
        self.T = _arguments.integer("T", T, 1)

    def told(self, X: Seq, i: Tensor, t: int) -> Seq:
        """H^{k−1} + P^k, where k is `t`."""
        if self.signal is None:
            return X
        return X + self.signal.place(i).to(X) + self.signal.step(t).to(X)

    @levels()
    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        kept = (cache or {}).get(self, Kept())
        i = places(kept.length, len(X), X.shape[1], X.device)
        parts = [m for m in (self.block.attend, self.block.cross) if m is not None]
        states = []
        for t in range(1, self.T + 1):
            own: Cache = None
            if cache is not None:  # what these attentions kept at step t of the call before
                old = kept.state[t - 1] if kept.state else [None] * len(parts)
                own = {m: Kept(kept.length, s) for m, s in zip(parts, old, strict=True)}
            X = self.block(self.told(X, i, t), memory, attention_mask, own)
            if own is not None:
                states.append([own[m].state for m in parts])
        if cache is not None:
            cache[self] = Kept(kept.length + X.shape[1], states)
        return self.norm(X)

    @torch.no_grad()
    def states(self, X: Seq) -> list[Seq]:
        """H^0 … H^T."""
        found, i = [X], places(0, len(X), X.shape[1], X.device)
        for t in range(1, self.T + 1):
            found.append(self.block(self.told(found[-1], i, t)))
        return found


Model = TypeVar("Model", bound=nn.Module)
OWN: Any = object()


@named
def universal(
    model: Model,
    T: int,
    signal: TimePosition | None = OWN,
    make: Callable[..., nn.Module] = Universal,
) -> Model:
    """The model with T steps of the first block in the place of each of its stacks.

    signal   what is added before each step: by default the paper's, scaled by 1/√d as elsewhere in
             this library's GPT; None: nothing
    """
    found = {name: m for name, m in model.named_children() if isinstance(m, Stack)}
    if not found or any(not len(stack.blocks) for stack in found.values()):
        raise ValueError("model has no stack with a block; make it with N = 1")
    for name, stack in found.items():
        block = stack.blocks[0]
        assert isinstance(block, Block)
        d = len(block.norms[0].weight)  # type: ignore[arg-type]
        own = TimePosition(d, scale=d**-0.5) if signal is OWN else signal
        setattr(model, name, make(block, T, own, stack.norm))
    return model


def changes(states: list[Seq]) -> Tensor:
    """‖H^k − H^{k−1}‖ of every position at every step, (b, T, L)."""
    return torch.stack([(b - a).norm(dim=-1) for a, b in pairwise(states)], 1)
