"""What a course folder says of its course: name, seed, secret, and what handing in late costs, in
course.toml; who has more time, in extensions.csv."""

from __future__ import annotations

import csv
import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tfviz._files import written_whole
from tfviz_course import CourseError
from tfviz_course.sheets import harmless

EXTENSIONS = ("assignment", "student", "hours")  # columns of extensions.csv
HOUR, DAY = 3600, 86_400  # in seconds


class Rule(NamedTuple):
    """The table `[late]`. Days are begun days of 24 hours, counted from the end of the grace."""

    grace_hours: float = 0.0  # up to this late is in time
    free_days: int = 0  # that each student has in the whole course; earlier dates take theirs first
    per_day: float = 0.0  # share of the points that each day costs, once the free ones are used up
    most_days: int | None = None  # later than that it gets no points, and free days do not help

    def days(self, seconds_late: float) -> int:
        """How many days late a submission is, which came in so many seconds after its due date."""
        return max(0, math.ceil((seconds_late - round(self.grace_hours * HOUR)) / DAY))

    def share(self, seconds_late: float, earlier: Iterable[float] = ()) -> float:
        """The share in [0, 1] of its points that a submission loses.

        earlier       the seconds that the same student's submissions of earlier dates were late;
                      those that were too late to count took no free days
        """
        free = self.free_days
        for days in map(self.days, earlier):
            free -= 0 if self._too_late(days) else min(free, days)
        days = self.days(seconds_late)
        return 1.0 if self._too_late(days) else min(1.0, max(0, days - free) * self.per_day)

    def _too_late(self, days: int) -> bool:
        return self.most_days is not None and days > self.most_days


class Course(NamedTuple):
    """What `course.toml` says: the course's name, its public variant seed, its secret."""

    name: str
    seed: int
    secret: str  # 64 hexadecimal digits; the seeds of hidden tests are made with it
    late: Rule | None = None  # what handing in late costs; None where nbgrader's settings say it


def read_course(course: str | Path) -> Course:
    """The `course.toml` of a course folder; `CourseError` where it is missing or not whole."""
    path = Path(course) / "course.toml"
    try:
        table = tomllib.loads(path.read_text("utf8"))
    except FileNotFoundError:
        said = f"{Path(course).resolve()} is not a course: it has no course.toml"
        how = "Make one with `tfviz-course new FOLDER`, or name your course by --course FOLDER"
        raise CourseError(f"{said}. {how}") from None
    except ValueError as error:
        raise CourseError(f"{path} cannot be read: {error!r}. Correct it, or restore it") from None
    try:
        _check_keys(table, Course._fields)
        late = read_rule(table["late"]) if "late" in table else None
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None
    name, seed, secret = (table.get(key) for key in ("name", "seed", "secret"))
    if not isinstance(name, str) or type(seed) is not int:
        said = "name must be a text and seed a whole number"
        raise CourseError(f"{path}: name = {name!r}, seed = {seed!r}; {said}")
    if not isinstance(secret, str) or not re.fullmatch("[0-9a-f]{64}", secret):
        raise CourseError(f"{path}: secret must be a text of 64 hexadecimal digits")
    return Course(name, seed, secret, late)


def read_rule(table: Any) -> Rule:
    """The rule in a table `[late]`. `CourseError` names a value that cannot be, and the remedy."""
    if not isinstance(table, dict):
        raise CourseError(f"late = {table!r}; write a table: [late], and below it per_day = 0.1")
    _check_keys(table, Rule._fields, "late.")
    for name, value in table.items():
        if name == "per_day":
            valid = type(value) in (int, float) and 0 <= value <= 1
            remedy = "give the share of the points that a day costs, from 0 to 1: 0.1 is 10 %"
        elif name == "grace_hours":
            valid = type(value) in (int, float) and 0 <= value < math.inf
            remedy = "give a number of hours, 0 or more"
        else:
            valid = type(value) is int and value >= 0
            remedy = "give a whole number of days, 0 or more"
        if not valid:
            raise CourseError(f"late.{name} = {value!r}; {remedy}")
    return Rule(**table)


def _check_keys(table: Mapping[str, Any], known: Sequence[str], prefix: str = "") -> None:
    """Refuse a key that nothing reads: with a typing error, late work would cost nothing."""
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.5)
            hint = (
                f"did you mean {prefix}{near[0]}?"
                if near
                else f"the settings are {', '.join(known)}"
            )
            raise CourseError(f"{prefix}{key} is not a setting; {hint}")


def read_extensions(course: str | Path) -> dict[tuple[str, str], timedelta]:
    """How much more time than the others a student has, by assignment and student, as it stands in
    the course's extensions.csv. `CourseError` names a line that is wrong."""
    path = Path(course) / "extensions.csv"
    try:
        rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines(), strict=True))
    except FileNotFoundError:
        return {}
    except (ValueError, csv.Error) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    found = {}
    for line, row in enumerate(rows, 2):
        try:
            assignment, student, hours = (row.pop(name).strip() for name in EXTENSIONS)
            student = student.removeprefix("'")  # as it is written where an id begins with - or @
            if None in row:  # a comma in a number
                raise ValueError("more columns than names")
            found[assignment, student] = timedelta(hours=float(hours))
        except (KeyError, AttributeError, ValueError, OverflowError):
            said = f"{path}, line {line}: it must give {', '.join(EXTENSIONS)}; hours is a number"
            raise CourseError(said) from None
    return found


def write_extensions(course: Path, extensions: Mapping[tuple[str, str], timedelta]) -> None:
    """Write the course's extensions.csv, whole or not at all."""
    lines = [",".join(EXTENSIONS)]
    for (assignment, student), time in sorted(extensions.items()):
        lines.append(f"{assignment},{harmless(student)},{time / timedelta(hours=1):.10g}")
    with written_whole(course / "extensions.csv") as file:
        file.write("\n".join([*lines, ""]).encode())
