"""Texts of several lengths in one batch: each is read as if it stood alone.

Where texts are shorter than the longest, padding fills them up, on the left, on the right or
within, and `attention_mask` is True at tokens. Texts with the same padding go through the model
together, without it. So positions count from the first token, and what a core, a pattern or a
cache makes of a text is what it makes of the text alone. That takes a pass for each kind of
padding in the batch. What stands at padding is answered with zeros.

>>> from tfviz.models import GPT
>>> model, t = GPT(vocab=11, d=8, h=2, N=1), torch.tensor([[0, 0, 3, 1], [2, 7, 1, 8]])
>>> logits = model(t, attention_mask=torch.tensor([[False, False, True, True], [True] * 4]))
>>> torch.allclose(logits[0, 2:], model(t[:1, 2:])[0])
True
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from tfviz._arguments import indices, named
from tfviz.cores import Cache, Kept, Seen, Where, given, given_positions

Mask = Bool[Tensor, "b L"]


class Apart(NamedTuple):
    """What a cache keeps of texts with padding: which texts go together, and a cache for each."""

    group: Int[Tensor, "b"]
    row: Int[Tensor, "b"]  # of the text among those of its group
    real: Mask  # of all that was read
    caches: list[dict[nn.Module, Kept]]


def each_text_alone(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator of forward(self, t, cache=None, …): it takes an `attention_mask` as well, of all
    tokens so far, those in the cache too; without one all new ones are tokens."""
    takes_cache = "cache" in inspect.signature(forward).parameters

    @wraps(forward)
    def call(
        self: nn.Module,
        t: Tensor,
        cache: Cache = None,
        *more: Any,
        attention_mask: Mask | None = None,
        **named: Any,
    ) -> Tensor:
        kept, begin = (cache or {}).get(self), (cache,) if takes_cache else ()
        if attention_mask is None and kept is None:
            return forward(self, t, *begin, *more, **named)
        past = next((kept.length for kept in (cache or {}).values()), 0)
        if attention_mask is None:
            new = torch.ones(indices("t", t, 2).shape, dtype=torch.bool)
            attention_mask = torch.cat([cast(Kept, kept).state.real, new], 1)
        real = checked(attention_mask, t, past).cpu()
        if kept is None and real.all():
            return forward(self, t, *begin, *more, **named)
        if more or any(value is not None for value in named.values()):
            raise ValueError(
                f"attention_mask says that there is padding; {', '.join(named) or 'more'} cannot "
                "be cut as t is: call the model without it, or with each text alone"
            )
        before = kept.state if kept else _together(len(t), past, cache)
        if not before.real.equal(real[:, :past]):
            raise ValueError(
                f"attention_mask has other padding among the first {past} tokens than those in the "
                "cache were read with; begin with an empty cache"
            )

        def run(part: Tensor, own: Cache, at: tuple[Tensor, Tensor]) -> Tensor:
            return forward(self, part, *[own] * takes_cache)

        out, after = _read(self, run, t, real, before, cache is not None)
        if cache is not None:
            cache.clear()
            cache[self] = Kept(past + t.shape[1], after)
        return out

    return _told(call, forward)


def encoded_alone(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator of forward(self, t, attention_mask=None, …), for what reads whole texts and knows
    padding on the right itself: with other padding too, each text is read as if alone."""

    @wraps(forward)
    def call(
        self: nn.Module, t: Tensor, attention_mask: Mask | None = None, *more: Any, **named: Any
    ) -> Tensor:
        if attention_mask is None:
            return forward(self, t, None, *more, **named)
        real = checked(attention_mask, t, 0).cpu()
        if not (real[:, 1:] & ~real[:, :-1]).any():  # no token comes after padding
            return forward(self, t, attention_mask, *more, **named)

        def run(part: Tensor, own: Cache, at: tuple[Tensor, Tensor]) -> Tensor:
            def cut(x: Any) -> Any:
                return x.expand_as(t)[at] if isinstance(x, Tensor) else x

            others = {name: cut(x) for name, x in named.items()}
            return forward(self, part, None, *map(cut, more), **others)

        return _read(self, run, t, real, _together(len(t), 0, None), False)[0]

    return _told(call, forward)


def written_alone(generate: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator of generate(model, t, …): it takes an `attention_mask` of t as well."""

    @wraps(generate)
    def call(
        model: Callable[..., Tensor],
        t: Tensor,
        *more: Any,
        attention_mask: Mask | None = None,
        **named: Any,
    ) -> Tensor:
        if attention_mask is None:
            return generate(model, t, *more, **named)
        real = checked(attention_mask, t, 0)
        if not real.any(1).all():
            text = int((~real.any(1)).nonzero()[0])
            raise ValueError(
                f"attention_mask[{text}] is False throughout, so text {text} has no token; give at "
                "least one to begin with, or leave the text out"
            )
        last = torch.where(real, torch.arange(t.shape[1], device=t.device), -1).amax(1)

        def reads(new: Tensor, cache: dict[nn.Module, Kept]) -> Tensor:
            if cache:  # it knows the padding
                return model(new, cache)
            L = real.shape[1]
            after = real.new_ones(len(t), new.shape[1] - L)  # tokens that were written or guessed
            logits = model(new, cache, attention_mask=torch.cat([real, after], 1))
            first = logits[torch.arange(len(t), device=t.device), last][:, None]
            return torch.cat([first, logits[:, L:]], 1)

        return generate(reads, t, *more, **named)

    return _told(call, generate)


def begun_alone(search: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of search(next_log_p, prompt, …): it takes an `attention_mask` (L,) as well."""

    @wraps(search)
    def call(
        next_log_p: Any,
        prompt: Tensor,
        *more: Any,
        attention_mask: Bool[Tensor, "L"] | None = None,
        **named: Any,
    ) -> Any:
        if attention_mask is None:
            return search(next_log_p, prompt, *more, **named)
        mask = attention_mask[None] if isinstance(attention_mask, Tensor) else attention_mask
        real = checked(mask, indices("prompt", prompt, 1)[None], 0)
        with given(**_given_to(torch.tensor([0]), real.cpu())):
            return search(next_log_p, prompt[real[0]], *more, **named)

    return _told(call, search)


def checked(attention_mask: Any, t: Tensor, past: int) -> Mask:
    """The mask of `past` tokens before and of t. Raises TypeError or ValueError that says what is
    wrong with it."""
    b, L = indices("t", t, 2).shape
    if not isinstance(attention_mask, Tensor) or attention_mask.dtype != torch.bool:
        kind = getattr(attention_mask, "dtype", type(attention_mask).__name__)
        remedy = "attention_mask != 0" if isinstance(attention_mask, Tensor) else "torch.tensor(…)"
        raise TypeError(f"attention_mask is {kind}; give Booleans, False at padding: {remedy}")
    if attention_mask.shape == (1, past + L):  # one for all texts
        attention_mask = attention_mask.expand(b, -1)
    if attention_mask.shape != (b, past + L):
        before = f", for the {past} tokens in the cache and the new ones" if past else ""
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}, t {(b, L)}; give "
            f"{(b, past + L)}{before}, True at tokens and False at padding"
        )
    if attention_mask.is_meta or t.is_meta:
        raise ValueError(
            "attention_mask or t is on the meta device, which holds no numbers, and its numbers "
            "decide which texts go together; give both on a CPU, or no attention_mask"
        )
    return attention_mask


def _together(b: int, past: int, cache: Cache) -> Apart:
    """All texts in one group, without padding so far."""
    first = torch.zeros(b, dtype=torch.long)
    return Apart(first, torch.arange(b), torch.ones(b, past, dtype=torch.bool), [{**(cache or {})}])


def _read(
    model: nn.Module,
    run: Callable[[Tensor, Cache, tuple[Tensor, Tensor]], Tensor],
    t: Tensor,
    real: Mask,
    before: Apart,
    keeps: bool,
) -> tuple[Tensor, Apart]:
    """(what the model answers to all texts, what is kept of them)."""
    (b, L), out, seen = t.shape, None, dict[nn.Module, tuple[Tensor | None, Tensor]]()
    new = real[:, real.shape[1] - L :].long()
    group, row = torch.empty_like(before.group), torch.empty_like(before.row)
    caches: list[dict[nn.Module, Kept]] = []
    kinds = torch.cat([before.group[:, None], new], 1)
    for kind in kinds.unique(dim=0):
        rows = (kinds == kind).all(1).nonzero()[:, 0]
        columns = kind[1:].nonzero()[:, 0]
        own = _rows(before.caches[int(kind[0])], before.row[rows])
        group[rows], row[rows] = len(caches), torch.arange(len(rows))
        caches.append(own)
        if not len(columns):
            continue
        at = rows.to(t.device)[:, None], columns.to(t.device)
        with given(**_given_to(rows, real)):
            part = run(t[at], own if keeps else None, at)
        out = part.new_zeros(b, L, *part.shape[2:]) if out is None else out
        out = out.index_put(at, part)
        _collect(model, seen, real, at, L)
    for module, (A, heads) in seen.items():
        watched: Any = module
        watched.seen = Seen(None if A is None else A.permute(0, 3, 1, 2), heads.transpose(1, 2))
    if out is None:
        raise ValueError(
            f"attention_mask of shape {tuple(real.shape)} is False throughout, so there is no "
            "token in t; give True at tokens"
        )
    return out, Apart(group, row, real, caches)


def _given_to(rows: Tensor, real: Mask) -> dict[str, Tensor]:
    """What is given from outside, for these texts: a row for each, or one for all. Of positions,
    only those of tokens are left, and those of what comes later.

    Raises TypeError or ValueError for positions that do not fit to all that was read.
    """
    (b, n), outside = real.shape, dict(Where().given)
    P = outside.get("positions")
    if P is not None:
        given_positions(0, n, b, P.shape[2] if isinstance(P, Tensor) and P.dim() == 3 else 1)
        column = min(1, P.dim() - 1)
        there = torch.cat([real[rows[0]].nonzero()[:, 0], torch.arange(n, P.shape[column])])
        outside["positions"] = P.index_select(column, there.to(P.device))
    return {name: x[rows] if x.dim() > 1 and len(x) == b else x for name, x in outside.items()}


def _rows(cache: dict[nn.Module, Kept], rows: Tensor) -> dict[nn.Module, Kept]:
    """The part of a cache that is of these texts."""

    def part(x: Tensor) -> Tensor:
        return x if len(x) == len(rows) and rows.equal(torch.arange(len(x))) else x[rows]

    return {
        m: Kept(length, tree_map_only(Tensor, part, state)) for m, (length, state) in cache.items()
    }


def _collect(
    model: nn.Module,
    seen: dict[nn.Module, tuple[Tensor | None, Tensor]],
    real: Mask,
    at: tuple[Tensor, Tensor],
    L: int,
) -> None:
    """What watched attentions did for some texts goes where these stand in the batch: weights, as
    (b, Lq, Lk, h), and heads, as (b, L, h, d_head)."""
    keys = real[int(at[0][0])].nonzero()[:, 0].to(at[0].device)
    for module in model.modules():
        done = getattr(module, "seen", None)
        if not getattr(module, "watched", False) or done is None:
            continue
        A, heads = seen.get(module, (None, None))
        size, found = (len(real), L), done.heads.transpose(1, 2)
        heads = found.new_zeros(*size, *found.shape[2:]) if heads is None else heads
        heads = heads.index_put(at, found)
        if done.A is not None and done.A.shape[-1] == len(keys):
            weights = done.A.permute(0, 2, 3, 1)
            A = weights.new_zeros(*size, real.shape[1], weights.shape[3]) if A is None else A
            A = A.index_put((at[0][..., None], at[1][:, None], keys), weights)
        seen[module] = A, heads


def _told(call: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """With the signature of the function, and the mask."""
    signature = inspect.signature(function)
    if "attention_mask" not in signature.parameters:
        mask = inspect.Parameter(
            "attention_mask",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation="Bool[Tensor, '*b L'] | None",
        )
        parameters = [*signature.parameters.values(), mask]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return named(call)
