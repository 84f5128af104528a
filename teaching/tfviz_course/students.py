"""What a student's id may be: checked where it comes in, so that nothing behind has to.

An id becomes the name of folders, a key of the gradebook, and text in pages of the instructor's.
It comes from file names that students choose.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tfviz_course import CourseError

LONGEST = 64
_HAS = f"letters, digits, spaces and the signs . @ - _, at most {LONGEST} in all"
RULE = f"an id has {_HAS}, no dot at its start, and no space at its start or end"


def is_id(name: str) -> bool:
    """Whether `name` can be a student's id: see `RULE`. Letters are those of all scripts."""
    return (
        0 < len(name) <= LONGEST
        and len(name.encode("utf-8", "replace")) <= 200  # it becomes the name of a file
        and name == name.strip()
        and not name.startswith(".")
        and all(sign in " .@-_" or unicodedata.category(sign)[0] in "LMN" for sign in name)
    )


# letters of other scripts that look like Latin ones, each beside its double
_CYRILLIC = (
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
)
_CYRILLIC += "\u0430\u0435\u0456\u0458\u043e\u0440\u0441\u0443\u0445\u0455\u04bb\u0501\u051b\u051d"
_GREEK = "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
_GREEK += "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7"
_LATIN = "ABESIJKMHOPCTYXaeijopcyxshdqw" + "ABEZHIKMNOPTYXaikvopux"
LIKE = str.maketrans(_CYRILLIC + _GREEK, _LATIN)


def _look(name: str) -> str:
    """What all names that look like this one have in common: their form, case and script aside."""
    plain = unicodedata.normalize("NFKC", name).translate(LIKE)
    return unicodedata.normalize("NFKC", plain.casefold()).translate(LIKE)


def look_alikes(names: Iterable[str]) -> list[str]:
    """A warning for each group of ids that people take for one: "'Ada' and 'ada' look alike…"."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        groups.setdefault(_look(name), []).append(name)
    said = []
    for group in groups.values():
        words = [n if n.isascii() else f"{n} (written {ascii(n)[1:-1]})" for n in group]
        if len(group) > 1:
            few_ = f"{', '.join(words[:-1])} and {words[-1]}"
            said.append(f"the ids {few_} look alike: if they are one student, rename a folder")
    return said


# what steers a terminal, turns the direction of what follows, or cannot be written at all
STEERS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Text of several lines, with each sign written out that is not seen but acts: \\u202e."""
    return STEERS.sub(lambda sign: ascii(sign[0])[1:-1], text)


def shown(name: str) -> str:
    """A name that can be anything, for a message: short, printable, on one line."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        with contextlib.suppress(UnicodeEncodeError):  # an old archive's, most often in Latin-1
            raw = name.encode("utf-8", "surrogateescape")
            return f"{shown(raw.decode('latin-1'))} (not written in UTF-8)"
    text = repr(name)
    return text if len(text) <= 60 else f"{text[:59]}…"


def check(name: str) -> str:
    """`name`, if it can be an id; else raises `CourseError` with the rule."""
    if not is_id(name):
        raise CourseError(f"{shown(name)} cannot be a student's id: {RULE}")
    return name


def few(things: Sequence[str], most: int = 5) -> str:
    """The first of them: "ada, bob and 3 more"."""
    shown = ", ".join(things[:most])
    return shown if len(things) <= most else f"{shown} and {len(things) - most} more"


def together(said: Mapping[str, str]) -> str:
    """What was said of each student, each thing once: "no room (ada, bob and 3 more)"."""
    about: dict[str, list[str]] = {}
    for student, why in said.items():  # paths hold the name
        alike = re.sub(rf"(?<!\w){re.escape(student)}(?!\w)", "…", why)
        about.setdefault(alike, []).append(student)
    return "; ".join(f"{why} ({few(who)})" for why, who in about.items())


def below(folder: Path, assignment: str) -> tuple[list[str], list[str]]:
    """Who has something of an assignment in submitted/, autograded/ and the like: the ids, and the
    names of the folders that cannot be ids, to be told to the instructor."""
    there = folder.iterdir() if folder.is_dir() else ()
    names = sorted(path.name for path in there if os.path.lexists(path / assignment))
    return [n for n in names if is_id(n)], [n for n in names if not is_id(n)]
