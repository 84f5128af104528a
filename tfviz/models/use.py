"""What one does with a model: look at its attention, let it write.

>>> generate(GPT(vocab=11, d=8, h=2, N=1), torch.tensor([[3, 1, 4]]), steps=2).shape
torch.Size([1, 5])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Kept
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
    draft: Callable[[Tensor], Tensor] | None = None,
) -> Int[Tensor, "b L+steps"]:
    """The tokens t and `steps` more: `pick` chooses each from the logits (b, vocab) of its place.

    Keys and values are kept, so that each token costs one row of attention. A `draft` guesses how
    the tokens so far go on, (b, n) → (b, m); the model reads its guesses at once, keeps those that
    `pick` would have chosen, too, and takes back the others. So the tokens are the same for any
    draft, if `pick` always chooses the same of the same logits.

    Raises ValueError without a first token, and for a draft that guesses for other texts.
    """
    steps = _arguments.integer("steps", steps, 0)
    if not t.numel():
        raise ValueError(f"t has shape {tuple(t.shape)}; give at least one token to begin with")
    cache: dict[nn.Module, Kept] = {}
    L, read = t.shape[1], 0
    while t.shape[1] < L + steps:
        guessed = t[:, :0] if draft is None else _guessed(draft, t, L + steps - t.shape[1] - 1)
        before, n = dict(cache), guessed.shape[1]
        logits = model(torch.cat([t[:, read:], guessed], 1), cache)[:, -n - 1 :]
        chosen = torch.stack([pick(logits[:, k]) for k in range(n + 1)], 1)
        right = (chosen[:, :-1] == guessed).all(0).cumprod(0)  # of all texts, from the first one on
        t, read = torch.cat([t, chosen[:, : int(right.sum()) + 1]], 1), t.shape[1] + n
        if read > t.shape[1] - 1:
            read = took_back(cache, before, t.shape[1] - 1)
    return t


def _guessed(draft: Callable[[Tensor], Tensor], t: Tensor, most: int) -> Tensor:
    guessed = draft(t)[:, :most]
    if len(guessed) != len(t):
        raise ValueError(
            f"draft guesses for {len(guessed)} texts, t has {len(t)}; give a function that goes on "
            "with each of them"
        )
    return guessed


def took_back(cache: dict[nn.Module, Kept], before: Mapping[nn.Module, Kept], length: int) -> int:
    """How many tokens a cache has read when it is as if it had read so many at the most.

    Rows are cut. Where something sums up the past instead, or has left rows out, all is again as it
    was `before`: from there on the tokens must be read again.
    """
    try:
        cut = {module: kept.cut(length) for module, kept in cache.items()}
    except ValueError:
        cut = {**before}
    cache.clear()
    cache.update(cut)
    return next((kept.length for kept in cut.values()), 0)
