"""What a pattern does over layers: who hears of whom, after how many hops, and how much.

>>> from tfviz import patterns
>>> patterns.sliding_window(lookback=3).reach(10).diameter
3
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tfviz import _arguments


class HasMask(Protocol):
    """What is followed: a pattern, of which only its mask is used."""

    def mask(self, L: int) -> Bool[Tensor, "*h L L"]: ...


@dataclass(frozen=True)
class Reach:
    """Who hears of whom, and after how many layers.

    hops[i, j] is the first number of layers after which position i depends on position j; 0 on the
    diagonal, -1 if never. by_layer[n] says who has heard of whom after layer n + 1. A pair counts
    as wanted if some token may ever need it: all pairs, or j <= i if every pattern is causal.
    """

    hops: Int[Tensor, "L L"]
    by_layer: Sequence[Bool[Tensor, "L L"]]
    causal: bool

    @property
    def wanted(self) -> Bool[Tensor, "L L"]:
        every = torch.ones_like(self.hops, dtype=torch.bool)
        return every.tril() if self.causal else every

    @property
    def unreachable(self) -> int:
        """Number of wanted pairs that are never connected."""
        return int((self.wanted & (self.hops < 0)).sum())

    @property
    def diameter(self) -> int | None:
        """The largest number of hops between a wanted pair; None if some pair is unreachable."""
        return None if self.unreachable else int(self.hops.max())


def _masks(patterns: Sequence[HasMask], L: int) -> list[Bool[Tensor, "L L"]]:
    if not isinstance(patterns, Sequence) or not patterns:
        raise ValueError(f"patterns = {patterns!r}; give a list with one Pattern for each layer")
    masks = [p.mask(L) for p in patterns]
    return [m.any(0) if m.dim() == 3 else m for m in masks]  # heads of one layer work together


def spread(mask: Bool[Tensor, "*b L L"], known: Bool[Tensor, "*b L L"]) -> Bool[Tensor, "*b L L"]:
    """What positions hear of through one layer: j, if a key of i knows of it. M R > 0."""
    return mask.float() @ known.float() > 0


def reach(
    patterns: Sequence[HasMask], L: int, layers: int | None = None, residual: bool = True
) -> Reach:
    """Follow information through layers; layer n (from 0) uses patterns[n % len(patterns)].

    With a residual, a layer adds to what a position knows; without it, only what the pattern
    fetches survives. Without `layers` it goes on until a whole cycle of patterns adds nothing.
    """
    masks = _masks(patterns, L)
    layers = None if layers is None else _arguments.integer("layers", layers, 0)
    is_causal = all(not m.triu(1).any() for m in masks)
    if residual or all(bool(m.diagonal().all()) for m in masks):  # nothing is forgotten
        hops, count = _first_heard(masks, L, layers)
        return Reach(hops, _Layers(hops, count), is_causal)
    known = torch.eye(L, dtype=torch.bool)
    hops = torch.full((L, L), -1).masked_fill(known, 0)
    by_layer: list[Bool[Tensor, "L L"]] = []
    quiet = n = 0
    while n != layers and (layers is not None or quiet < len(masks)):
        known = spread(masks[n % len(masks)], known)
        fresh = known & (hops < 0)
        hops[fresh] = n + 1
        quiet = 0 if fresh.any() else quiet + 1
        by_layer.append(known)
        n += 1
        if layers is None and n > L * len(masks):
            break
    return Reach(hops, by_layer, is_causal)


def _first_heard(
    masks: list[Bool[Tensor, "L L"]], L: int, layers: int | None
) -> tuple[Int[Tensor, "L L"], int]:
    """The hops of all pairs where nothing is forgotten, and the layers it took, by breadth-first
    search from all positions at once: a layer hands on only what was new since it came last."""
    hops = torch.full((L, L), -1).fill_diagonal_(0)
    flat = hops.view(-1)
    readers = [_readers(mask) for mask in masks]
    recent = deque([(hops == 0).view(-1).nonzero().flatten()], maxlen=len(masks))
    quiet = n = 0
    while n != layers and (layers is not None or quiet < len(masks)):
        mask, (starts, queries) = masks[n % len(masks)], readers[n % len(masks)]
        handed_on = torch.cat([*recent])  # of k and j, as the number k L + j
        k, j = handed_on // L, handed_on % L
        many = starts[k + 1] - starts[k]
        if int(many.sum()) * DENSE > L**3:
            told = torch.zeros(L * L, dtype=torch.bool).index_fill_(0, handed_on, True)
            heard = spread(mask, told.view(L, L)).view(-1).nonzero().flatten()
        else:
            ends = many.cumsum(0)
            nth = torch.arange(int(many.sum())) - (ends - many).repeat_interleave(many)
            heard = queries[starts[k].repeat_interleave(many) + nth] * L
            heard = heard + j.repeat_interleave(many)
        fresh = heard[flat[heard] < 0].unique()
        flat[fresh] = n + 1
        quiet = 0 if len(fresh) else quiet + 1
        recent.append(fresh)
        n += 1
    return hops, n


DENSE = 512
"""One number of a list costs as much time as so many of a product of matrices."""


def _readers(mask: Bool[Tensor, "L L"]) -> tuple[Int[Tensor, " L+1"], Int[Tensor, " pairs"]]:
    """(starts, queries): the queries of which k is a key are queries[starts[k]:starts[k + 1]]."""
    keys, queries = mask.T.nonzero(as_tuple=True)
    many = torch.bincount(keys, minlength=len(mask))
    return torch.nn.functional.pad(many.cumsum(0), (1, 0)), queries


class _Layers(Sequence[Tensor]):
    """Who has heard of whom after each of `many` layers, L × L truth values that are made of the
    hops when they are asked."""

    def __init__(self, hops: Int[Tensor, "L L"], many: int) -> None:
        self.hops, self.many = hops, many

    def __len__(self) -> int:
        return self.many

    @overload
    def __getitem__(self, n: int) -> Tensor: ...

    @overload
    def __getitem__(self, n: slice) -> list[Tensor]: ...

    def __getitem__(self, n: int | slice) -> Tensor | list[Tensor]:
        if isinstance(n, slice):
            return [self[m] for m in range(self.many)[n]]
        return (self.hops >= 0) & (self.hops <= range(self.many)[n] + 1)


def influence(patterns: Sequence[HasMask], L: int, layers: int) -> Float[Tensor, "L L"]:
    """How much of position j is in position i after `layers` layers of uniform attention with
    residuals: the product of ½ (I + D⁻¹ M) over the layers. Rows sum to 1; a row of M without
    keys passes its residual on alone."""
    masks = _masks(patterns, L)
    share = torch.eye(L, dtype=torch.float64)
    for n in range(_arguments.integer("layers", layers, 0)):
        mask = masks[n % len(masks)].double()
        keys = mask.sum(-1, keepdim=True)
        mixed = torch.where(keys > 0, (mask / keys.clamp(min=1)) @ share, share)
        share = (share + mixed) / 2
    return share
