"""Big Bird: window, global and random keys, all in whole blocks.

Zaheer et al. 2020 (arXiv 2007.14062), in the form without extra tokens (ITC): a text of n blocks of
b tokens. Block I of queries has the key blocks

    0 … n − 1                                            I one of the first or last g: global
    {|I − J| ≤ 1} ∪ {first g, last g} ∪ r drawn blocks   else; drawn among all others, once

so that all b queries of a block share their keys, and gathering moves whole blocks. The r blocks
differ from head to head. `patterns.bigbird` is the same picture as a formula, in which a drawn
block may be one that the row has anyway; the code of the paper and this room draw others.

>>> [list(keys) for keys in key_blocks(random_blocks(6, r=1, seed=0)[0])][2:4]
[[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.dense_attention import attention
from tfviz.sub_quadratic import merged
from tfviz.sub_quadratic.merged import Call, Plan, freshened
from tfviz.sub_quadratic.rows import Gathered, Stepped

__all__ = ["bigbird_attention", "bigbird_definition"]

Lists: TypeAlias = tuple[tuple[int, ...], ...]
"""Blocks of keys, for every block of queries."""


def random_blocks(
    n: int, r: int, heads: int = 1, seed: int = 0, g: int = 1
) -> Int[Tensor, "heads n r"]:
    """r blocks for every block of each head, none of them global or next to it; those of global
    blocks mean nothing.

    Raises ValueError if some block has fewer than r others to draw from.
    """
    _arguments.integer("g", g, 0)
    _arguments.integer("n", n, 1)
    dice = torch.Generator().manual_seed(seed)
    I, J = torch.arange(n)[:, None], torch.arange(n)
    others = ((I - J).abs() > 1) & (g <= J) & (n - g > J)
    inner = others[g : n - g]
    _arguments.integer("r", r, 0, int(inner.sum(-1).min()) if len(inner) else 0)
    lots = torch.rand(heads, n, n, generator=dice) + others
    return lots.argsort(-1, descending=True)[..., :r].sort(-1).values


def key_blocks(drawn: Int[Tensor, "n r"], g: int = 1) -> Lists:
    """The key blocks of every block: window, globals, and what was drawn, each once.

    Raises TypeError or ValueError for what are no blocks.
    """
    n = len(_blocks(drawn, 2))
    ends = {*range(min(g, n)), *range(max(0, n - g), n)}
    every = tuple(range(n))
    return tuple(
        every
        if I in ends
        else tuple(sorted({*ends, *every[max(0, I - 1) : I + 2], *drawn[I].tolist()}))
        for I in range(n)
    )


def mask(lists: Lists, block: int) -> Bool[Tensor, "L L"]:
    """Who may read whom, token by token."""
    n = len(lists)
    made = torch.zeros(n, n, dtype=torch.bool)
    for I, keys in enumerate(lists):
        made[I, list(keys)] = True
    return made.repeat_interleave(block, 0).repeat_interleave(block, 1)


@named
def bigbird_definition(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    block: int,
    drawn: Int[Tensor, "#h n r"],
    g: int = 1,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h L L"]]:
    """(out, A) from all L² scores."""
    return attention(Q, K, V, torch.stack([mask(key_blocks(one, g), block) for one in drawn]))


@named
def bigbird_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    block: int,
    drawn: Int[Tensor, "#h n r"],
    g: int = 1,
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L (2g + 3 + r) block · d), with gradients. `drawn`: see `random_blocks`.

    Raises TypeError or ValueError for shapes that do not fit, and unless n blocks make the text.
    """
    _qkv.check(Q, K, V, self_attention=True)
    _blocks(drawn, 3)
    (h, L), n = Q.shape[1:3], drawn.shape[1]
    if n * _arguments.integer("block", block, 1) != L:
        raise ValueError(
            f"{n} blocks of {block} are not L = {L}; pad the text, or draw for {L // block} blocks"
        )
    if len(drawn) not in (1, h):
        raise ValueError(f"drawn is for {len(drawn)} heads, Q has {h}; give one table for each")
    plans = [_plan(tuple(map(tuple, one.tolist())), block, g) for one in drawn]
    if len(plans) == 1:
        q, k, v = (x.flatten(0, 1) for x in (Q, K, V))
        return merged.attend(q, k, v, plans[0]).unflatten(0, Q.shape[:2])
    split = zip(*(x.unbind(1) for x in (Q, K, V)), plans, strict=True)
    return torch.stack([merged.attend(q, k, v, plan) for q, k, v, plan in split], 1)


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # what is kept outlives the mode that it was made in
def _plan(drawn: Lists, block: int, g: int) -> Plan:
    """Far from the ends the three parts have no block in common, and each is met in its own way:
    the window without a copy, the globals by all queries at once, what was drawn by a gather."""
    n, b = len(drawn), block
    lists = key_blocks(torch.tensor(drawn, dtype=torch.long).view(n, -1), g)
    first, end = g + 1, n - g - 1
    calls = []
    if end > first:
        inner = range(first, end)
        rows = Stepped(first * b, end - first, b, b)
        calls = [Call(rows, Stepped((first - 1) * b, end - first, 3 * b, b))]
        if g:
            ends = [*range(g), *range(n - g, n)]
            queries = Stepped(first * b, 1, (end - first) * b)
            calls.append(Call(queries, Gathered(_tokens([ends], b))))
        if drawn[0]:
            found = Gathered(_tokens([drawn[I] for I in inner], b))
            met = [{*range(g), *range(n - g, n), I - 1, I, I + 1} for I in inner]
            new = [_new(drawn[I], known) for I, known in zip(inner, met, strict=True)]
            once = torch.tensor(new).repeat_interleave(b, 1)[:, None]
            calls.append(Call(rows, found, None if once.all() else once))
    for I in {*range(min(first, n)), *range(max(0, end), n)}:  # global, or next to it
        every = len(lists[I]) == n
        keys = Stepped(0, 1, n * b) if every else Gathered(_tokens([lists[I]], b))
        calls.append(Call(Stepped(I * b, 1, b), keys))
    return freshened(calls, n * b)


def _new(drawn: Sequence[int], known: set[int]) -> list[bool]:
    """Which of these blocks the row does not have already: a block counts once."""
    return [J not in known and J not in drawn[:place] for place, J in enumerate(drawn)]


def _blocks(drawn: Int[Tensor, "*h n r"], dim: int) -> Int[Tensor, "*h n r"]:
    n = _arguments.indices("drawn", drawn, dim).shape[-2]
    if drawn.numel() and not 0 <= int(drawn.min()) <= int(drawn.max()) < n:
        raise ValueError(
            f"drawn names block {int(drawn.min())} to {int(drawn.max())}; there are {n}, from 0"
        )
    return drawn


def _tokens(blocks: Sequence[Sequence[int]], block: int) -> Int[Tensor, "groups size"]:
    return (torch.tensor(blocks)[..., None] * block + torch.arange(block)).flatten(1)
