"""How long a section or a chapter takes, worked out from its source, so that no page can be wrong.

Reading is what is visible without a click, at `WORDS` words a minute: neither what is folded under
*Deeper* or in answers, nor code, nor exercises. An explorer takes `EXPLORER` minutes. Exercises say
themselves how long they take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tfviz import catalogue
from tfviz.catalogue import Chapter
from tfviz_lessons.lesson import Task, parse

ROOT = Path(__file__).parents[2]
WORDS, EXPLORER = 120, 3
WORD = re.compile(r"[A-Za-z][\w’'-]*")
BOXES = {"try", "differs", "erratum", "measured", "note", "admonition"}
FENCE = re.compile(r"^(`{3,}|:{3,})(?:\{([\w:-]+)\})?.*\n(?:.*\n)*?\1[ \t]*$", re.M)
EXERCISE = re.compile(
    r"^```\{exercise-start\}.*\n(?:.*\n)*?```\{exercise-end\}\n```\n"
    r"(?:\n*```\{(?:hint|code-cell|model-answer)\}.*\n(?:.*\n)*?```\n)*",
    re.M,
)
DEEPER = re.compile(r"^#### (?:.*\n)(?:(?!#{1,3} |\([\w-]+\)=\n).*\n)*", re.M)
SECTION = re.compile(r"^\((\w+)\)=\n(## .*\n(?:(?!## |\(\w+\)=\n## ).*\n?)*)", re.M)


def visible(text: str) -> str:
    """The words of a lesson's source that a reader meets without a click."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = EXERCISE.sub("", text)
    text = FENCE.sub(lambda box: box[0].split("\n", 1)[1] if box[2] in BOXES else "", text)
    text = DEEPER.sub("", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "formula", text, flags=re.S)
    text = re.sub(r"\{[\w:]+\}|\]\([^)\s]*\)|^\([\w-]+\)=$", "", text, flags=re.M)
    return text


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


@cache
def sections(document: str) -> dict[str, int]:
    """Minutes of reading for each mechanism of a chapter, explorers among them."""
    found = dict(SECTION.findall(source(document) or ""))
    rows = {row.id: row for row in catalogue.MECHANISMS}
    return {
        name: rounded(words(visible(text)), len(rows[name].explorers))
        for name, text in found.items()
        if name in rows
    }


def rounded(count: int, explorers: int) -> int:
    return max(1, round(count / WORDS + EXPLORER * explorers))


@cache
def tasks(document: str) -> tuple[Task, ...]:
    text = source(document)
    return tuple(parse(text, f"{document}.md").tasks) if text else ()


@cache
def chapter(document: str) -> Minutes:
    """Of a chapter as a whole, with its opening and its summary."""
    rows = [row for row in catalogue.MECHANISMS if row.document == document and row.built]
    explorers = {name for row in rows for name in row.explorers}
    asked = [task.asked for task in tasks(document)]
    return Minutes(
        rounded(words(visible(source(document) or "")), len(explorers)),
        sum(one.get("minutes", 0) for one in asked if not one.get("optional")),
        sum(one.get("minutes", 0) for one in asked if one.get("optional")),
    )


def written() -> list[Chapter]:
    """The chapters that are there, in order."""
    return [one for one in catalogue.CHAPTERS if source(one.document)]
