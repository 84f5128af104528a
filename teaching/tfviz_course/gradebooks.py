"""Points of an assignment as CSV files that the gradebooks of Canvas and of Moodle import.

Where the formats were read: Canvas in instructure/canvas-lms, lib/gradebook_importer.rb (the
columns that must be there, the row "Points Possible", by what students are known, that an empty
cell takes a grade away) and lib/gradebook_exporter.rb. Moodle in moodle/moodle,
grade/import/csv/classes/load_data.php (columns are chosen on the page of the import; one unknown
student stops all of it) and mod/assign/feedback/offline/importgradeslib.php (the worksheet of one
assignment: Identifier, Grade, Last modified (grade), Feedback comments).

An empty cell can delete a grade there. So whoever has no points here, because an answer waits, the
submission is not graded or nothing was handed in, has no row in a file of our own; in a file that
came from the gradebook, their cells stay as they were.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfviz._files import written_whole
from tfviz_course import CourseError, store
from tfviz_course import students as ids
from tfviz_course.assignment import api
from tfviz_course.report import (
    GRADED,
    MISSING,
    OPEN,
    Results,
    Student,
    late_words,
    number,
    plain,
    results,
    short,
)
from tfviz_course.roster import read_text
from tfviz_course.sheets import harmless

FOLDER = "exports"  # in the course folder
# by these columns of a gradebook's file a student is known, by none else: names are not unique
KNOWN_BY = {
    "canvas": ("id", "sis user id", "sis login id", "integration id"),
    "moodle": ("identifier", "id number", "username", "email address", "email"),
}
# what the gradebooks write around the name of an assignment
AROUND = {"canvas": r"{}(?: \(\d+\))?", "moodle": r"(?:[^:]+: )?{}(?: \((?:Real|Points)\))?"}
POSSIBLE = "Points Possible"  # begins Canvas's row of what assignments are worth
ABOUT = re.compile("Manual Posting|Muted", re.IGNORECASE)  # all that stands in another row there
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?|-")  # a - alone is no grade


class Exported(NamedTuple):
    """The file, and who is in it and who not; all but the first are ids or what the file says."""

    file: Path
    written: list[str]
    waiting: list[str]  # an answer waits for somebody to grade it
    ungraded: list[str]
    missing: list[str]  # did not hand in
    absent: list[str]  # has points here, and no row in the gradebook's file
    strangers: list[str]  # rows of the gradebook's file that are nobody here
    notes: list[str]


class _Filled(NamedTuple):
    """What became of the rows of a file; as in `Exported`."""

    written: list[str]
    absent: list[str]
    strangers: list[str]
    notes: list[str]


def export(
    course: Path, assignment: str, kind: str, columns: Path | None = None, title: str = ""
) -> Exported:
    """Write exports/<assignment>-<kind>.csv in the course folder; the gradebook is only read.

    kind       "canvas" or "moodle"
    columns    a CSV file that this gradebook has exported: its rows stay, one column is filled
    title      what the assignment is called there, if not as here

    Raises `CourseError` with the remedy.
    """
    found = results(course, assignment)
    title = " ".join(title.split()) or assignment
    emails = _emails(course)
    graded = {one.id: one for one in found.students if one.state == GRADED and not one.waiting}
    mark = b""
    if columns is None:
        rows, separator = _own(kind, found, graded.values(), title, emails), ","
        filled = _Filled(list(graded), [], [], [])
    else:
        text, separator = read_text(columns)
        rows = _rows(columns, text, separator)
        if columns.read_bytes().startswith(codecs.BOM_UTF8):
            mark = codecs.BOM_UTF8
        sheet = _Sheet(columns, kind, rows, title)
        filled = sheet.fill(found, graded, emails)
    file = course / FOLDER / f"{assignment}-{kind}.csv"
    with store.writing(file), written_whole(file) as out:
        out.write(mark + _text(rows, separator).encode())
    return Exported(
        file,
        filled.written,
        waiting=[one.id for one in found.students if one.waiting],
        ungraded=[one.id for one in found.those(OPEN)],
        missing=[one.id for one in found.those(MISSING)],
        absent=filled.absent,
        strangers=filled.strangers,
        notes=filled.notes,
    )


def _emails(course: Path) -> dict[str, str]:
    with warnings.catch_warnings(action="ignore"), api(course).gradebook as book:
        return {student.id: student.email or "" for student in book.students}


def feedback(found: Results, student: Student) -> str:
    """Points of each exercise and what lateness cost, on one line. No text of a student's."""
    parts = []
    for exercise, most in found.exercises.items():
        parts += [f"{short(exercise)} {number(student.points(exercise), '–')} of {number(most)}"]
    return "; ".join([*parts, *late_words(student)])


def _own(
    kind: str,
    found: Results,
    graded: Iterable[Student],
    title: str,
    emails: Mapping[str, str],
) -> list[list[str]]:
    """The rows of a file that begins with nothing."""
    most = number(sum(found.exercises.values()))
    if kind == "canvas":
        rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]]
        rows += [[f"    {POSSIBLE}", "", "", "", "", most]]
        rows += [[s.name or s.id, "", "", s.id, "", number(s.total)] for s in graded]
        return rows
    rows = [["ID number", "Email address", title, f"{title} (feedback)"]]
    for s in graded:
        rows += [[s.id, emails.get(s.id, ""), number(s.total), feedback(found, s)]]
    return rows


def _rows(file: Path, text: str, separator: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise CourseError(f"{file} is not a CSV file ({error}); export it again") from None
    if len(rows) < 2:
        raise CourseError(f"{file} has no row for a student; export the gradebook again")
    return rows


def _text(rows: Sequence[Sequence[str]], separator: str) -> str:
    out = io.StringIO()
    safe = [[cell if NUMBER.fullmatch(cell) else harmless(cell) for cell in row] for row in rows]
    csv.writer(out, delimiter=separator).writerows(safe)
    return out.getvalue()


def _names(every: Iterable[str], emails: Mapping[str, str]) -> dict[str, str]:
    """By what a gradebook may know our students: their ids and addresses, in small letters."""
    names: dict[str, str] = {}
    for one in every:
        for name in filter(None, (one.casefold(), emails.get(one, "").casefold())):
            if (other := names.setdefault(name, one)) != one:
                how = "rename a folder in submitted/, or give each an address of their own"
                raise CourseError(
                    f"{other} and {one} are both {name!r} in lowercase letters: {how}"
                )
    return names


class _Sheet:
    """A gradebook's own file: which columns are whose, and which row is which student's."""

    def __init__(self, file: Path, kind: str, rows: list[list[str]], title: str) -> None:
        self.file, self.kind, self.rows = file, kind, rows
        heads = [" ".join(head.split()) for head in rows[0]]
        small = [head.casefold() for head in heads]
        self.keys = [place for place, head in enumerate(small) if head in KNOWN_BY[kind]]
        if not self.keys:
            known = ", ".join(KNOWN_BY[kind])
            said = f"{file} has no column that identifies students ({known})"
            how = f"export it from {kind.capitalize()} again, with the language set to English"
            raise CourseError(f"{said}; {how}")
        self.worksheet = kind == "moodle" and small[self.keys[0]] == "identifier"
        self.comments = small.index("feedback comments") if "feedback comments" in small else None
        self.grade = self._grade(heads, "Grade" if self.worksheet else title)
        self.most = small.index("maximum grade") if "maximum grade" in small else None

    def _grade(self, heads: Sequence[str], title: str) -> int:
        around = re.compile(AROUND[self.kind].format(re.escape(title)), re.IGNORECASE)
        places = [place for place, head in enumerate(heads) if around.fullmatch(head)]
        if len(places) == 1:
            return places[0]
        if places:
            names = " and ".join(plain(heads[place], 60) for place in places)
            raise CourseError(f"{self.file} has several columns for {title!r}: {names}; keep one")
        others = [plain(head, 40) for place, head in enumerate(heads) if place not in self.keys]
        how = "give the assignment's name in that file as --title"
        raise CourseError(
            f"{self.file} has no column {title!r}; {how}. It has {ids.few(others, 12)}"
        )

    def fill(
        self, found: Results, graded: Mapping[str, Student], emails: Mapping[str, str]
    ) -> _Filled:
        """Write points into the rows."""
        names = _names([one.id for one in found.students], emails)
        worth = float(sum(found.exercises.values()))
        places: dict[str, int] = {}
        strangers: list[str] = []
        notes: list[str] = []
        for line, row in enumerate(self.rows[1:], 2):
            row += [""] * (len(self.rows[0]) - len(row))
            if self._describes(row):
                notes += self._other_worth(row, self.grade, worth) if POSSIBLE in row[0] else []
                continue
            known = {names[key] for key in self._known_by(row) if key in names}
            if len(known) > 1:
                both = " and ".join(sorted(known))
                said = f"{self.file}, line {line}, names both {both}"
                raise CourseError(f"{said}: correct the line, or the ids of these students")
            if not known:
                keys = [row[place].strip() for place in self.keys]
                strangers += [plain(next(filter(None, keys), "") or row[0], 40)]
                continue
            (one,) = known
            if one in places:
                where = f"lines {places[one]} and {line}"
                raise CourseError(f"{self.file}, {where}, both name {one}: keep one of them")
            places[one] = line
            if self.most is not None and not notes:
                notes += self._other_worth(row, self.most, worth)
            if student := graded.get(one):
                row[self.grade] = number(student.total)
                if self.comments is not None:
                    row[self.comments] = feedback(found, student)
        absent = [one for one in graded if one not in places]
        return _Filled([one for one in graded if one in places], absent, strangers, notes)

    def _describes(self, row: Sequence[str]) -> bool:
        """Whether a row is about the assignments, or empty: Canvas has such rows below its head."""
        filled = [cell.strip() for cell in row if cell.strip()]
        if not filled or self.kind != "canvas":
            return not filled
        return POSSIBLE in row[0] or all(map(ABOUT.match, filled))

    def _known_by(self, row: Sequence[str]) -> list[str]:
        cells = [row[place].strip().casefold() for place in self.keys]
        return [cell.removeprefix("participant ") if self.worksheet else cell for cell in cells]

    def _other_worth(self, row: Sequence[str], place: int, worth: float) -> list[str]:
        try:
            there = float(row[place].replace(",", "."))
        except (ValueError, IndexError):
            return []
        if there == worth:
            return []
        where = self.kind.capitalize()
        points = f"{number(there)} points in {where}, and {number(worth)} here"
        return [f"The assignment is worth {points}: make them the same, points are not converted."]
