"""Who is in the class: students from a table, and more time for one of them."""

from __future__ import annotations

import csv
import difflib
import io
import re
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tfviz_course import CourseError
from tfviz_course import students as ids
from tfviz_course.assignment import api
from tfviz_course.settings import read_course, read_extensions, write_extensions

IDS = ("id", "student_id", "student")  # names that the column of ids may have
ABOUT = ("first_name", "last_name", "email")
# in no name: marks of HTML, control characters, signs that turn the direction of what follows
NEVER = re.compile("[<>\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Imported(NamedTuple):
    """What an import did; all are ids."""

    new: list[str]
    known: list[str]
    absent: list[str]  # in the gradebook, not in the file
    unread: list[str]  # columns of the file that mean nothing here


def read_text(file: Path) -> tuple[str, str]:
    """What stands in a CSV file, and the sign that separates its columns. `CourseError` where it
    cannot be read."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CourseError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{file} is not in UTF-8: save it as 'CSV UTF-8'") from None
    first = text.partition("\n")[0]
    return text, max(",;\t", key=first.count)  # spreadsheets of many countries write ;


def read_roster(file: Path) -> dict[str, dict[str, str]]:
    """What a CSV file says of each student, by id. `CourseError` names the line that is wrong."""
    return _read(file)[0]


def _read(file: Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The same, and the names of the columns that mean nothing here."""
    text, separator = read_text(file)
    rows = _rows(file, text, separator)
    _, heads = next(rows, (1, []))
    names = [head.strip().casefold().replace(" ", "_").replace("-", "_") for head in heads]
    places = {name: place for place, name in enumerate(names) if name in (*IDS, *ABOUT)}
    for kind in (IDS, *((name,) for name in ABOUT)):
        several = [heads[place] for place, name in enumerate(names) if name in kind]
        if len(several) > 1:
            said = f"{file} has several columns for {kind[0]!r}: {', '.join(several)}"
            raise CourseError(f"{said}. Keep the one that counts, and rename or remove the others")
    named = next((places[name] for name in IDS if name in places), None)
    if named is None:
        columns = ", ".join(heads) or "nothing"
        said = f"{file} has no column 'id'; its first line has {columns}"
        raise CourseError(f"{said}. Name the column of the ids 'id'")
    found: dict[str, dict[str, str]] = {}
    for line, row in rows:
        if len(row) > len(heads) and any(map(str.strip, row[len(heads) :])):
            said = f"{len(row)} values, and the first line names {len(heads)} columns"
            how = f'put names that hold a {separator!r} in quotes, as in "Lovelace{separator} Ada"'
            raise CourseError(f"{file}, line {line}: {said}; {how}")
        row += [""] * (len(heads) - len(row))
        name = row[named].strip()
        if not ids.is_id(name):
            said = f"{ids.shown(name)} cannot be a student's id: {ids.RULE}"
            raise CourseError(f"{file}, line {line}: {said}")
        if name in found:
            raise CourseError(f"{file}, line {line}: {name} appears twice; remove one line")
        found[name] = {key: " ".join(row[places[key]].split()) for key in ABOUT if key in places}
        for key, value in found[name].items():
            if sign := NEVER.search(value):
                said = f"{key.replace('_', ' ')} {ids.shown(value)} has the sign {sign[0]!r}"
                how = "names and addresses have no < and >, and no control characters: remove it"
                raise CourseError(f"{file}, line {line}: {said}; {how}")
    if not found:
        raise CourseError(f"{file} names nobody: below its first line there is no student")
    return found, [heads[place] for place, name in enumerate(names) if name and name not in places]


def _rows(file: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows in which something stands, each with the number of its last line."""
    sheet = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in sheet:
            if any(map(str.strip, row)):
                yield sheet.line_num, row
    except csv.Error as error:
        raise CourseError(f"{file} is not a CSV file ({error}); export it again") from None


def import_students(course: Path, file: Path) -> Imported:
    """Enter the students of a CSV file into the gradebook: all, or in case of an error none."""
    read_course(course)
    wanted, unread = _read(file)
    with warnings.catch_warnings(action="ignore"), api(course).gradebook as book:
        before = {student.id for student in book.students}
        for name, about in wanted.items():
            book.update_or_create_student(name, **{k: v for k, v in about.items() if v})
    new = [name for name in wanted if name not in before]
    known = [name for name in wanted if name in before]
    return Imported(new, known, sorted(before - wanted.keys()), unread)


class Extended(NamedTuple):
    """What an extension came to."""

    due: datetime  # of this student, in UTC
    graded: bool  # the gradebook has this submission, so there may be a penalty to mend


def extend(course: Path, assignment: str, student: str, time: timedelta) -> Extended:
    """Give one student this much more time than the others, in all; none takes it back.

    It stands in the course's extensions.csv, so it can be given before anything is handed in; every
    grading takes it from there. Raises `CourseError` for an assignment that is not there, or has no
    due date, and for somebody whom nobody has heard of.
    """
    from nbgrader.api import MissingEntry

    read_course(course)
    ids.check(student)
    with warnings.catch_warnings(action="ignore"), api(course).gradebook as book:
        try:
            due = book.find_assignment(assignment).duedate
        except MissingEntry:
            known = ", ".join(one.name for one in book.assignments) or "none"
            said = f"the gradebook has no assignment {assignment!r}: it has {known}"
            raise CourseError(said) from None
        if due is None:
            how = f"'nbgrader db assignment add {assignment} --duedate …'"
            raise CourseError(f"{assignment!r} has no due date; set one with {how}")
        heard_of = {one.id for one in book.students} | {one.name for one in _handed_in(course)}
        given = read_extensions(course)
        if student not in heard_of and (assignment, student) not in given:
            near = difflib.get_close_matches(student, heard_of, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            said = f"{student} is not in the gradebook, and has handed in nothing.{hint}"
            how = "`tfviz-course students import`, or `nbgrader db student add`, enters students"
            raise CourseError(f"{said} {how}")
        write_extensions(course, given | {(assignment, student): time})
        try:
            book.grant_extension(assignment, student, minutes=time.total_seconds() / 60)
            graded = True
        except MissingEntry:
            graded = False
    return Extended(due + time, graded)


def _handed_in(course: Path) -> list[Path]:
    """The students' folders."""
    return list((course / "submitted").glob("[!.]*"))
