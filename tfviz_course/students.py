"""What a student's id may be: checked where it comes in, so that nothing behind has to.

An id becomes the name of folders, a key of the gradebook, and text in pages of the instructor's.
It comes from file names that students choose.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfviz_course import CourseError

LONGEST = 64
_HAS = f"letters, digits, spaces and the signs . @ - _ in it, at most {LONGEST}"
RULE = f"an id has {_HAS}, and begins neither with a dot nor with a space"


def is_id(name: str) -> bool:
    """Whether `name` can be a student's id: see `RULE`. Letters are those of all scripts."""
    return (
        0 < len(name) <= LONGEST
        and len(name.encode("utf-8", "replace")) <= 200  # it becomes the name of a file
        and name == name.strip()
        and not name.startswith(".")
        and all(sign in " .@-_" or unicodedata.category(sign)[0] in "LMN" for sign in name)
    )


def shown(name: str) -> str:
    """A name that can be anything, for a message: short, printable, on one line."""
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
