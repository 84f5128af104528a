"""Where an axis has its numbers: three or more on a logarithmic one, whole ones for counts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from tfviz.plots.canvas import SMALL, text_width

FEWEST = 3
DECADES: tuple[tuple[float, ...], ...] = ((1, 2, 5), (1, 3), (1,))
FINER: tuple[tuple[float, ...], ...] = ((1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8))


def log_ticks(low: float, high: float, most: int, base: int = 10) -> list[float]:
    """Numbers of a logarithmic axis from low to high: at least 3, at most `most` where 3 allow it.

    Those of base 10 are 1, 2, 5, …, or rarer or finer ones where the axis is long or short; those
    of base 2 are powers.
    """
    choices = _powers(low, high) if base == 2 else _decimals(low, high)
    enough = [ticks for ticks in choices if len(ticks) >= FEWEST]
    for ticks in enough:
        if len(ticks) <= max(most, FEWEST):
            return ticks
    if enough and high > 100 * low:
        return min(enough, key=len)
    # part of a decade: the even numbers of a linear axis, which are enough there
    return [v for v in even_ticks(low, high, most) if v > 0]


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers of a linear axis from low to high, at least 3, at most `most` if 3 allow it."""
    even = MaxNLocator(max(most, FEWEST), min_n_ticks=FEWEST).tick_values(low, high)
    return [float(v) for v in even if low <= v <= high]


def _decimals(low: float, high: float) -> list[list[float]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    tables = [(subs, 1) for subs in (*DECADES, *FINER)] + [
        ((1.0,), every)
        for every in range(2, max(5, last - first + 1))  # of many decades, few
    ]
    return [
        [
            value
            for power in range(first, last + 1)
            if power % every == 0
            for sub in subs
            if low * (1 - 1e-9) <= (value := sub * 10.0**power) <= high * (1 + 1e-9)
        ]
        for subs, every in tables
    ]


def _powers(low: float, high: float) -> list[list[float]]:
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    return [
        [2.0**k for k in range(first, last + 1) if k % every == 0]
        for every in (1, 2, 3, 5, 10, *range(11, last - first + 1))
    ]


def thinned(ticks: Sequence[float], most: int) -> list[float]:
    """Every second or third of the given ticks, with the last one."""
    every = max(1, math.ceil(len(ticks) / max(most, 2)))
    return list(ticks)[::-1][::every][::-1]


def whole(values: Any) -> bool:
    """Are these counts? Numbers without anything behind the point, over more than one step."""
    numbers = np.asarray(values, dtype=float).ravel()
    return bool((numbers == numbers.round()).all()) and float(np.ptp(numbers)) > 1


def number_axis(
    axis: Any,
    *,
    log: bool,
    most: int,
    word: Callable[[float], str],
    base: int = 10,
    integers: bool = False,
    ticks: Sequence[float] | None = None,
) -> None:
    """Give a matplotlib axis its numbers, after its limits are known; its kind becomes a class."""
    low, high = sorted(axis.get_view_interval())
    kind = " log" if log else " integer" if integers else ""
    axis.set_gid(f"tfviz-{axis.axis_name}axis{kind}")
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: word(v)))
    if ticks is not None:
        axis.set_major_locator(FixedLocator(thinned(ticks, most)))
    elif log:
        ticks = log_ticks(low, high, most, base)
        axis.set_major_locator(FixedLocator(ticks))
    else:
        axis.set_major_locator(MaxNLocator(most, integer=integers, steps=[1, 2, 2.5, 5, 10]))


def room_for(words: Sequence[str], width: float, apart: float = 12) -> int:
    """How many such words stand beside each other in this width."""
    return max(2, int((width + apart) / (max(text_width(w, SMALL) for w in words) + apart)))
