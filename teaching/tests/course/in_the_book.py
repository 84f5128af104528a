"""What the book's pages for instructors show of the grading: its limits, and the bad submissions.

    PYTHONPATH=.:teaching:teaching/tests python teaching/tests/course/in_the_book.py

writes it to book/grading.json, which the book reads in place of this code. A test of the guide says
when that file is not what stands here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course.bad import KINDS, Kind, door

from tfviz_course.sandbox import Limits

FILE = Path(__file__).resolve().parents[3] / "book/grading.json"
LIMITS = {
    "seconds": "one notebook of a submission",
    "cell_seconds": "one answer cell; one cell of tests, with all that it calls",
    "call_seconds": "one call of a student's function",
    "memory": "memory of all its processes, beyond what Python and torch take",
    "processes": "processes and threads",
    "output": "what one cell, of answers or of tests, prints and shows",
    "file_size": "one file",
    "disk": "all files together; they vanish with the sandbox",
    "inodes": "files and folders that there are at one time",
}
HEADINGS = {
    "honest": "Honest work, also where it is wrong or was saved by an odd program",
    "endless": "Work that does not end, or takes all there is",
    "reaching": "Work that reaches for what is not its own",
    "notebooks": "Files that are not what they should be",
    "values": "Answers that lie to the tests",
    "doors": "Names and texts for the instructor's pages",
}


def amount(name: str, value: float) -> str:
    """A limit as people say it: 180 s, 2 GiB, 32."""
    if name.endswith("seconds"):
        return f"{value:g} s"
    if name == "output":
        return f"{value:,} characters"
    units = [(30, "GiB"), (20, "MiB")] if name in ("memory", "file_size", "disk") else []
    return next((f"{value / 2**n:g} {unit}" for n, unit in units if value >= 2**n), f"{value:g}")


def gets(expectation: Mapping[str, str], attempted: Sequence[str]) -> str:
    """What a kind of submission gets, in words, over the exercises that it answers."""
    results = {label: expectation[label] for label in attempted}
    lost = [label for label, result in results.items() if result in ("none", "checks")]
    if not lost:
        return "all points"
    waits = [label for label, result in results.items() if result == "waits"]
    if len(lost) + len(waits) == len(results):
        return "no points for code, the answer in words waits for you" if waits else "no points"
    if all(results[label] == "checks" for label in lost):
        return "only the points of the visible tests for one answer, the others kept"
    several = f"{len(lost)} answers" if len(lost) > 1 else "one answer"
    return f"{several} lost, the others kept"


def bad_submissions() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(heading, rows of what it does and what it gets), family by family."""
    for family, heading in HEADINGS.items():
        rows = [
            (kind.sentence, gets(kind.expectation, _attempted(kind)))
            for kind in KINDS
            if door(kind) == family
        ]
        if rows:
            yield heading, rows


def _attempted(kind: Kind) -> list[str]:
    """Its exercises, without those of the second notebook where that is not handed in."""
    second = "ex-two-hops" if "factorized" not in kind.notebooks else None
    return [label for label in kind.expectation if label != second]


def text() -> str:
    """What is to stand in the file."""
    known = asdict(Limits())
    limits = [(amount(name, known[name]), what) for name, what in LIMITS.items()]
    shown: dict[str, Any] = {"limits": limits, "bad submissions": dict(bad_submissions())}
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
