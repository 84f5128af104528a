"""Masks that are numbers, and masks the other way round: what softmax makes of numbers that are
added to the scores, and what the two conventions of torch make of True.

>>> left_out(torch.tensor([[[0.0, -1e9], [-3.0, 0.0]]])).tolist()
[[[False, True], [False, False]]]
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz._arguments import only_zeros_and_ones
from tfviz.explained.recognise import family_of_mask
from tfviz.patterns import Pattern
from tfviz.patterns.pattern import Combined

__all__ = ["GAP", "in_words", "left_out", "nearly_a_mask", "only_zeros_and_ones"]

GAP = 800
"""So far below another number of its row, a number has no weight: e^−800 is 0 in 64 bits too, and
in 32 bits it still is if the scores themselves differ by hundreds."""

CONVENTION = (
    "True means that a query may attend to a key, here and in F.scaled_dot_product_attention; in "
    "nn.MultiheadAttention and nn.Transformer True means the opposite, that it must not."
)

REMEDY = "give ~mask (1 − mask where it is made of numbers)"


def left_out(x: Float[Tensor, "h L L"]) -> Bool[Tensor, "h L L"]:
    """The pairs that get no weight: −inf, and all numbers from the first fall of `GAP` or more on,
    if it leads below −`GAP` and is by far the greatest of those before it. A slope that falls step
    by step, as ALiBi over thousands of tokens does, has no such fall.

    A row of nothing but low numbers is left out where they are as low as in other rows. Alone they
    say nothing: softmax is the same without what all keys of a query have in common.
    """
    never = x.isneginf()
    finite = x[~never]
    if not len(finite) or float(finite.min()) > -GAP:
        return never
    levels = torch.cat([one[~one.isneginf()].double().unique() for one in x]).unique().flip(0)
    falls = levels[:-1] - levels[1:]
    first = (falls >= GAP) & (falls >= 3 * (levels[0] - levels[:-1])) & (levels[1:] <= -GAP)
    if not bool(first.any()):
        return never
    low = x.double() <= levels[1:][first][0]
    mixed = low.any(-1, keepdim=True) & ~low.all(-1, keepdim=True)
    high = x.double().masked_fill(~(low & mixed) | never, -math.inf).max()
    as_low = x.amax(-1, keepdim=True).double() <= high * (1 - 1e-3)
    return never | (low & (mixed | as_low))


def nearly_a_mask(values: Float[Tensor, " n"]) -> str:
    """A sentence about numbers that are all alike, or two of which the lower one looks like a mask
    and is none."""
    levels = values.double().unique().tolist()
    if len(levels) == 1:
        return f" They are all {levels[0]:g}, so that the weights are the same without them."
    if len(levels) != 2 or levels[1] - levels[0] < 10:
        return ""
    low, high = levels
    if high - low >= GAP:
        return (
            f" There are only {high:g} and {low:g}: where a query has both, softmax leaves nothing "
            f"of the lower. For a mask give −inf in the place of {low:g}."
        )
    share = math.exp(max(low - high, -700))
    return (
        f" There are only {high:g} and {low:g}, which is no mask: softmax leaves {share:.1g} of a "
        f"weight. If it is meant as one, give −inf in the place of {low:g}."
    )


def opposite(found: Pattern | None) -> str:
    """A sentence about a pattern that is the opposite of another one, nothing of all others."""
    if not isinstance(found, Combined) or found.op != "not":
        return ""
    named = found.parts[0]
    return f" It is the opposite of {named!r}. {CONVENTION} If it was made for those, {REMEDY}."


def in_words(bits: Bool[Tensor, "L L"], found: Pattern | None) -> str:
    """What is to be said of a mask besides its name: that it is the opposite of something, or that
    it is about padding."""
    L = len(bits)
    if found is not None:
        return f"{_without(bits)}{opposite(found).strip()}".strip()
    seen = _run(bits.any(0))
    if bool((bits == bits[0]).all()) and seen:
        return (
            f"All queries see the same keys, {_span(seen)} of {L}. {CONVENTION} In a "
            f"key_padding_mask of those True is padding: {REMEDY}."
        )
    if (inner := _inner(bits)) is not None:
        return (
            f"Among the positions {_span(seen)} it is {inner!r}; no query sees another key, as if "
            "they were padding."
        )
    if (inner := _inner(~bits)) is not None:
        return (
            f"It is the opposite of {inner!r} among the positions {_span(_run((~bits).any(0)))}. "
            f"{_without(bits)}{CONVENTION} If it was made for those, {REMEDY}."
        )
    return ""


def _run(seen: Bool[Tensor, " L"]) -> tuple[int, int] | None:
    """(first, last) of the keys that any query sees, if they stand side by side."""
    places = seen.nonzero().flatten().tolist()
    whole = bool(places) and places[-1] - places[0] + 1 == len(places)
    return (places[0], places[-1]) if whole else None


def _inner(bits: Bool[Tensor, "L L"]) -> Pattern | None:
    """What the positions are among each other that any query sees; None if all are seen."""
    run = _run(bits.any(0))
    if run is None or run == (0, len(bits) - 1):
        return None
    inside = slice(run[0], run[1] + 1)
    return family_of_mask(bits[inside, inside], unions=False)


def _span(run: tuple[int, int] | None) -> str:
    first, last = run or (0, 0)
    return str(first) if first == last else f"{first} to {last}"


def _without(bits: Bool[Tensor, "L L"]) -> str:
    rows = (~bits.any(1)).nonzero().flatten().tolist()
    return f"Without a key: {rows_named(rows)}. " if rows else ""


def rows_named(rows: list[int]) -> str:
    """The rows in words: row 7, rows 0, 1, 2 … 9."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    return "rows " + ", ".join(map(str, rows[:3])) + (f" … {rows[-1]}" if len(rows) > 3 else "")
