"""The results of a class: who has how many points, which exercises are hard, what waits for you.

Points come from nbgrader's gradebook; why a test failed, and what the grader remarked, from the
store of verdicts. What students wrote can be in both: it is short here, on one line of its own
column, without control characters, and no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import csv
import hmac
import json
import re
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader import api
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from sqlalchemy import NullPool, create_engine, select
from sqlalchemy.orm import Session

from tfviz_course import store
from tfviz_course import students as ids
from tfviz_course.settings import read_course
from tfviz_course.sheets import harmless

if TYPE_CHECKING:
    from tfviz.plots import Figure

KINDS = {"checks": "visible", "hidden": "hidden", "yours": "written"}
GRADED, OPEN, MISSING = "graded", "handed in, not graded yet", "did not hand in"
SIGNS = "● all points   ◐ some   ○ none   ? waits for you   – not graded"
NAMED_UP_TO = 60  # rows of the plot that carry a name
LATE = "late penalty"  # in the log of changes, in the place of an exercise
SHOWN = 20  # changes of points that a table shows; changes.csv has all
LONGEST = 160  # characters of a message or a remark that a table shows
Place = tuple[str, str]  # of a cell: the names of the notebook and of the cell (grade_id)


@dataclass(frozen=True)
class Mark:
    """What one student has for one graded cell; `kind` is visible, hidden or written."""

    exercise: str
    kind: str
    most: float
    points: float = 0.0
    waits: bool = False  # for somebody to grade it, or to look at it again
    message: str = ""  # why it failed
    unanswered: bool = False  # in words, and left empty
    by_hand: float | None = None  # what of the points somebody gave in formgrader


@dataclass(frozen=True)
class Student:
    """One student; `marks` is empty unless the submission is graded."""

    id: str
    name: str = ""
    state: str = MISSING
    minutes_late: int = 0
    penalty: float = 0.0
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Points so far, less the penalty for handing in late, as nbgrader exports them."""
        return max(0.0, sum(mark.points for mark in self.marks) - self.penalty)

    @property
    def waiting(self) -> int:
        return sum(mark.waits for mark in self.marks)

    def of(self, exercise: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.exercise == exercise]

    def points(self, exercise: str) -> float | None:
        """None where nothing is graded, or where an answer waits."""
        own = self.of(exercise)
        known = own and not any(mark.waits for mark in own)
        return sum(mark.points for mark in own) if known else None


@dataclass(frozen=True)
class Change:
    """Points that are others than before, as `tfviz_course.history` logs them."""

    time: str  # when it was seen, in UTC
    student: str
    exercise: str  # or LATE
    before: float
    points: float
    why: str


@dataclass(frozen=True)
class Results:
    """All that the reports say about one assignment; students in alphabetical order."""

    course: str
    assignment: str
    exercises: dict[str, float]  # what each is worth
    students: tuple[Student, ...]
    strange: tuple[str, ...] = ()  # folders in submitted/ whose names cannot be ids
    anonymous: bool = False
    changes: tuple[Change, ...] = ()  # the oldest first

    def those(self, state: str) -> list[Student]:
        return [student for student in self.students if student.state == state]

    @property
    def alike(self) -> list[str]:
        """Warnings of ids that look alike; of pseudonyms there are none."""
        names = [] if self.anonymous else [student.id for student in self.students]
        return ids.look_alikes(names)

    @property
    def median(self) -> float | None:
        """None as long as answers wait: their 0 points are not a result."""
        graded = self.those(GRADED)
        waits = not graded or any(student.waiting for student in graded)
        return None if waits else statistics.median(student.total for student in graded)


def results(course: Path, assignment: str) -> Results:
    """What gradebook and verdicts hold about an assignment; nothing is changed.

    Raises `FileNotFoundError` where the course has no gradebook, `ValueError` for an unknown
    assignment.
    """
    book = course / "gradebook.db"
    if not book.is_file():
        where = "go into the course folder (or name it: --course FOLDER)"
        how = f"{where}, and make an assignment first: tfviz-course assignment NAME ITEM…"
        raise FileNotFoundError(f"course = {str(course)!r} holds no gradebook.db; {how}")
    cells = read_cells(course / "release" / assignment)
    exercises: dict[str, float] = {}
    for cell in cells.values():
        exercises[cell.exercise] = exercises.get(cell.exercise, 0.0) + cell.most
    folders, strange = ids.below(course / "submitted", assignment)
    students = {name: Student(name, state=OPEN) for name in folders}
    address = f"sqlite:///{book.resolve().as_uri()}?mode=ro&uri=true"  # a report cannot write
    with Session(create_engine(address, poolclass=NullPool)) as session:
        found = session.scalar(select(api.Assignment).where(api.Assignment.name == assignment))
        if found is None:
            known = ", ".join(sorted(session.scalars(select(api.Assignment.name)))) or "none yet"
            raise ValueError(f"assignment = {assignment!r} is not in the gradebook; known: {known}")
        for one in session.scalars(select(api.Student)):
            name = " ".join(filter(None, (one.first_name, one.last_name)))
            students[one.id] = replace(students.get(one.id, Student(one.id)), name=name)
        for entry in found.submissions:
            who = entry.student_id
            said, remarks = stored(course, assignment, who)
            grades = {(part.name, one.name): one for part in entry.notebooks for one in part.grades}
            marks = []
            for place, cell in cells.items():
                if grade := grades.get(place):
                    why = said.get(place, "") if grade.score < cell.most else ""
                    waits = bool(grade.needs_manual_grade)
                    # nbgrader gives an answer in words points by itself only if it is empty
                    empty = grade.auto_score == 0 and grade.manual_score is None
                    by_hand = (grade.manual_score or 0.0) + (grade.extra_credit or 0.0)
                    given = grade.manual_score is not None or grade.extra_credit
                    more: dict[str, Any] = {
                        "waits": waits,
                        "unanswered": cell.kind == "written" and empty,
                        "by_hand": by_hand if given else None,
                    }
                    marks.append(replace(cell, points=grade.score, message=why, **more))
            late, penalty = int(entry.total_seconds_late // 60), entry.late_submission_penalty
            about = GRADED, late, penalty, tuple(marks), remarks
            students[who] = Student(who, students[who].name, *about)
    order = sorted(students.values(), key=lambda one: (one.id.casefold(), one.id))
    return Results(read_course(course).name, assignment, exercises, tuple(order), tuple(strange))


def read_cells(release: Path) -> dict[Place, Mark]:
    """The graded cells in their order, with no points yet."""
    found = {}
    for file in sorted(release.glob("*.ipynb")):
        for cell in json.loads(file.read_text("utf8"))["cells"]:
            about, ours = (cell["metadata"].get(key, {}) for key in ("nbgrader", "tfviz"))
            if about.get("grade"):
                label = ours.get("exercise", about["grade_id"])
                kind = KINDS.get(ours.get("role", ""), "visible")
                found[file.stem, about["grade_id"]] = Mark(label, kind, float(about["points"]))
    return found


def stored(course: Path, assignment: str, student: str) -> tuple[dict[Place, str], tuple[str, ...]]:
    """Why cells failed, and the remarks, from the store of verdicts."""
    # a gradebook may hold names that nobody has checked
    entry = (ids.is_id(student) and store.read_entry(course, assignment, student)) or {}
    messages: dict[Place, str] = {}
    remarks: list[str] = []
    for notebook, kept in entry.get("notebooks", {}).items():
        remarks += [*kept["remarks"], *kept["judged"]["remarks"]]
        for cell, verdict in kept["judged"]["verdicts"].items():
            messages[notebook, cell] = plain(verdict["message"])
    return messages, tuple(dict.fromkeys(map(plain, remarks)))


def exercise_row(found: Results, exercise: str) -> dict[str, Any]:
    """How an exercise went: the columns of exercises.csv. Shares are in [0, 1].

    As long as one student's answer waits, nothing is said of all: the first to be graded are those
    who left it empty. `message` is the most frequent first one.
    """
    graded, most = found.those(GRADED), found.exercises[exercise]
    done = [s for s in graded if not any(mark.waits for mark in s.of(exercise))]
    told = bool(done) and len(done) == len(graded)
    points = [student.points(exercise) or 0.0 for student in done]

    def passed(kind: str) -> float | None:
        full = [[m.points >= m.most for m in s.of(exercise) if m.kind == kind] for s in done]
        known = told and any(full)
        return statistics.mean(bool(own) and all(own) for own in full) if known else None

    # in class, a message must not point at one student or show what a hidden test asks
    kinds, least = ({"visible"}, 2) if found.anonymous else ({"visible", "hidden"}, 1)
    alike: dict[str, list[str]] = {}
    for student in done:
        said = [m.message for m in student.of(exercise) if m.message and m.kind in kinds]
        for message in said[:1]:  # numbers differ with the inputs; the mistake is the same
            alike.setdefault(re.sub(r"[-−]?\d[\d.,e+-]*", "#", message), []).append(message)
    often = max((same for same in alike.values() if len(same) >= least), key=len, default=[])
    return {
        "exercise": exercise,
        "points": most,
        "students": len(done),
        "solved": sum(one >= most for one in points) if told else None,
        "unanswered": sum(any(m.unanswered for m in s.of(exercise)) for s in done),
        "visible_share": passed("visible"),
        "hidden_share": passed("hidden"),
        "mean_points": statistics.mean(points) if told else None,
        "waiting": len(graded) - len(done),
        "message": plain("".join(often[:1])),
        "message_students": len(often),
    }


def student_row(found: Results, student: Student) -> dict[str, Any]:
    """The columns of students.csv; an exercise that waits to be graded is empty."""
    return {
        "student": student.id,
        "name": student.name,
        "state": student.state,
        "minutes_late": student.minutes_late,
        "points": student.total if student.state == GRADED else None,
        "maximum": float(sum(found.exercises.values())),
        "late_penalty": student.penalty,
        "waiting": student.waiting,
        **{exercise: student.points(exercise) for exercise in found.exercises},
        "remarks": "; ".join(student.remarks),
    }


def change_row(change: Change) -> dict[str, Any]:
    """The columns of changes.csv."""
    return {
        "seen_utc": change.time,
        "student": change.student,
        "exercise": change.exercise,
        "before": change.before,
        "now": change.points,
        "why": change.why,
    }


# --- words ---------------------------------------------------------------------------------------


def plain(text: str, longest: int = LONGEST) -> str:
    """One line of printable characters, shortened to `longest`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def number(value: float | None, none: str = "") -> str:
    """Points as people write them: 2, 2.5, 2.33."""
    return none if value is None else f"{round(value, 2):g}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def count(number: int, what: str) -> str:
    """1 remark, 2 remarks."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def headline(found: Results) -> str:
    """One sentence about the whole class."""
    here, open_ = len(found.those(GRADED)), len(found.those(OPEN))
    todo = sum(bool(student.waiting) for student in found.students)
    said = f"{here + open_} of {len(found.students)} students handed in"
    said += f", {open_} of them not graded yet" if open_ else ""
    if not here:
        return f"{said}. Nothing is graded yet."
    if todo:
        have = "has" if todo == 1 else "have"
        return f"{said}; {todo} {have} answers that wait for you, so there is no median yet."
    most = number(sum(found.exercises.values()))
    return f"{said}; the median is {number(found.median)} of {most} points."


def waiting(found: Results) -> str:
    """What waits to be graded by hand, exercise by exercise; empty if nothing does."""
    rows = [exercise_row(found, exercise) for exercise in found.exercises]
    todo = [(short(row["exercise"]), row["waiting"], row["students"]) for row in rows]
    return "; ".join(f"{name}: {waits} of {waits + done}" for name, waits, done in todo if waits)


def short(exercise: str) -> str:
    """An exercise's label as tables show it."""
    return plain(exercise.removeprefix("ex-"), 30)


def _columns(title: str, *heads: str) -> Table:
    """An empty table. Behind a < a head stands over text, which folds inside its column."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for head in heads:
        text = head.startswith("<")
        justify: Any = "left" if text else "right"
        made.add_column(head.strip("<"), justify=justify, overflow="fold", no_wrap=not text)
    return made


def solved_words(row: Mapping[str, Any]) -> str:
    """How many solved an exercise: "3 of 5", of whom those who left it empty are told."""
    if row["solved"] is None:
        return "–"
    if row["unanswered"] == row["students"]:
        return "no answer"
    empty = f" ({row['unanswered']} empty)" if row["unanswered"] else ""
    return f"{row['solved']} of {row['students']}{empty}"


def late_time(minutes: int) -> str:
    """How late something is, by its two largest units: "3 d 1 h late", "1 h 35 min late"."""
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min")]
    while len(units) > 1 and not units[0][0]:
        units = units[1:]
    return " ".join(f"{many} {unit}" for many, unit in units[:2] if many) + " late"


def late_words(student: Student) -> list[str]:
    """How late somebody was, and what it cost; empty for who was in time."""
    said = [late_time(student.minutes_late)] if student.minutes_late else []
    if student.penalty:
        said += [f"{number(student.penalty)} points less for that"]
    return said


def sign(student: Student, exercise: str, most: float) -> str:
    """One of `SIGNS` for how an exercise went."""
    if (points := student.points(exercise)) is None:
        return "?" if student.of(exercise) else "–"
    return "●" if points >= most else "◐" if points > 0 else "○"


def table(found: Results, *, remarks: bool = True) -> RenderableType:
    """The results for a terminal: exercises, students, and what is still to do. Without `remarks`
    only their number."""
    hard = _columns("Exercises", "", "<exercise", "points", "mean", "solved", "visible", "hidden")
    said = _columns("Most frequent message", "<exercise", "times", "<message")
    for place, exercise in enumerate(found.exercises, 1):
        row = exercise_row(found, exercise)
        solved = solved_words(row)
        means = number(row["points"]), number(row["mean_points"], "–")
        shares = percent(row["visible_share"]), percent(row["hidden_share"])
        hard.add_row(str(place), Text(short(exercise)), *means, solved, *shares)
        if row["message"]:
            said.add_row(short(exercise), str(row["message_students"]), Text(row["message"]))
    places = " ".join(str(place % 10) for place in range(1, len(found.exercises) + 1))
    who = _columns("Students", "<student", "points", places, "<")
    for student in found.students:
        notes = [] if student.state == GRADED else [student.state]
        notes += late_words(student)
        if not remarks and student.remarks:
            notes += [count(len(student.remarks), "remark")]
        elif remarks:
            notes += [plain(remark, 80) for remark in student.remarks[:1]]
            if more := student.remarks[1:]:
                notes += [f"and {count(len(more), 'more remark')}"]
        signs = [sign(student, *exercise) for exercise in found.exercises.items()]
        known = any(not mark.waits for mark in student.marks)
        total = number(student.total if known else None, "–")
        who.add_row(Text(plain(student.id)), total, " ".join(signs), Text("; ".join(notes)))
    heading = Text(f"{found.assignment}, {found.course}\n", style="bold")
    pieces: list[RenderableType] = [heading, Text(headline(found)), Text()]
    for part in (hard, said, who):
        pieces += [part, Text()] if part.rows else []
    if found.students:
        pieces[-1] = Text(SIGNS, style="dim")
    if todo := waiting(found):
        pieces += [Text(f"\nTo be graded by hand, in formgrader: {todo}")]
    if found.changes:
        pieces += [Text(), changed(found.changes)]
    if names := ", ".join(map(ids.shown, found.strange)):
        pieces += [Text(f"\nLeft out of submitted/, for their names: {names}. There, {ids.RULE}.")]
    pieces += [Text(f"\nLook: {said}.") for said in found.alike]
    return Group(*pieces)


def changed(changes: Sequence[Change], *, times: bool = True) -> RenderableType:
    """The last changes of points for a terminal, the newest first."""
    heads = ("<student", "<exercise", "before", "now", "<why")
    made = _columns("Changed points", *(["<seen, UTC"] if times else []), *heads)
    for change in changes[: -SHOWN - 1 : -1]:
        about = Text(plain(change.student)), short(change.exercise)
        points = number(change.before), number(change.points)
        made.add_row(*([change.time] if times else []), *about, *points, change.why)
    older = len(changes) - SHOWN
    return Group(made, Text(older_words(older))) if older > 0 else made


def older_words(older: int) -> str:
    return f"and {count(older, 'older one')}; tfviz-course report writes them all to changes.csv"


def without_names(found: Results, secret: str) -> Results:
    """The same results under pseudonyms, to be shown in class; without names, times, changes and
    remarks.

    A pseudonym depends on the student and on the secret of the course: it stays the same from one
    assignment to the next, and nobody else can work out whose it is. Consonants and vowels take
    turns, so that somebody can find their own.
    """
    if not secret:
        raise ValueError("secret is empty: pseudonyms made without one could be guessed")
    letters = ("bdfgklmnprstvz", "aeiou") * 6  # 118 thousand million pseudonyms
    students = []
    for one in found.students:
        digest = hmac.digest(secret.encode(), f"pseudonym {one.id}".encode(), "sha256")
        sounds = [some[byte % len(some)] for byte, some in zip(digest, letters, strict=False)]
        students.append(replace(one, id="".join(sounds), name="", minutes_late=0, remarks=()))
    students.sort(key=lambda student: student.id)
    return replace(found, students=tuple(students), strange=(), changes=(), anonymous=True)


# --- files ---------------------------------------------------------------------------------------


def write(found: Results, folder: Path) -> None:
    """Write tables and plots into this folder; plots of an earlier run do not stay."""
    folder.mkdir(parents=True, exist_ok=True)
    people = [Student(""), *found.students]  # the first gives the columns
    _csv(folder / "students.csv", *(student_row(found, student) for student in people))
    every = replace(found, exercises={"": 0.0, **found.exercises})
    _csv(folder / "exercises.csv", *(exercise_row(every, one) for one in every.exercises))
    (folder / "changes.csv").unlink(missing_ok=True)
    if found.changes:
        _csv(folder / "changes.csv", *map(change_row, (found.changes[0], *found.changes)))
    drawn = figures(found)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in all the world's letters
        for name in ("matrix.svg", "matrix.png", "totals.svg", "totals.png"):
            file = folder / name
            file.unlink(missing_ok=True)
            if file.stem in drawn:
                drawn[file.stem].save(file)


def _csv(file: Path, columns: Mapping[str, Any], *rows: Mapping[str, Any]) -> None:
    with file.open("w", encoding="utf-8-sig", newline="") as out:  # the mark is for Excel
        sheet = csv.DictWriter(out, list(columns))
        sheet.writeheader()
        sheet.writerows({key: _cell(value) for key, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, float):
        return number(value)
    return harmless(value) if isinstance(value, str) else value


def figures(found: Results) -> dict[str, Figure]:
    """The plots that these results allow: none before something is graded."""
    students = sorted(found.those(GRADED), key=lambda student: (-student.total, student.id))
    if not students or not any(found.exercises.values()):
        return {}
    made = {"matrix": _matrix(found, students)}
    return made | ({"totals": _totals(found, students)} if len(students) > 1 else {})


def _totals(found: Results, students: Sequence[Student]) -> Figure:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    from tfviz import plots

    points, most = [student.total for student in students], sum(found.exercises.values())
    wait = sum(bool(student.waiting) for student in students)
    so_far = f"points so far ({wait} wait)" if wait else "points"
    middle = "" if found.median is None else f", median {number(found.median)}"
    span = f"from {number(points[0])} down to {number(points[-1])}"
    places = range(1, len(points) + 1)
    with plots.style():  # a bar for each: a line would join people who have nothing in common
        drawing, axes = plt.subplots(figsize=(6.4, 3.4))
        axes.bar(places, points, width=0.7, color=plots.LIGHT["attention"])
        axes.set(xlabel="students, most points first", ylabel=f"{so_far}, of {number(most)}")
        axes.set(ylim=(0, most or 1), xlim=(0.4, len(points) + 0.6))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.grid(visible=False, axis="x")
    alt = f"Points of {len(points)} students, of {number(most)} possible: {span}{middle}."
    return plots.figure(drawing, alt=alt, caption="One bar for each student.")


def _matrix(found: Results, students: Sequence[Student]) -> Figure:
    import torch

    from tfviz import plots

    worth = {exercise: most for exercise, most in found.exercises.items() if most}
    points = [[student.points(exercise) for exercise in worth] for student in students]
    known = torch.tensor([[float("nan") if n is None else n for n in row] for row in points])
    shares = known / torch.tensor(list(worth.values()))
    words = []
    for exercise, most in worth.items():
        mean = exercise_row(found, exercise)["mean_points"]
        words += [f"{short(exercise)}: {'waits' if mean is None else percent(mean / most)}"]
    open_ = count(int(known.isnan().sum()), "answer")
    names = [plain(student.id, 24).replace("$", r"\$") for student in students]  # no formulas
    return plots.attention_map(
        shares.nan_to_num(0.0).clamp(0.0, 1.0),
        pattern=~known.isnan(),
        rows=names if len(names) <= NAMED_UP_TO else None,
        columns=[short(exercise) for exercise in worth],
        numbers=False,
        of="share of the points",
        xlabel="exercise",
        ylabel="student",
        alt=f"Points of {len(students)} students in {len(worth)} exercises, on average "
        f"{'; '.join(words)}. {open_} without points yet.",
        caption="The stronger the colour, the more of the points. Hatched: waits to be graded.",
    )
