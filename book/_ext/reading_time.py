"""How long a section or a chapter takes, worked out from its source, so that no page can be wrong.

Reading is what is visible without a click, at `WORDS` words a minute: neither what is folded under
*Deeper* or *More* or in answers, nor code, nor exercises. An explorer takes `EXPLORER` minutes, and
none in a fold. Exercises say themselves how long they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tfviz import catalogue
from tfviz._renamed import class_name
from tfviz.catalogue import Chapter
from tfviz_lessons.lesson import Task, parse
from tfviz_lessons.outline import Section, outline

ROOT = Path(__file__).parents[2]
WORDS, EXPLORER = 120, 3
WORD = re.compile(r"[A-Za-z][\w’'-]*")
BOXES = {"try", "differs", "erratum", "measured", "note", "admonition"}


def set_aside(section: Section) -> set[int]:
    """The lines that a reader does not meet without a click, or that belong to an exercise."""
    hidden = [range(part.start, part.end) for part in section.walk() if part.folded]
    starts, ends = section.named("exercise-start"), section.named("exercise-end")
    hidden += [range(a.start, b.end) for a, b in zip(starts, ends, strict=True)]
    return {line for lines in hidden for line in lines}


def visible(section: Section) -> str:
    """The words of a section, or of a whole page, that a reader meets without a click."""
    skip = set_aside(section)
    for box in section.boxes:
        skip.update(range(box.start, box.start + 1 if box.name in BOXES else box.end))
    lines = enumerate(section.text.split("\n"), section.start)
    text = "\n".join(line for n, line in lines if n not in skip)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "formula", text, flags=re.S)
    text = re.sub(r"\{[\w:]+\}|\]\([^)\s]*\)|^\([\w-]+\)=$", "", text, flags=re.M)
    return text


def explorers(section: Section, names: Iterable[str]) -> int:
    """How many of these explorers, by their modules, are there without a click."""
    skip = set_aside(section)
    cells = [box.body for box in section.boxes if box.name == "code-cell" and box.start not in skip]
    called = set(re.findall(r"\b[A-Z]\w+(?=[(.])", "\n".join(cells)))
    return sum(class_name(name) in called for name in names)


def words(text: str) -> int:
    return len(WORD.findall(text))


@dataclass(frozen=True)
class Minutes:
    """Minutes: reading and explorers, exercises for every reader, exercises that are optional."""

    reading: int
    exercises: int = 0
    optional: int = 0


def source(document: str) -> str | None:
    """The text of a chapter; None where it is not written yet."""
    path = ROOT / f"{document}.md"
    return path.read_text("utf-8") if path.exists() else None


def page(document: str) -> Section:
    """A page as a tree of sections; empty where it is not written yet."""
    return outline(source(document) or "", f"{document}.md")


@cache
def sections(document: str) -> dict[str, int]:
    """Minutes of reading for each mechanism of a chapter, explorers among them."""
    rows = {row.id: row for row in catalogue.MECHANISMS}
    return {
        part.label: rounded(words(visible(part)), explorers(part, rows[part.label].explorers))
        for part in page(document).parts
        if part.label in rows
    }


def rounded(count: int, shown: int) -> int:
    return max(1, round(count / WORDS + EXPLORER * shown))


@cache
def tasks(document: str) -> tuple[Task, ...]:
    text = source(document)
    return tuple(parse(text, f"{document}.md").tasks) if text else ()


@cache
def chapter(document: str) -> Minutes:
    """Of a chapter as a whole, with its opening and its summary."""
    rows = [row for row in catalogue.MECHANISMS if row.document == document and row.built]
    names = {name for row in rows for name in row.explorers}
    whole = page(document)
    asked = [task.asked for task in tasks(document)]
    return Minutes(
        rounded(words(visible(whole)), explorers(whole, names)),
        sum(one.get("minutes", 0) for one in asked if not one.get("optional")),
        sum(one.get("minutes", 0) for one in asked if one.get("optional")),
    )


def written() -> list[Chapter]:
    """The chapters that are there, in order."""
    return [one for one in catalogue.CHAPTERS if source(one.document)]
