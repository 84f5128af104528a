r"""Any text that a token can be, as a label shows it: one rule for all renderers.

What nobody could see, or what would act instead of being shown, is written as Python writes it in a
string: `\n`, `\x00`, `\u202e`. A space at an end, or beside another one, is written ␣. All else
stays as it is. Two texts that differ never look the same: a backslash that would read as such an
escape is doubled; a line that goes on with a small letter is written `\x0a`, so that `\nu` stays.

>>> print(shown(" a\nB"), shown("\\n"), shown("\u202eabc"), shown("<br>"), shown(r"$\nu_1$"))
␣a\nB \\n \u202eabc <br> $\nu_1$
"""

from __future__ import annotations

import json
import numbers
import re
import unicodedata
from collections.abc import Mapping
from html import escape
from typing import Any, TypeVar

from torch import Tensor

LONGEST = 200
"""Characters of a label as it is shown; a picture of a longer one would be mostly that."""
LONGEST_LINE = 2000
"""Characters of a title or of the name of an axis, which have lines of their own."""

X = TypeVar("X")

_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_READ_AS_ESCAPE = r"[ntr](?![a-z])|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}"
_PIECE = re.compile(rf"(\\*)([^!-~])|(\\+)(?={_READ_AS_ESCAPE})", re.S)
_ILLEGAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_JOINERS = "\u200c\u200d"  # of emoji, and of letters of some scripts
_SHY = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}  # Unicode's kinds of what is not seen
_PLOTLY = re.compile("[&<>$]|^(?:role:|#)")


def hidden(text: str, at: int) -> bool:
    """Whether nobody could see the character there."""
    c = text[at]
    if c == "␣" or unicodedata.category(c) in _SHY:
        between = text[at - 1 : at] and text[at + 1 : at + 2]
        joins = between and all(x > "\x7f" and not hidden(x, 0) for x in (text[at - 1], between))
        return not (c in _JOINERS and joins)
    return ord(c) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(c) <= 0xFDEF  # no characters, says Unicode


def code(c: str) -> str:
    """A character as Python writes the number of it."""
    n = ord(c)
    return f"\\x{n:02x}" if n < 256 else f"\\u{n:04x}" if n < 65536 else f"\\U{n:08x}"


def shown(text: str) -> str:
    """The text as a label shows it (see the module)."""

    def piece(found: re.Match[str]) -> str:
        slashes, c, doubled = found.groups()
        if doubled:
            return str(doubled) * 2
        at = found.end() - 1
        after = text[at + 1 : at + 2]
        if c == " ":
            alone = text[at - 1 : at] not in ("", " ") if at else False
            return slashes + (" " if alone and after not in ("", " ") else "␣")
        if not hidden(text, at):
            return found[0]
        short = _SHORT.get(c, "") if not "a" <= after <= "z" else ""
        return slashes * 2 + (short or code(c))

    return _PIECE.sub(piece, text)


def legal(text: str) -> str:
    """A sentence, such as a caption, with escapes for what no document can hold; lines and spaces
    stay."""
    return _ILLEGAL.sub(lambda found: code(found[0]), text)


def label(argument: str, value: Any, longest: int = LONGEST) -> str:
    """A label as it is shown: of a text, or of a number.

    Raises TypeError for anything else, ValueError for one that is too long to be a label.
    """
    if isinstance(value, Tensor) and value.dim() == 0:
        value = value.item()
    if isinstance(value, numbers.Number):
        value = str(value)
    if not isinstance(value, str):
        remedy = ".decode(errors='backslashreplace')" if isinstance(value, bytes) else "str(…)"
        said = f"{value!r:.80}"
        raise TypeError(f"{argument} = {said} is a {type(value).__name__}; give a text: {remedy}")
    words = shown(value)
    if len(words) > longest:
        raise ValueError(
            f"{argument} = {words[:40]!r}… has {len(words)} characters; a label has at most "
            f"{longest}: shorten it"
        )
    return words


def line(argument: str, value: Any) -> str:
    """A title or the name of an axis, which may be longer; "" for None."""
    return "" if value is None else label(argument, value, LONGEST_LINE)


def labels(argument: str, values: Any, length: int | None = None) -> list[str]:
    """A list of labels, `length` of them if that is given.

    Raises TypeError and ValueError as `label` does, and for another number of labels.
    """
    if isinstance(values, bytes | Mapping | set) or not hasattr(values, "__iter__"):
        raise TypeError(f"{argument} = {values!r:.80} is no list of labels; give a list of texts")
    found = [label(f"{argument}[{n}]", value) for n, value in enumerate(values)]
    if length is not None and len(found) != length:
        raise ValueError(
            f"{argument} has {len(found)} labels for {length} positions; give one for each"
        )
    return found


def named(argument: str, values: Any) -> dict[str, Any]:
    """Name → value with the names as they are shown.

    Raises TypeError for what has no names, ValueError where two of them look the same.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{argument} is a {type(values).__name__}; give a dict of name → value")
    found: dict[str, Any] = {}
    for name, value in values.items():
        words = label(f"a name in {argument}", name)
        if words in found:
            raise ValueError(f"{argument} has two values with the name {words!r}; rename one")
        found[words] = value
    return found


def for_plotly(words: str) -> str:
    """A label for plotly, which reads tags and mathematics, and for our specification, in which a
    colour may stand for a role."""
    return _PLOTLY.sub(
        lambda found: (
            "".join(f"&#{ord(found[0][0])};") + found[0][1:]
            if found[0] not in "&<>"
            else escape(found[0])
        ),
        words,
    )


def json_in_html(x: Any) -> str:
    """JSON for a script in a page: nothing in it can end the script or is no Unicode."""
    text = json.dumps(x, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    text = re.sub("[\ud800-\udfff]", lambda found: code(found[0]), text)
    return text.replace("<", "\\u003c")
