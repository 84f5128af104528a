"""The results of a class: who has how many points, which exercises are hard, what waits for you.

Points come from nbgrader's gradebook, which stays the only truth; why a test failed, and what the
grader remarked, comes from the store of verdicts. `table` is for the terminal; `write` makes

    reports/<assignment>/students.csv      one line for each student
    reports/<assignment>/exercises.csv     one line for each exercise: how hard it was, and why
    reports/<assignment>/totals.svg, .png  the points of the class, in order
    reports/<assignment>/matrix.svg, .png  students and exercises; hatched is what has no points yet

What students wrote can end up in all of these, in messages and remarks. There it is short, on one
line of its own column, without control characters, and no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import re
import sqlite3
import statistics
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import nbformat
from nbgrader import api
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from tfviz_course import store
from tfviz_course import students as ids

if TYPE_CHECKING:
    from tfviz.plots import Figure

Kind = Literal["visible", "hidden", "written"]
KINDS: dict[str, Kind] = {"checks": "visible", "hidden": "hidden", "yours": "written"}
State = Literal["graded", "not graded", "missing"]
STATES: dict[State, str] = {
    "graded": "graded",
    "not graded": "handed in, not graded yet",
    "missing": "did not hand in",
}
NAMED_UP_TO = 60
"""Rows of the plot that carry a name."""
LONGEST = 160
"""Characters of a message or a remark that a table shows."""


@dataclass(frozen=True)
class Part:
    """One graded cell of the assignment."""

    notebook: str
    exercise: str
    kind: Kind
    points: float


@dataclass(frozen=True)
class Mark:
    """What one student has for one part."""

    points: float
    waits: bool = False  # for somebody to grade it, or to look at it again
    message: str = ""  # why it failed


@dataclass(frozen=True)
class Exercise:
    """An exercise of the assignment with its parts: visible, hidden, or written."""

    label: str
    notebook: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return self.label.removeprefix("ex-")

    @property
    def points(self) -> float:
        return sum(part.points for part in self.parts)

    @property
    def written(self) -> bool:
        return all(part.kind == "written" for part in self.parts)


@dataclass(frozen=True)
class Student:
    """One student; `marks` is empty unless the submission is graded."""

    id: str
    name: str = ""
    state: State = "missing"
    handed_in: datetime | None = None  # UTC
    minutes_late: int = 0
    penalty: float = 0
    marks: Mapping[Part, Mark] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Points so far, less the penalty for handing in late, as nbgrader exports them."""
        return max(0.0, sum(mark.points for mark in self.marks.values()) - self.penalty)

    def of(self, exercise: Exercise) -> list[tuple[Part, Mark]]:
        return [(part, self.marks[part]) for part in exercise.parts if part in self.marks]

    def points(self, exercise: Exercise) -> float:
        return sum(mark.points for _, mark in self.of(exercise))

    def waits(self, exercise: Exercise) -> bool:
        return any(mark.waits for _, mark in self.of(exercise))

    @property
    def waiting(self) -> tuple[Part, ...]:
        return tuple(part for part, mark in self.marks.items() if mark.waits)

    @property
    def counted(self) -> bool:
        """Whether there are points to speak of: something is graded and does not wait."""
        return self.state == "graded" and not (
            self.marks and all(mark.waits for mark in self.marks.values())
        )


@dataclass(frozen=True)
class Difficulty:
    """How an exercise went, over the `students` who are graded in it; `waiting` are those whose
    answer is still to be graded by hand.

    Shares are in [0, 1]; None where there is nothing to take a share of. As long as an answer
    waits, nothing is said of all: the first to be graded are those who left it empty.
    """

    exercise: Exercise
    students: int
    solved: int | None  # with all its points
    visible: float | None  # share of students whose visible checks all pass
    hidden: float | None
    mean: float | None  # points
    waiting: int
    message: str  # the most frequent first failing message
    times: int


@dataclass(frozen=True)
class Results:
    """All that the reports say about one assignment; students in alphabetical order."""

    course: str
    assignment: str
    due: datetime | None  # UTC
    exercises: tuple[Exercise, ...]
    students: tuple[Student, ...]
    strange: tuple[str, ...] = ()  # folders in submitted/ whose names cannot be ids
    anonymous: bool = False

    @property
    def maximum(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    def those(self, state: State) -> list[Student]:
        return [student for student in self.students if student.state == state]

    @cached_property
    def graded(self) -> list[Student]:
        return self.those("graded")

    @property
    def waiting(self) -> list[Student]:
        """Those with an answer that waits to be graded by hand."""
        return [student for student in self.graded if student.waiting]

    @property
    def median(self) -> float | None:
        """None as long as answers wait: their 0 points are not a result."""
        if not self.graded or self.waiting:
            return None
        return statistics.median(student.total for student in self.graded)

    @cached_property
    def difficulties(self) -> list[Difficulty]:
        # in class, a message must not point at one student or show what a hidden test asks
        kinds = {"visible"} if self.anonymous else {"visible", "hidden"}
        least = 2 if self.anonymous else 1
        return [_difficulty(each, self.graded, kinds, least) for each in self.exercises]


# --- reading -------------------------------------------------------------------------------------


def results(course: Path, assignment: str) -> Results:
    """What gradebook and verdicts hold about an assignment; nothing is changed.

    Raises `FileNotFoundError` where the course has no gradebook, `ValueError` for an unknown
    assignment.
    """
    course = Path(course)
    book = course / "gradebook.db"
    if not book.is_file():
        raise FileNotFoundError(
            f"course = {str(course)!r} holds no gradebook.db; go into the course folder (or name "
            "it: --course FOLDER), and make an assignment first: tfviz-course assignment NAME ITEM…"
        )
    address = f"{book.resolve().as_uri()}?mode=ro"  # a report cannot write
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True))
    try:
        with Session(engine) as session:
            return _read(session, course, assignment)
    finally:
        engine.dispose()


def part_of(cell: str) -> tuple[str, Kind]:
    """Exercise and kind of a graded cell: "ex-loops-hidden" → ("ex-loops", "hidden")."""
    exercise, _, role = cell.rpartition("-")
    return (exercise, KINDS[role]) if exercise and role in KINDS else (cell, "visible")


def _read(session: Session, course: Path, assignment: str) -> Results:
    found = session.scalar(select(api.Assignment).where(api.Assignment.name == assignment))
    if found is None:
        known = ", ".join(sorted(session.scalars(select(api.Assignment.name)))) or "none yet"
        raise ValueError(f"assignment = {assignment!r} is not in the gradebook; known: {known}")
    parts = _parts(session, found, course)
    marks, penalties = _marks(session, found, parts)
    handed = {entry.student_id: entry for entry in found.submissions}
    people = {person.id: person for person in session.scalars(select(api.Student))}
    folders, strange = ids.below(course / "submitted", assignment)
    students = []
    for name in sorted({*people, *folders}, key=lambda name: (name.casefold(), name)):
        known_as = [people[name].first_name, people[name].last_name] if name in people else []
        one = Student(name, " ".join(filter(None, known_as)))
        if name in marks:
            entry = handed[name]
            verdicts, remarks = stored(course, assignment, name)
            one = replace(
                one,
                state="graded",
                handed_in=entry.timestamp,
                minutes_late=int(entry.total_seconds_late // 60) if found.duedate else 0,
                penalty=penalties[name],
                marks={
                    part: replace(mark, message=verdicts.get(cell, "") if _lost(part, mark) else "")
                    for cell, part in parts.items()
                    if (mark := marks[name].get(part))
                },
                remarks=remarks,
            )
        elif name in folders:
            one = replace(one, state="not graded")
        students.append(one)
    together: dict[tuple[str, str], list[Part]] = {}
    for part in parts.values():
        together.setdefault((part.notebook, part.exercise), []).append(part)
    exercises = tuple(
        Exercise(label, notebook, tuple(own)) for (notebook, label), own in together.items()
    )
    title = _title(course)
    return Results(title, assignment, found.duedate, exercises, tuple(students), tuple(strange))


def _parts(
    session: Session, assignment: api.Assignment, course: Path
) -> dict[tuple[str, str], Part]:
    """(notebook, grade_id) → part, in the order of the notebooks' cells."""
    graded = session.execute(
        select(api.Notebook.name, api.GradeCell.name, api.GradeCell.max_score)
        .join(api.GradeCell, api.GradeCell.notebook_id == api.Notebook.id)
        .where(api.Notebook.assignment_id == assignment.id)
    ).all()
    places: dict[tuple[str, str], int] = {}
    for notebook in {row[0] for row in graded}:
        file = course / "source" / assignment.name / f"{notebook}.ipynb"
        if file.is_file():
            cells = nbformat.read(file, as_version=4).cells
            ids = [cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in cells]
            places |= {(notebook, cell): place for place, cell in enumerate(ids)}
    graded = sorted(graded, key=lambda row: (row[0], places.get((row[0], row[1]), 0), row[1]))
    return {
        (notebook, cell): Part(notebook, *part_of(cell), points or 0.0)
        for notebook, cell, points in graded
    }


def _marks(
    session: Session, assignment: api.Assignment, parts: Mapping[tuple[str, str], Part]
) -> tuple[dict[str, dict[Part, Mark]], Counter[str]]:
    """Marks and late penalty by student, in two queries whatever the size of the class."""
    handed, sheet = api.SubmittedAssignment, api.SubmittedNotebook
    rows = session.execute(
        select(
            handed.student_id,
            api.Notebook.name,
            api.GradeCell.name,
            api.Grade.score,
            api.Grade.needs_manual_grade,
        )
        .join(sheet, sheet.assignment_id == handed.id)
        .join(api.Notebook, api.Notebook.id == sheet.notebook_id)
        .join(api.Grade, api.Grade.notebook_id == sheet.id)
        .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
        .where(handed.assignment_id == assignment.id)
    )
    marks: dict[str, dict[Part, Mark]] = {}
    for student, notebook, cell, points, waits in rows:
        marks.setdefault(student, {})[parts[notebook, cell]] = Mark(points, bool(waits))
    penalties: Counter[str] = Counter()
    late = select(handed.student_id, sheet.late_submission_penalty).join(
        sheet, sheet.assignment_id == handed.id
    )
    for student, penalty in session.execute(late.where(handed.assignment_id == assignment.id)):
        penalties[student] += penalty or 0
    return marks, penalties


def _lost(part: Part, mark: Mark) -> bool:
    return mark.points < part.points


def stored(
    course: Path, assignment: str, student: str
) -> tuple[dict[tuple[str, str], str], tuple[str, ...]]:
    """Why cells failed, by (notebook, grade_id), and the remarks, from the store of verdicts."""
    if not ids.is_id(student):  # in the gradebook from before ids were checked
        return {}, ()
    entry = store.read_entry(course, assignment, student) or {}
    messages: dict[tuple[str, str], str] = {}
    remarks = list(entry.get("remarks", []))
    for notebook, kept in entry.get("notebooks", {}).items():
        remarks += [*kept["remarks"], *kept["judged"]["remarks"]]
        for cell, verdict in kept["judged"]["verdicts"].items():
            messages[notebook, cell] = plain(verdict["message"])
    return messages, tuple(dict.fromkeys(plain(remark) for remark in remarks))


def _title(course: Path) -> str:
    file = course / "course.toml"
    known = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    return str(known.get("name", course.resolve().name))


# --- how an exercise went ------------------------------------------------------------------------


def _difficulty(
    exercise: Exercise, everybody: Sequence[Student], kinds: set[str], least: int
) -> Difficulty:
    """Over `everybody`; only messages of `kinds` that at least `least` students share count."""
    students = [student for student in everybody if not student.waits(exercise)]

    waiting = len(everybody) - len(students)
    told = bool(students) and not waiting

    def passed(kind: Kind) -> float | None:
        parts = [part for part in exercise.parts if part.kind == kind]
        if not parts or not told:
            return None
        return statistics.mean(
            all(part in s.marks and not _lost(part, s.marks[part]) for part in parts)
            for s in students
        )

    firsts = [
        next((m.message for part, m in s.of(exercise) if m.message and part.kind in kinds), "")
        for s in students
    ]
    # numbers differ with the inputs; the mistake is the same
    alike: dict[str, list[str]] = {}
    for message in filter(None, firsts):
        alike.setdefault(re.sub(r"[-−]?\d[\d.,e+-]*", "#", message), []).append(message)
    often = max(alike.values(), key=len, default=[])
    enough = len(often) >= least
    return Difficulty(
        exercise,
        len(students),
        sum(s.points(exercise) >= exercise.points for s in students) if told else None,
        passed("visible"),
        passed("hidden"),
        statistics.mean(s.points(exercise) for s in students) if told else None,
        waiting,
        often[0] if enough else "",
        len(often) if enough else 0,
    )


# --- words ---------------------------------------------------------------------------------------


def plain(text: str, longest: int = LONGEST) -> str:
    """One line of printable characters, shortened to `longest`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def number(value: float | None) -> str:
    """Points as people write them: 2, 2.5, 2.33."""
    return "" if value is None else f"{round(value, 2):g}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def count(number: int, what: str) -> str:
    """1 remark, 2 remarks."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def sign(student: Student, exercise: Exercise) -> str:
    """● all points, ◐ some, ○ none, ? waits for somebody to grade it."""
    if student.state != "graded":
        return "–"
    if student.waits(exercise):
        return "?"
    points = student.points(exercise)
    return "●" if points >= exercise.points else "◐" if points > 0 else "○"


SIGNS = "● all points   ◐ some   ○ none   ? waits for you   – not graded"


def headline(found: Results) -> str:
    """One sentence about the whole class."""
    here, open_ = len(found.graded), len(found.those("not graded"))
    if not here:
        return f"Nothing is graded yet; {open_} of {len(found.students)} students handed in."
    handed = f"{here + open_} of {len(found.students)} students handed in"
    missing = f", {open_} of them not graded yet" if open_ else ""
    if todo := len(found.waiting):
        have = "has" if todo == 1 else "have"
        middle = f"{todo} {have} answers that wait for you, so there is no median yet"
    else:
        middle = f"the median is {number(found.median)} of {number(found.maximum)} points"
    return f"{handed}{missing}; {middle}."


def waiting(found: Results) -> list[str]:
    """What waits to be graded by hand: one line for each exercise."""
    return [
        f"{one.exercise.name}: {one.waiting} of {one.waiting + one.students}"
        for one in found.difficulties
        if one.waiting
    ]


def _columns(title: str, *heads: str, words: Iterable[int]) -> Table:
    """An empty table; the columns `words` hold text, which folds inside its column."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        text = place in words
        made.add_column(head, justify="left" if text else "right", overflow="fold",
                        no_wrap=not text)  # fmt: skip
    return made


def table(found: Results) -> RenderableType:
    """The results for a terminal: exercises, students, and what is still to do."""
    heads = ("", "exercise", "points", "mean", "solved", "visible", "hidden")
    hard = _columns("Exercises", *heads, words=())
    hard.columns[1].justify = "left"
    for place, one in enumerate(found.difficulties, 1):
        solved = "–" if one.solved is None else f"{one.solved} of {one.students}"
        hard.add_row(
            str(place), Text(plain(one.exercise.name, 30)), number(one.exercise.points),
            number(one.mean) or "–", solved, percent(one.visible), percent(one.hidden),
        )  # fmt: skip
    places = " ".join(str(place % 10) for place in range(1, len(found.exercises) + 1))
    who = _columns("Students", "student", "points", places, "", words=(0, 3))
    who.columns[0].max_width = 24  # a long one folds, so that points stay on the screen
    who.columns[2].justify = "left"
    for student in found.students:
        notes = [] if student.state == "graded" else [STATES[student.state]]
        notes += [f"{student.minutes_late} min late"] * bool(student.minutes_late)
        notes += [plain(remark, 80) for remark in student.remarks[:1]]
        if len(student.remarks) > 1:
            notes += [f"and {count(len(student.remarks) - 1, 'more remark')}"]
        who.add_row(
            Text(plain(student.id)),
            number(student.total) if student.counted else "–",
            " ".join(sign(student, exercise) for exercise in found.exercises),
            Text("; ".join(notes)),
        )
    heading = Text(f"{found.assignment}, {found.course}\n", style="bold")
    pieces: list[RenderableType] = [heading, Text(headline(found)), Text()]
    if found.exercises:
        pieces += [hard, Text()]
    said = _columns("Most frequent message", "exercise", "times", "message", words=(0, 2))
    for one in found.difficulties:
        if one.message:
            said.add_row(Text(one.exercise.name), str(one.times), Text(plain(one.message)))
    if said.rows:
        pieces += [said, Text()]
    if found.students:
        pieces += [who, Text(SIGNS, style="dim")]
    if todo := waiting(found):
        pieces += [Text(f"\nTo be graded by hand, in formgrader: {'; '.join(todo)}")]
    if found.strange:
        names = ", ".join(map(ids.shown, found.strange))
        pieces += [Text(f"\nLeft out of submitted/, for their names: {names}. There, {ids.RULE}.")]
    return Group(*pieces)


# --- without names -------------------------------------------------------------------------------


def without_names(found: Results, secret: str) -> Results:
    """The same results under pseudonyms, to be shown in class.

    A pseudonym depends on the student and on the secret of the course: it stays the same from one
    assignment to the next, and nobody else can work out whose it is. Names, times and remarks
    are left out.
    """
    if not secret:
        raise ValueError("secret is empty: pseudonyms made without one could be guessed")
    for length in range(8, 33):  # 18 million pseudonyms of 8 letters; longer ones begin the same
        names = [_pseudonym(student.id, secret, length) for student in found.students]
        if len(set(names)) == len(names):
            break
    students = [
        replace(student, id=name, name="", handed_in=None, minutes_late=0, remarks=())
        for name, student in zip(names, found.students, strict=True)
    ]
    students.sort(key=lambda student: student.id)
    return replace(found, students=tuple(students), strange=(), anonymous=True)


def _pseudonym(student: str, secret: str, length: int) -> str:
    """Consonant, vowel, consonant …: pronounceable, so that somebody can find their own."""
    digest = hmac.digest(secret.encode(), f"pseudonym {student}".encode(), hashlib.sha256)
    letters = ("bdfgklmnprstvz", "aeiou")
    return "".join(letters[n % 2][digest[n] % len(letters[n % 2])] for n in range(length))


# --- files ---------------------------------------------------------------------------------------


def student_rows(found: Results) -> list[dict[str, object]]:
    """One row for each student: the columns of students.csv.

    An exercise that waits to be graded is empty; `points` are those so far, as nbgrader exports
    them, and `waiting` says how many answers wait.
    """
    return [
        {
            "student": student.id,
            "name": student.name,
            "state": STATES[student.state],
            "handed_in_utc": student.handed_in.isoformat(" ", "seconds")
            if student.handed_in
            else "",
            "minutes_late": student.minutes_late,
            "points": number(student.total) if student.state == "graded" else "",
            "maximum": number(found.maximum),
            "late_penalty": number(student.penalty),
            "waiting": len(student.waiting),
            **{
                exercise.label: number(student.points(exercise))
                if student.of(exercise) and not student.waits(exercise)
                else ""
                for exercise in found.exercises
            },
            "remarks": "; ".join(plain(remark) for remark in student.remarks),
        }
        for student in found.students
    ]


def exercise_rows(found: Results) -> list[dict[str, object]]:
    """One row for each exercise: the columns of exercises.csv. Shares are between 0 and 1."""
    return [
        {
            "exercise": one.exercise.label,
            "notebook": one.exercise.notebook,
            "points": number(one.exercise.points),
            "students": one.students,
            "solved": "" if one.solved is None else one.solved,
            "visible_share": number(one.visible),
            "hidden_share": number(one.hidden),
            "mean_points": number(one.mean),
            "waiting": one.waiting,
            "message": plain(one.message),
            "message_students": one.times,
        }
        for one in found.difficulties
    ]


def _csv(file: Path, columns: Iterable[str], rows: Iterable[Mapping[str, object]]) -> None:
    with file.open("w", encoding="utf-8-sig", newline="") as out:  # the mark is for Excel
        sheet = csv.DictWriter(out, list(columns))
        sheet.writeheader()
        sheet.writerows({key: _cell(value) for key, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if risky else value


# --- figures -------------------------------------------------------------------------------------


def figures(found: Results) -> dict[str, Figure]:
    """The plots that these results allow: none before something is graded."""
    students = sorted(found.graded, key=lambda student: (-student.total, student.id))
    if not students or not found.maximum:
        return {}
    made = {"matrix": _matrix(found, students)}
    if len(students) > 1:
        made["totals"] = _totals(found, students)
    return made


def _totals(found: Results, students: Sequence[Student]) -> Figure:
    from tfviz import plots

    points = [student.total for student in students]
    so_far = f"points so far ({len(found.waiting)} wait)" if found.waiting else "points"
    middle = "" if found.median is None else f", median {number(found.median)}"
    alt = (
        f"Points of {len(students)} students, of {number(found.maximum)} possible: from "
        f"{number(points[0])} down to {number(points[-1])}{middle}."
    )
    return plots.curve(
        range(1, len(points) + 1), {found.assignment: points}, alt=alt, caption="One for each.",
        xlabel="students, most points first", ylabel=f"{so_far}, of {number(found.maximum)}",
    )  # fmt: skip


def _matrix(found: Results, students: Sequence[Student]) -> Figure:
    import torch

    from tfviz import plots

    exercises = [exercise for exercise in found.exercises if exercise.points]
    graded = [[bool(s.of(e)) and not s.waits(e) for e in exercises] for s in students]
    shares = [
        [
            min(1.0, max(0.0, s.points(e) / e.points)) * known
            for e, known in zip(exercises, row, strict=True)
        ]
        for s, row in zip(students, graded, strict=True)
    ]
    means = [(one, one.mean) for one in found.difficulties if one.exercise in exercises]
    words = "; ".join(
        f"{one.exercise.name}: {'waits' if mean is None else percent(mean / one.exercise.points)}"
        for one, mean in means
    )
    open_ = count(sum(not known for row in graded for known in row), "answer")
    alt = (
        f"Points of {len(students)} students in {len(exercises)} exercises, on average {words}. "
        f"{open_} without points yet."
    )
    names = [plain(student.id, 24).replace("$", r"\$") for student in students]  # no formulas
    return plots.attention_map(
        shares,
        pattern=torch.tensor(graded),
        rows=names if len(names) <= NAMED_UP_TO else None,
        columns=[plain(exercise.name, 28) for exercise in exercises],
        numbers=False,
        xlabel="exercise",
        ylabel="student",
        alt=alt,
        caption="Violet: the share of the points. Hatched: waits to be graded.",
    )


def write(course: Path, assignment: str, *, anonymous: bool = False) -> Path:
    """Write the reports and return their folder: `reports/<assignment>`.

    With `anonymous` they name nobody, and go into the folder `anonymous` in it.
    """
    course = Path(course)
    found = results(course, assignment)
    folder = course / "reports" / assignment
    if anonymous:
        known = tomllib.loads((course / "course.toml").read_text("utf-8"))
        found, folder = without_names(found, str(known["secret"])), folder / "anonymous"
    folder.mkdir(parents=True, exist_ok=True)
    nobody = replace(found, students=(Student(""),))  # has all columns
    nothing = replace(found, exercises=(Exercise("", "", ()),))
    _csv(folder / "students.csv", student_rows(nobody)[0], student_rows(found))
    _csv(folder / "exercises.csv", exercise_rows(nothing)[0], exercise_rows(found))
    drawn = figures(found)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in all the world's letters
        for name in ("totals", "matrix"):
            for kind in ("svg", "png"):
                file = folder / f"{name}.{kind}"
                if name in drawn:
                    drawn[name].save(file)
                else:
                    file.unlink(missing_ok=True)  # of an earlier run
    return folder
