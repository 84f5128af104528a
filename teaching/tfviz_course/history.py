"""The log of changed points: whose points are others than before, since when, and why.

The gradebook holds the points of now alone. Each time a class is graded, reported on or given
feedback, `update` compares them with the ones that it saw last, and writes down what changed. So a
change made in formgrader is seen by the next of these commands, and bears its time.

.tfviz/points/<assignment>.json   the points last seen, and all changes, the oldest first
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tfviz._files import written_whole
from tfviz_course import CourseError, store
from tfviz_course import students as ids
from tfviz_course.report import GRADED, LATE, Change, Results, Student, late_time, number

FOLDER = ".tfviz/points"
FORMAT = 1


class Seen(NamedTuple):
    """Points of one exercise, and what can be the reason when they change."""

    points: float
    most: float
    by_hand: float | None  # what of the points somebody gave by hand
    answers: str  # a mark of all answers of the submission


def update(course: Path, found: Results) -> tuple[Results, tuple[Change, ...]]:
    """The results with the log of changes in them, and the changes that were not known before.

    Points that wait for somebody are compared when they are there. Raises `CourseError` where the
    log cannot be read or written.
    """
    path = course / FOLDER / f"{found.assignment}.json"
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    with store.writing(path), _locked(path.parent):
        last, changes = _read(path)
        new: list[Change] = []
        for student in found.those(GRADED):
            known = last.setdefault(student.id, {})
            seen = _seen(course, found, student)
            for what in [what for what in seen if what in known]:
                before, after = known[what], seen[what]
                if before.points != after.points:
                    why = _late(student) if what == LATE else _why(before, after)
                    points = before.points, after.points
                    new.append(Change(now, student.id, what, *points, why))
            known |= seen
        changes += new
        log = {"format": FORMAT, "last": last, "changes": [asdict(one) for one in changes]}
        with written_whole(path) as file:
            file.write(json.dumps(log, indent=1).encode())
    return replace(found, changes=tuple(changes)), tuple(new)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two reports at a time must not lose each other's changes; the second one waits."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> tuple[dict[str, dict[str, Seen]], list[Change]]:
    try:
        log = json.loads(path.read_text("utf8"))
        if log["format"] != FORMAT:
            raise ValueError(f"its format is {log['format']!r}")
        last = {
            name: {what: Seen(*one) for what, one in seen.items()}
            for name, seen in log["last"].items()
        }
        return last, [Change(**one) for one in log["changes"]]
    except FileNotFoundError:
        return {}, []
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = f"{path}, the log of changed points, cannot be read: {error!r}"
        how = "Restore it from your copy, or move it away to begin a new log"
        raise CourseError(f"{said}. {how}") from None


def _seen(course: Path, found: Results, student: Student) -> dict[str, Seen]:
    """The points of now, by exercise; those that wait are not there yet."""
    answers = ""
    if ids.is_id(student.id):  # a gradebook may hold names that nobody has checked
        entry: Any = store.read_entry(course, found.assignment, student.id) or {}
        parts = entry.get("notebooks", {})
        answers = store.hashed({name: part["answers"] for name, part in parts.items()})[:12]
    seen = {}
    for exercise, most in found.exercises.items():
        if (points := student.points(exercise)) is not None:
            given = [mark.by_hand for mark in student.of(exercise) if mark.by_hand is not None]
            seen[exercise] = Seen(points, most, sum(given) if given else None, answers)
    if not student.waiting:  # a penalty is a share of all points
        seen[LATE] = Seen(0.0 - student.penalty, 0.0, None, answers)
    return seen


def _why(before: Seen, after: Seen) -> str:
    reasons = []
    if after.most != before.most:
        reasons += [f"worth {number(after.most)} points instead of {number(before.most)}"]
    if after.answers != before.answers:
        reasons += ["other answers handed in"]
    if after.by_hand != before.by_hand:
        reasons += ["points by hand" if after.by_hand is not None else "no points by hand any more"]
    return "; ".join(reasons) or "judged again, with the same answers"


def _late(student: Student) -> str:
    return late_time(student.minutes_late) if student.minutes_late else "in time now"
