"""What one does with a model: look at its attention, let it write.

>>> generate(GPT(vocab=11, d=8, h=2, N=1), torch.tensor([[3, 1, 4]]), steps=2).shape
torch.Size([1, 5])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache
from tfviz.models.blocks import Mixer
from tfviz.models.gpt import GPT
from tfviz.models.padding import written_alone

__all__ = ["attention_weights", "generate", "greedy", "maps", "watched"]


@contextmanager
def watched(model: nn.Module) -> Iterator[dict[str, Mixer]]:
    """The attentions of a model by name; while this lasts each keeps what it did in its last call
    as `seen`: its weights A and what its heads found, with gradients. Not for several threads."""
    named = {n: m for n, m in model.named_modules() if isinstance(m, Mixer)}
    before = {name: module.watched for name, module in named.items()}
    for module in named.values():
        module.watched = True
    try:
        yield named
    finally:
        for name, module in named.items():
            module.watched = before[name]
            module.seen = module.seen if before[name] else None


@named
def maps(model: nn.Module) -> dict[str, Float[Tensor, "b h Lq Lk"]]:
    """A of every attention in the model's last call, by the module's name, with gradients.

    Raises ValueError where nobody watches, or a core has no weights.
    """
    found = {}
    for name, module in model.named_modules():
        if not isinstance(module, Mixer):
            continue
        if module.seen is None:
            if module.watched:
                continue  # it has not been called
            raise ValueError(
                f"nobody watches {name!r}; call the model within `with watched(model)`"
            )
        if module.seen.A is None:
            core = getattr(module, "core", module)
            raise ValueError(
                f"{name!r}: {core!r} makes no weights; look at other attentions of the model"
            )
        found[name] = module.seen.A
    return found


@torch.no_grad()
@named
def attention_weights(
    model: nn.Module, *inputs: Any, **more: Any
) -> dict[str, Float[Tensor, "b h Lq Lk"]]:
    """A of every attention in one pass `model(*inputs)`, by the module's name.

    Nothing is computed by other code than in training: each core is asked for its weights.
    Raises ValueError where a core has none. Not for several threads.
    """
    with watched(model):
        model(*inputs, **more)
        return maps(model)


@named
def greedy(logits: Float[Tensor, "b vocab"]) -> Int[Tensor, "b"]:
    """The likeliest token."""
    return logits.argmax(-1)


@torch.no_grad()
@written_alone
@named
def generate(
    model: GPT,
    t: Int[Tensor, "b L"],
    steps: int,
    pick: Callable[[Tensor], Tensor] = greedy,
) -> Int[Tensor, "b L+steps"]:
    """The tokens t and `steps` more: `pick` chooses each from the logits (b, vocab) of its place.

    Keys and values are kept, so that each token costs one row of attention. Raises ValueError
    without a first token.
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
