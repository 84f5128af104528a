"""Text in the CSV files that this course writes: to a spreadsheet none of it is a formula."""

from __future__ import annotations

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"  # with one of these a formula begins


def harmless(text: str) -> str:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front.

    Some programs leave out blanks before they look, and some read the wide forms of these signs,
    which East Asian keyboards write, as the signs themselves.
    """
    first = text.lstrip()[:1]
    risky = text.startswith(("\t", "\r", "\n")) or (first and first in FORMULA)
    return f"'{text}" if risky else text
