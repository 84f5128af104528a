"""The inverse of our formulas: which family, with which numbers, makes this mask or this bias?

The numbers are read off the mask (where its rows change), every family is tried with them, alone
and as a union of two, with and without "no key after the query". What is returned makes exactly
the given mask; at one length several families may, and the first with the fewest numbers is named.

>>> from tfviz import patterns
>>> family_of_mask(patterns.sliding_window(lookback=4).mask(32))
sliding_window(lookback=4)
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz.basics.lm_objectives import prefix_lm
from tfviz.longer_context.alibi import ramp
from tfviz.patterns import FAMILIES, LENGTH, Family, Pattern, causal, full
from tfviz.patterns.family import Leaf
from tfviz.patterns.pattern import Combined
from tfviz.position.t5_relative_bias import bucket
from tfviz.priors.gaussian_transformer import beside

__all__ = ["family_of_bias", "family_of_mask"]

MOST = 2
"""Families with more numbers than these are not tried: images, and those that draw at random."""

SEVERAL = 32
"""How many values of each number are tried where a family has two."""

LARGEST = 4096
"""Up to this length the whole mask is compared."""


def families() -> list[Family]:
    """Those that are tried, the fewest numbers first."""
    tried = [f for f in (*FAMILIES.values(), prefix_lm) if len(f.domains) <= MOST]
    tried = [f for f in tried if "seed" not in f.domains]
    tried = [f for f in tried if not any(d.is_list for d in f.domains.values())]
    return sorted(tried, key=lambda f: len(f.domains))


def family_of_mask(bits: Bool[Tensor, "L L"], unions: bool = True) -> Pattern | None:
    """The pattern of the library that makes exactly this mask, None if none was found: a family
    alone, with or without the future; the opposite of one; or, with `unions`, two together.

    Raises ValueError for masks longer than 4096.
    """
    L = len(bits)
    if L > LARGEST:
        raise ValueError(f"bits is {L} × {L}; give at most {LARGEST}, a corner of the mask")
    if not bool(bits.any()):
        return ~full()
    rows = _rows(L)
    no_future = not bool(bits.triu(1).any())
    within = torch.arange(L) <= rows[:, None] if no_future else torch.tensor(True)
    wanted = bits[rows]
    past: list[Made] = []
    opposite: list[Made] = []
    beyond: list[Made] = []
    inside: list[tuple[Made, Tensor]] = []
    for family, values, found in _candidates(bits, rows):
        cut = found & within
        equal = (found == wanted).flatten(1)
        for n in equal.all(1).nonzero().flatten().tolist():
            if one := _exact(_pattern((family, values[n]), L), bits):
                return one
        same = (cut == wanted).flatten(1).all(1)
        past += [(family, values[n]) for n in same.nonzero().flatten().tolist()]
        none = ~equal.any(1)
        opposite += [(family, values[n]) for n in none.nonzero().flatten().tolist()]
        if no_future:
            rest = ((~found & within) == wanted).flatten(1).all(1)
            beyond += [(family, values[n]) for n in rest.nonzero().flatten().tolist()]
        if not unions:
            continue
        fits = ~(cut & ~wanted).flatten(1).any(1) & cut.flatten(1).any(1) & ~same
        for n in fits.nonzero().flatten().tolist():
            inside.append(((family, values[n]), cut[n]))
    shapes = (
        (past, lambda pattern: pattern & causal()),
        (opposite, lambda pattern: ~pattern),
        (beyond, lambda pattern: ~pattern & causal()),
    )
    for every, shaped in shapes:
        for made in every:
            pattern = _pattern(made, L)
            if pattern and (one := _exact(shaped(pattern), bits)):
                return one
    return _union(inside, wanted, bits, no_future)


Made = tuple[Family, tuple[int, ...]]
"""A family, and numbers for its parameters."""


def _pattern(made: Made, L: int) -> Pattern | None:
    family, values = made
    try:
        pattern = family(*values)
        pattern.check_length(L)
    except ValueError:  # a number out of its range, for this length or these others
        return None
    return pattern


def _exact(pattern: Pattern | None, bits: Tensor) -> Pattern | None:
    """The pattern if it makes exactly this mask."""
    same = pattern is not None and bool((pattern.mask(len(bits)) == bits).all())
    return pattern if same else None


def _union(
    inside: list[tuple[Made, Tensor]], wanted: Tensor, bits: Tensor, no_future: bool
) -> Pattern | None:
    """Two patterns inside of the mask that fill it together. The fewest numbers first."""
    sizes = torch.tensor([int(cut.sum()) for _, cut in inside])
    order = sizes.argsort(descending=True, stable=True)[: 8 * SEVERAL].tolist()
    if not order:
        return None
    cuts = torch.stack([inside[n][1] for n in order]).flatten(1)
    missing = (~cuts & wanted.flatten()).float()
    both = (missing @ missing.T).triu(1) + torch.ones(len(cuts), len(cuts)).tril()
    for first, second in (both == 0).nonzero().tolist():  # nothing that both of them miss
        parts = [_pattern(inside[order[n]][0], len(bits)) for n in (first, second)]
        if parts[0] is None or parts[1] is None:
            continue
        whole = parts[0] | parts[1]
        for one in (whole, whole & causal()) if no_future else (whole,):
            if bool((one.mask(len(bits)) == bits).all()):
                return one
    return None


def _rows(L: int) -> Tensor:
    """The rows that are looked at first: all of a short mask, else some from the first to the
    last."""
    return torch.arange(L) if L <= 16 else torch.linspace(0, L - 1, 16).round().long().unique()


def _numbers(bits: Tensor) -> list[int]:
    """Numbers that occur in the mask: where a row changes, how far that is from the query, how far
    changes stand apart. The most frequent first."""
    L = len(bits)
    seen: Counter[int] = Counter()
    for row in sorted({0, L // 3, L // 2, 2 * L // 3, L - 1}):
        changes = (bits[row, 1:] != bits[row, :-1]).nonzero().flatten() + 1
        places = changes.tolist()
        for place in (*places[:32], *places[-32:]):
            seen.update({place, abs(row - place), abs(row - place + 1)})
        gaps = (changes[1:] - changes[:-1]).tolist()
        seen.update({*gaps, *(a + b for a, b in itertools.pairwise(gaps))})
    same = (bits[1:] == bits[:-1]).all(1)
    steps = ((~same).nonzero().flatten() + 1).tolist()  # where a row differs from the one above
    seen.update({*steps[:32], *(b - a for a, b in itertools.pairwise(steps[:64]))})
    common = [n for n, _ in seen.most_common() if n <= L]
    return list(dict.fromkeys([*range(min(9, L)), *common[:96]]))


def _candidates(
    bits: Tensor, rows: Tensor
) -> Iterator[tuple[Family, list[tuple[int, ...]], Tensor]]:
    """A family, many numbers for it, and the rows that each of them makes: evaluated at once."""
    L, numbers = len(bits), _numbers(bits)
    i, j = rows[None, :, None], torch.arange(L)[None, None, :]
    at_once = max(1, 2**22 // (len(rows) * L))
    for family in families():
        most = len(numbers) if len(family.domains) < MOST else SEVERAL
        values = [
            [n for n in numbers if n >= domain.low][:most] for domain in family.domains.values()
        ]
        every = list(itertools.product(*values))
        for start in range(0, len(every), at_once):
            some = every[start : start + at_once]
            columns = torch.tensor(some).reshape(len(some), -1).T[:, :, None, None]
            given: dict[str, Any] = dict(zip(family.domains, columns, strict=True))
            if LENGTH in family.formula.parameters:
                given[LENGTH] = L
            yield family, some, family.function(i, j, **given).expand(len(some), len(rows), L)


# --- formulas with large numbers -----------------------------------------------------------------

SMALL = (
    ((2, 9, 5, 3, 7, 4), (3, 11, 4, 7, 2, 5)),
    ((9, 2, 4, 7, 3, 5), (11, 3, 7, 2, 5, 4)),
)
"""Numbers for a formula, in place of its own, at which it is compared with the families: twice,
with the first below the second and above it."""

COMPARED = 48
"""The length at which it is."""


def family_of_formula(made: Callable[..., Pattern], numbers: Mapping[str, int]) -> Pattern | None:
    """The pattern of the library that a formula is, whatever its numbers: found with small numbers
    in their place, twice, and compared with the formula at its own. None if none was found.

    made: the pattern for numbers by name.
    """
    if len(numbers) > len(SMALL[0][0]):
        return None
    tried = (_named(made, numbers, rows) for rows in SMALL)
    return next((one for one in tried if one is not None), None)


def _named(
    made: Callable[..., Pattern], numbers: Mapping[str, int], rows: tuple[tuple[int, ...], ...]
) -> Pattern | None:
    found = []
    for row in rows:
        small = dict(zip(numbers, row, strict=False))
        try:
            one = family_of_mask(made(**small).mask(COMPARED), unions=False)
        except ValueError:
            return None
        if one is None:
            return None
        found.append((small, one))
    (first, one), (second, other) = found
    a, b = _leaf(one), _leaf(other)
    if a is None or b is None or a.family is not b.family:
        return None
    if _with_leaf(one, a) != _with_leaf(other, a):  # of another shape
        return None
    values: dict[str, int] = {}
    for name in a.family.domains:
        meant = _number(name, [(first, a.values), (second, b.values)], numbers)
        if meant is None:
            return None
        values[name] = meant
    try:
        whole = _with_leaf(one, a.family(**values))
        L = min(LARGEST, max(96, 2 * max(numbers.values(), default=0) + 8))
        some = torch.linspace(0, L - 1, 64).round().long().unique()
        same = bool((whole.rows(some, L) == made(**numbers).rows(some, L)).all())
    except ValueError:
        return None
    return whole if same else None


def _leaf(pattern: Pattern) -> Leaf | None:
    """The family with its numbers of which `family_of_mask` made a pattern."""
    while pattern.parts:
        pattern = pattern.parts[0]
    return pattern if isinstance(pattern, Leaf) else None


def _with_leaf(pattern: Pattern, leaf: Pattern) -> Pattern:
    """The same with another one in its place."""
    if not isinstance(pattern, Combined):
        return leaf
    first, *others = pattern.parts
    return pattern.with_parts((_with_leaf(first, leaf), *others))


def _number(
    name: str, cases: list[tuple[dict[str, int], dict[str, int]]], numbers: Mapping[str, int]
) -> int | None:
    """What a family's number is, said by one of the formula's: the same, one more or less, or a
    whole part of it; or the same in both cases."""
    if len({made[name] for _, made in cases}) == 1:
        return cases[0][1][name]
    for own in numbers:
        for more in (0, -1, 1):
            if all(made[name] == small[own] + more for small, made in cases):
                return numbers[own] + more
    for own, by in itertools.permutations(numbers, 2):
        if all(made[name] == small[own] // small[by] for small, made in cases):
            return numbers[own] // max(1, numbers[by])
    return None


# --- biases --------------------------------------------------------------------------------------


def family_of_bias(
    values: Float[Tensor, "h L L"], allowed: Bool[Tensor, "h L L"]
) -> tuple[str, Any, dict[str, list[float]]] | None:
    """(name, formula of i and j, its numbers for each head) that gives these values wherever they
    are allowed, as precisely as their type is; None if no formula of the library does.

    ALiBi's −m |i − j|, the same without the mask of the future, m (j − i), as BLOOM adds it, m j,
    and the Gaussian Transformer's −|w (i − j)² + b| are known.
    """
    L = values.shape[-1]
    near = closeness(values.dtype)
    i, j = torch.arange(L)[:, None], torch.arange(L)
    apart, key = (i - j).abs().double(), j.double().expand(L, L)
    known: list[tuple[str, Callable[..., Any], Callable[..., dict[str, float] | None], Tensor]]
    known = [
        ("alibi", ramp, _slope, apart),
        ("alibi with its sign", by_sign, _rise, (j - i).double()),
        ("alibi by key", by_key, _rise, key),
        ("gaussian_transformer", beside, _bell, apart),
    ]
    for name, formula, fitted, along in known:
        numbers = [fitted(x.double(), along, ok) for x, ok in zip(values, allowed, strict=True)]
        if any(n is None for n in numbers):
            continue
        by_name = {k: [float(n[k]) for n in numbers if n] for k in numbers[0] or {}}
        for h, (x, ok) in enumerate(zip(values, allowed, strict=True)):
            made = formula(i, j, **{k: v[h] for k, v in by_name.items()}).double().expand(L, L)
            given = x.double()[ok]
            small = near * min(1.0, float(given.abs().max())) if len(given) else near
            if not torch.allclose(made[ok], given, rtol=near, atol=small):
                break
        else:
            return name, formula, by_name
    return None


def closeness(dtype: torch.dtype) -> float:
    """How far a number of this type may be from what it was computed from: two roundings of a
    half-precision number, 1e-4 of all others."""
    return max(1e-4, 2 * torch.finfo(dtype).eps)


def by_sign(i: Any, j: Any, *, m: float) -> Any:
    """ALiBi as it is where the future is masked elsewhere: more than 0 for keys after the query."""
    return m * (j - i)


def by_key(i: Any, j: Any, *, m: float) -> Any:
    """ALiBi as BLOOM adds it: more for later keys. It differs from −m (i − j) by m i, which is the
    same for all keys of a query, so that the softmax is the same."""
    return m * j


STEEPEST = 1000
"""From this slope on, the next key has no weight: a mask, and no ramp."""


def _slope(x: Tensor, apart: Tensor, ok: Tensor) -> dict[str, float] | None:
    rise = _rise(x, apart, ok)
    return None if rise is None else {"m": -rise["m"]}


def _rise(x: Tensor, along: Tensor, ok: Tensor) -> dict[str, float] | None:
    """m of m · along: the mean, or what the smallest step says, which rounding met once."""
    far = ok & (along != 0)
    if not bool(far.any()):
        return None
    steps, rises = along[far], x[far] / along[far]
    first = rises[steps.abs() == steps.abs().min()][0]
    m = min(rises.mean(), first, key=lambda m: float((m * steps - x[far]).abs().max()))
    return {"m": float(m)} if abs(float(m)) < STEEPEST else None


def _bell(x: Tensor, apart: Tensor, ok: Tensor) -> dict[str, float] | None:
    """The straight line in (i − j)² through the larger distances, where w (i − j)² outweighs b."""
    distances = apart[ok].unique()
    if len(distances) < 4:
        return None
    far = ok & (apart >= distances[len(distances) // 2])
    square, loss = apart[far] ** 2, -x[far]
    centred = square - square.mean()
    w = float((centred * loss).sum() / (centred**2).sum())
    b = float(loss.mean()) - w * float(square.mean())
    return {"w": w, "b": b} if abs(w) * float(square.max()) > 1e-6 * abs(b) else None


def by_distance(
    values: Float[Tensor, "h L L"], allowed: Bool[Tensor, "h L L"]
) -> Float[Tensor, "h distances"] | None:
    """One number for each distance i − j from −(L − 1) to L − 1, 0 where none is allowed; None if
    the values are no matter of the distance alone."""
    L, near = values.shape[-1], closeness(values.dtype)
    numbers = torch.zeros(len(values), 2 * L - 1)
    for h, (x, ok) in enumerate(zip(values, allowed, strict=True)):
        for distance in range(1 - L, L):
            line, fine = x.diagonal(-distance), ok.diagonal(-distance)
            if bool(fine.any()):
                numbers[h, distance + L - 1] = line[fine][0]
                if not torch.allclose(line[fine], line[fine][0], rtol=near, atol=near / 10):
                    return None
    return numbers


def shares_buckets(numbers: Float[Tensor, "h distances"]) -> bool:
    """Whether distances of one bucket of T5 (32 of them, up to 128) have one number; only asked
    where a bucket holds several distances."""
    L = (numbers.shape[-1] + 1) // 2
    if L < 32:
        return False
    for both in (True, False):
        n = torch.arange(1 - L if both else 0, L)
        groups = bucket(n, bidirectional=both)
        rows = numbers if both else numbers[:, L - 1 :]
        members = [rows[:, groups == g] for g in groups.unique()]
        if all(torch.allclose(x, x[:, :1].expand_as(x)) for x in members):
            return True
    return False
