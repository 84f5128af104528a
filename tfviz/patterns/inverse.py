"""The other way round: from a budget to the patterns that keep it.

`search` tries every pattern of SPACE alone, two of them together in every layer, and two in turn,
and counts what each costs and how far it reaches. `impossible` says which budgets no pattern at all
can keep, in the library or not.

>>> found = search(16, keys=4, hops=2, causal=True, block=4).best()
>>> found.stack, found.numbers
((sliding_window(lookback=3), column(stride=4)), (4, 2, 10, 0))
>>> impossible(64, keys=3, hops=2)
'After 2 layers a token has heard of at most (3 + 1)^2 = 16 of 64 tokens.'
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import le
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfviz import _arguments
from tfviz.patterns.families import causal as causal_
from tfviz.patterns.family import FAMILIES
from tfviz.patterns.pattern import Pattern
from tfviz.patterns.reach import spread

SPACE: dict[str, list[tuple[str, dict[str, str | list[int]]]]] = {
    "open": [
        ("band", {"radius": "sizes"}),
        ("dilated", {"radius": "sizes", "dilation": [2, 4, 8]}),
        ("dilated", {"radius": "rest", "dilation": [2, 4, 8]}),
        ("block_local", {"block": "sizes"}),
        ("block_window", {"block": "block", "window": [1]}),
        ("global_tokens", {"count": [1, 2]}),
        ("random_keys", {"count": [2, 4, 8], "seed": [0]}),
        ("random_blocks", {"block": "block", "count": [1, 2], "seed": [0]}),
    ],
    "causal": [
        ("sliding_window", {"lookback": "sizes"}),
        ("column", {"stride": "sizes"}),
        ("own_block", {"block": "sizes"}),
        ("summary_columns", {"block": "sizes", "summary": [1, 2]}),
        ("image_1d", {"block": "sizes", "memory": "block"}),
        ("global_tokens", {"count": [1, 2]}),
        ("random_keys", {"count": [2, 4, 8], "seed": [0]}),
    ],
}
"""What is tried: families and the values of their parameters. `sizes` are 1, 2, 3, 4, 6, 8, 12, …
below L; `block` is the block size of the budget, `rest` as many steps of the dilation as
there are."""

PREFER = ("keys", "hops", "blocks")
RANDOM = ("random_keys", "random_blocks")
CHUNK = 512  # stacks that are counted at once


@dataclass(frozen=True)
class Found:
    """One pattern, or two in turn, and what they cost; each number is that of the dearer layer.

    keys is the most in a row, hops the largest number of layers between two tokens, blocks are
    those with an allowed pair, random the pairs that only a random part allows.
    """

    stack: tuple[Pattern, ...]
    keys: int
    hops: int
    blocks: int
    random: int

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.keys, self.hops, self.blocks, self.random


@dataclass(frozen=True)
class Search:
    """What was found: every combination of numbers once, with the first pattern that has it."""

    L: int
    causal: bool
    block: int
    tried: int
    found: tuple[Found, ...]

    @cached_property
    def front(self) -> tuple[Found, ...]:
        """Those that no other beats in one number without losing in another (Pareto)."""
        front: list[Found] = []
        for one in self.found:  # in order: what beats another stands before it
            if not any(all(map(le, g.numbers, one.numbers)) for g in front):
                front.append(one)
        return tuple(front)

    def within(self, keys: int, hops: int) -> Search:
        """Only those that keep this budget."""
        kept = tuple(f for f in self.found if f.keys <= keys and f.hops <= hops)
        return replace(self, found=kept)

    def best(self, prefer: str = "keys") -> Found | None:
        """The one with the fewest of "keys", "hops" or "blocks", then of the other numbers in their
        order; None if nothing was found. Raises ValueError for another word."""
        if prefer not in PREFER:
            raise ValueError(f"prefer = {prefer!r}; choose one of {', '.join(PREFER)}")
        return min(self.found, key=lambda f: (getattr(f, prefer), *f.numbers), default=None)


def search(
    L: int,
    keys: int | None = None,
    hops: int = 8,
    *,
    causal: bool = False,
    block: int = 16,
) -> Search:
    """The library's patterns for L tokens with at most `keys` keys in a row in which every token
    (every earlier one if `causal`) is heard after at most `hops` layers; blocks are `block` wide.

    Without `keys` a row may have all. Every budget is searched once. Raises ValueError for sizes
    below 1, for L above 512 and blocks longer than L.
    """
    L = _arguments.integer("L", L, 2, 512)
    block = _arguments.integer("block", block, 1, L)
    keys = L if keys is None else _arguments.integer("keys", keys, 1)
    hops = _arguments.integer("hops", hops, 1)
    return _everything(L, bool(causal), block, min(keys, L), hops)


def impossible(L: int, keys: int, hops: int) -> str | None:
    """Why no pattern whatever keeps this budget, or None if counting does not forbid it.

    A layer adds to what a token knows, what `keys` other tokens know: so after each layer it has
    heard of at most keys + 1 times as many. Raises ValueError for sizes below 1.
    """
    L = _arguments.integer("L", L, 1)
    keys, hops = _arguments.integer("keys", keys, 1), _arguments.integer("hops", hops, 1)
    most = (keys + 1) ** hops
    if most >= L:
        return None
    layers = "1 layer" if hops == 1 else f"{hops} layers"
    return (
        f"After {layers} a token has heard of at most ({keys} + 1)^{hops} = {most} of {L} tokens."
    )


def least_hops(L: int, keys: int, causal: bool = False) -> int | None:
    """The smallest diameter of any pattern whatever with at most `keys` keys in a row, the same in
    every layer: all of them are tried. None if none connects all tokens.

    Raises ValueError if there are more than a million of them: they are for L up to 5 or so.
    """
    L, keys = _arguments.integer("L", L, 1), _arguments.integer("keys", keys, 1)
    rows = []
    for i in range(L):
        every = [j for j in range(i + 1 if causal else L) if j != i]  # the residual is the own key
        chosen = list(itertools.combinations(every, min(keys, len(every))))
        rows.append(torch.zeros(len(chosen), L, dtype=torch.bool))
        for n, some in enumerate(chosen):
            rows[-1][n, [i, *some]] = True
    many = 1
    for row in rows:
        many *= len(row)
    if many > 1_000_000:
        raise ValueError(f"L = {L} with keys = {keys} has {many} patterns; choose smaller numbers")
    which = torch.cartesian_prod(*(torch.arange(len(row)) for row in rows)).reshape(many, L)
    masks = torch.stack([row[n] for row, n in zip(rows, which.T, strict=True)], 1).float()
    wanted = torch.ones(L, L).tril() if causal else torch.ones(L, L)
    known = torch.eye(L).expand_as(masks)
    for hops in range(L):
        if ((known > 0) | (wanted == 0)).flatten(1).all(1).any():
            return hops
        known = (masks @ known > 0).float()
    return None


# --- what is tried --------------------------------------------------------------------------------


def sizes(L: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … below L."""
    return [n for n in range(1, L) if n == 1 or n & (n - 1) == 0 or (n % 3 == 0 and _power(n // 3))]


def _power(n: int) -> bool:
    return n & (n - 1) == 0


def singles(L: int, causal: bool, block: int) -> list[Pattern]:
    """The patterns of SPACE for this length, without those that L does not allow."""
    made = []
    for name, choices in SPACE["causal" if causal else "open"]:
        known: dict[Any, list[int]] = {"sizes": sizes(L), "block": [block], "rest": [0]}
        values = [known[v] if isinstance(v, str) else v for v in choices.values()]
        for chosen in itertools.product(*values):
            parameters: dict[str, Any] = dict(zip(choices, chosen, strict=True))
            if name == "dilated":
                parameters["radius"] = parameters["radius"] or (L - 1) // parameters["dilation"]
                if parameters["radius"] * parameters["dilation"] >= L:
                    continue
            try:
                pattern = FAMILIES[name](**parameters)
                pattern.check_length(L)
            except ValueError:
                continue
            made.append(pattern)
    return made


@cache
def _everything(L: int, causal: bool, block: int, keys: int, hops: int) -> Search:
    alone = singles(L, causal, block)
    bits = torch.stack([p.mask(L).tril() if causal else p.mask(L) for p in alone])
    sure = bits & torch.tensor([p.name not in RANDOM for p in alone])[:, None, None]
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(len(alone)), 2)
        if alone[a].name != alone[b].name
    ]
    # the layers, each with its parts: one pattern, two together, two in turn
    tried: list[tuple[tuple[int, ...], ...]] = [((a,),) for a in range(len(alone))]
    tried += [((a, b),) for a, b in pairs]
    tried += [x for a, b in pairs for x in (((a,), (b,)), ((b,), (a,)))]
    found: dict[tuple[int, ...], Found] = {}
    for start in range(0, len(tried), CHUNK):
        stacks = tried[start : start + CHUNK]
        masks = _masks(stacks, bits)
        most = masks.sum(-1).amax((0, 2))
        fine = most <= keys
        chance = (masks & ~_masks(stacks, sure)).sum((2, 3)).amax(0)
        far = torch.zeros(len(stacks), dtype=torch.long)
        far[fine] = _diameters(masks[:, fine], causal, hops)
        numbers = torch.stack([most, far, _blocks(masks, block), chance], 1).tolist()
        for stack, counts in zip(stacks, numbers, strict=True):
            if counts[1] and tuple(counts) not in found:
                found[tuple(counts)] = Found(
                    tuple(_pattern([alone[a] for a in parts], L, causal) for parts in stack),
                    *counts,
                )
    kept = tuple(sorted(found.values(), key=lambda f: f.numbers))
    return Search(L, causal, block, len(tried), kept)


def _pattern(parts: list[Pattern], L: int, causal: bool) -> Pattern:
    whole = parts[0] if len(parts) == 1 else parts[0] | parts[1]
    return whole & causal_() if causal and bool(whole.mask(L).triu(1).any()) else whole


def _masks(stacks: list[Any], bits: Bool[Tensor, "n L L"]) -> Bool[Tensor, "2 m L L"]:
    """Of the lower and of the upper layer of each stack, which may be the same."""
    parts = torch.tensor([[(s[n % len(s)] * 2)[:2] for s in stacks] for n in (0, 1)])
    return bits[parts[..., 0]] | bits[parts[..., 1]]


def _diameters(masks: Bool[Tensor, "2 m L L"], causal: bool, most: int) -> Int[Tensor, " m"]:
    """Layers until every token is heard, for many stacks at once; 0 if it takes more than most."""
    L = masks.shape[-1]
    wanted = torch.ones(L, L, dtype=torch.bool)
    wanted = wanted.tril() if causal else wanted
    known = torch.eye(L, dtype=torch.bool).expand_as(masks[0])
    found = torch.zeros(len(known), dtype=torch.long)
    for n in range(most):
        known = spread(masks[n % 2], known) | known
        found[(known | ~wanted).flatten(1).all(1) & (found == 0)] = n + 1
        if (found > 0).all():
            break
    return found


def _blocks(masks: Bool[Tensor, "2 m L L"], block: int) -> Int[Tensor, " m"]:
    """How many blocks of the matrix hold an allowed pair, in the dearer layer."""
    short = -masks.shape[-1] % block
    padded = torch.nn.functional.pad(masks, (0, short, 0, short))
    tiles = padded.unflatten(3, (-1, block)).any(4).unflatten(2, (-1, block)).any(3)
    return tiles.sum((2, 3)).amax(0)
