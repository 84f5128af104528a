"""What one does with a model: look at its attention, let it write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz.models.blocks import Cache, MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.position import Positions


@torch.no_grad()
def attention_weights(
    model: nn.Module, *inputs: Any, **more: Any
) -> dict[str, Float[Tensor, "b h Lq Lk"]]:
    """A of every attention in one pass `model(*inputs)`, by the module's name.

    Nothing is computed by other code than in training: for this pass each attention is only asked
    for the weights, which `heads_attention` then makes by the definition. Not for several threads.
    """
    seen: dict[str, Tensor] = {}
    named = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    for name, module in named.items():
        module.positions = _Watched(module.positions, name, seen)
    try:
        model(*inputs, **more)
    finally:
        for module in named.values():
            module.positions = module.positions.watched
    return seen


class _Watched(Positions):
    """The same positions, noting A when it passes by."""

    reads_weights = True

    def __init__(self, watched: Positions, name: str, seen: dict[str, Tensor]) -> None:
        super().__init__()
        self.watched, self.name, self.seen = watched, name, seen
        self.turn, self.bias = watched.turn, watched.bias  # type: ignore[method-assign]

    def values(self, A: Tensor) -> Tensor:
        self.seen[self.name] = A
        return self.watched.values(A) if self.watched.reads_weights else A.new_zeros(())


def greedy(logits: Float[Tensor, "b vocab"]) -> Int[Tensor, "b"]:
    """The likeliest token."""
    return logits.argmax(-1)


@torch.no_grad()
def generate(
    model: GPT,
    t: Int[Tensor, "b L"],
    steps: int,
    pick: Callable[[Tensor], Tensor] = greedy,
) -> Int[Tensor, "b L+steps"]:
    """The tokens t and `steps` more: `pick` chooses each from the logits (b, vocab) of its place.

    Keys and values are kept, so that each token costs one row of attention. ValueError without a
    first token.
    """
    _arguments.integer("steps", steps, 0)
    if not t.numel():
        raise ValueError(f"t has shape {tuple(t.shape)}; give at least one token to begin with")
    cache: Cache = {}
    new = t
    for _ in range(steps):
        new = pick(model(new, cache)[:, -1])[:, None]
        t = torch.cat([t, new], 1)
    return t
