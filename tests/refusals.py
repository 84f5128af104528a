"""What a room refuses, and that it says what is wrong: the argument, its value, the remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any


def refused(says: str, call: Callable[..., object], *given: Any, **named: Any) -> None:
    """The call raises ValueError, and its message has these words; " … " stands for any others."""
    _raised(ValueError, says, call, *given, **named)


def of_no_kind(says: str, call: Callable[..., object], *given: Any, **named: Any) -> None:
    """The same for a TypeError: what was given is no number, no tensor of numbers, no module."""
    _raised(TypeError, says, call, *given, **named)


def ranges(call: Callable[..., object], **limits: tuple[Any, ...]) -> None:
    """`name=(good,)`, `(good, least)` or `(good, least, most)`: the call takes what is good, and
    the ends. What lies beyond them, a Boolean, a text, NaN, infinity unless it is an end, and a
    fraction for a whole number it refuses, with the name and what was given."""
    good = {name: value for name, (value, *_) in limits.items()}
    call(**good)
    for name, (value, *ends) in limits.items():
        whole = isinstance(value, int)
        wrong = [True, "3", math.nan, value + 0.5 if whole else math.inf]
        for end, beyond in zip(ends, (-1, 1), strict=False):
            call(**good | {name: end})
            wrong.append(end + (beyond if whole else beyond / 4))
        if math.inf in ends:
            wrong = [x for x in wrong if x != math.inf]
        for other in wrong:
            refused(f"{name} = {other!r}", call, **good | {name: other})


def _raised(
    error: type[Exception], says: str, call: Callable[..., object], *given: Any, **named: Any
) -> None:
    try:
        call(*given, **named)
    except error as found:
        assert re.search("[;:] ", str(found)), f"{found!r} says not what to do"
        rest = str(found)
        for words in says.split(" … "):
            _, there, rest = rest.partition(words)
            assert there, f"{found!r} does not say {says!r}"
    else:
        raise AssertionError(f"accepted, where {says!r} was due")
