"""Reports on a small made-up class: sums, files, the page, the plots, and nobody's name."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from course.classroom import environment
from PIL import Image
from rich.console import Console

from tfviz_course import page, report
from tfviz_course.plugin import config_text
from tfviz_course.report import Change, Mark, Results, Student

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader import api

ROOT = Path(__file__).resolve().parents[3]
SECRET = "5e" * 32
CELLS = {  # grade_id: (points, kind of cell), in the order of the notebook
    "ex-loops-checks": (1, "code"),
    "ex-loops-hidden": (2, "code"),
    "ex-goal-checks": (2, "code"),
    "ex-deaf-yours": (3, "markdown"),
}
DUE = datetime(2026, 12, 1, 18)
# student -> points by cell; None waits for somebody
CLASS: dict[str, dict[str, float | None]] = {
    "bob": {"ex-loops-checks": 1, "ex-loops-hidden": 0, "ex-goal-checks": 2, "ex-deaf-yours": None},
    "Ada": {"ex-loops-checks": 1, "ex-loops-hidden": 2, "ex-goal-checks": 2, "ex-deaf-yours": 2},
    "chen": {"ex-loops-checks": 0, "ex-loops-hidden": 0, "ex-goal-checks": 0, "ex-deaf-yours": 0},
}
NASTY = "<script>alert('x')</script> =1+1 \x1b[31mred\x07\n" + "long " * 400


Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """make(folder, students): a course with the assignment hw1, in nbgrader's own gradebook."""
    template = tmp_path_factory.mktemp("course")
    (template / "course.toml").write_text(f'name = "NLP & 101"\nseed = 1\nsecret = "{SECRET}"\n')
    with pytest.MonkeyPatch.context() as patch, gradebook(template, patch) as book:
        book.add_assignment("hw1", duedate=f"{DUE} UTC")
        book.add_notebook("attention", "hw1")
        for cell, (points, kind) in CELLS.items():
            book.add_grade_cell(cell, "attention", "hw1", max_score=points, cell_type=kind)
    cells = []
    for cell, (points, kind) in CELLS.items():
        exercise, _, role = cell.rpartition("-")
        about = {"grade_id": cell, "grade": True, "points": points}
        ours = {"role": role, "exercise": exercise}
        cells.append({"cell_type": kind, "metadata": {"nbgrader": about, "tfviz": ours}})
    (template / "release" / "hw1").mkdir(parents=True)
    (template / "release" / "hw1" / "attention.ipynb").write_text(json.dumps({"cells": cells}))

    def fill(
        course: Path,
        students: Mapping[str, Mapping[str, float | None]],
        *,
        missing: Sequence[str] = (),
        late: Mapping[str, int] = {},
    ) -> Path:
        shutil.copytree(template, course)
        with pytest.MonkeyPatch.context() as patch, gradebook(course, patch) as book:
            cells = book.find_notebook("attention", "hw1").grade_cells
            book.db.add_all(api.Student(id=name) for name in missing)
            for name, scores in students.items():
                hand_in(book, name, scores, cells, DUE + timedelta(minutes=late.get(name, -60)))
            book.db.commit()
        return course

    return fill


def hand_in(
    book: Any, name: str, scores: Mapping[str, float | None], cells: Sequence[Any], at: datetime
) -> None:
    """What nbgrader's add_submission does, without a commit for each student."""
    student = api.Student(id=name, first_name=f"First of {name}")
    handed = api.SubmittedAssignment(
        assignment=book.find_assignment("hw1"), student=student, timestamp=at
    )
    sheet = api.SubmittedNotebook(
        assignment=handed, notebook=book.find_notebook("attention", "hw1")
    )
    for cell in cells:
        score = scores[cell.name]
        kind = "auto_score" if cell.cell_type == "code" else "manual_score"
        grade = api.Grade(cell=cell, notebook=sheet, needs_manual_grade=score is None)
        setattr(grade, kind, score)
        book.db.add(grade)


@contextmanager
def gradebook(course: Path, patch: pytest.MonkeyPatch) -> Iterator[Any]:
    """nbgrader's gradebook of a course; it looks for alembic on the PATH when it makes one."""
    here = str(Path(sys.executable).parent)
    patch.setenv("PATH", os.pathsep.join([here, os.environ["PATH"]]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SQLAlchemy, about how nbgrader uses it
        with api.Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
            yield book


@pytest.fixture
def course(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = make(tmp_path / "nlp", CLASS, missing=["zoe"], late={"bob": 95})
    said = {
        "bob": ({("attention", "ex-loops-hidden"): "row 3 sums to 0.5"}, ("uses attention",)),
        "chen": (
            {
                ("attention", "ex-loops-checks"): "row 1 sums to 0.25",
                ("attention", "ex-loops-hidden"): "not reached",
                ("attention", "ex-goal-checks"): NASTY,
            },
            (NASTY,),
        ),
    }

    def stored(_: Path, assignment: str, student: str) -> Any:
        messages, remarks = said.get(student, ({}, ()))
        assert assignment == "hw1"
        return (
            {cell: report.plain(text) for cell, text in messages.items()},
            tuple(map(report.plain, remarks)),
        )

    monkeypatch.setattr(report, "stored", stored)
    return made


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))


def shown(found: Results, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(report.table(found))
    return out.getvalue()


def written(course: Path) -> Path:
    folder = course / "reports" / "hw1"
    page.write(report.results(course, "hw1"), folder)
    return folder


def difficulties(found: Results) -> list[dict[str, Any]]:
    return [report.exercise_row(found, exercise) for exercise in found.exercises]


# --- reading the gradebook -----------------------------------------------------------------------


def test_students_exercises_and_sums(course: Path) -> None:
    found = report.results(course, "hw1")
    assert (found.course, found.assignment) == ("NLP & 101", "hw1")
    assert found.exercises == {"ex-loops": 3, "ex-goal": 2, "ex-deaf": 3}
    assert [s.id for s in found.students] == ["Ada", "bob", "chen", "zoe"]
    assert [s.state for s in found.students] == [report.GRADED] * 3 + [report.MISSING]
    assert [s.total for s in found.students] == [7, 3, 0, 0]
    ada, bob, *_ = found.students
    assert [ada.points(e) for e in found.exercises] == [3, 2, 2]
    assert [bob.points(e) for e in found.exercises] == [1, 2, None]
    assert (ada.minutes_late, bob.minutes_late) == (0, 95)
    assert ada.name == "First of Ada"
    assert found.median is None  # bob's answer waits


def test_the_sums_are_those_of_nbgrader(course: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, gradebook(course, patch) as book:
        theirs = {s["student"]: s["score"] for s in book.submission_dicts("hw1")}
        top = book.find_assignment("hw1").max_score
    found = report.results(course, "hw1")
    assert {s.id: s.total for s in found.those(report.GRADED)} == theirs
    assert sum(found.exercises.values()) == top


def test_difficulty_of_the_exercises(course: Path) -> None:
    loops, goal, deaf = difficulties(report.results(course, "hw1"))
    assert (loops["students"], loops["solved"]) == (3, 1)
    assert loops["mean_points"] == pytest.approx(4 / 3)
    assert loops["visible_share"] == pytest.approx(2 / 3)
    assert loops["hidden_share"] == pytest.approx(1 / 3)
    assert (goal["solved"], goal["hidden_share"]) == (2, None)
    # who waits does not count as having no points
    assert (deaf["students"], deaf["waiting"]) == (2, 1)
    told = (deaf["mean_points"], deaf["solved"], deaf["visible_share"])
    assert told == (None, None, None)  # and no mean is told yet
    # two messages that differ only in their numbers are one mistake; the first cell counts
    assert (loops["message"], loops["message_students"]) == ("row 3 sums to 0.5", 2)


def test_an_empty_answer_in_words_is_no_failed_one(course: Path) -> None:
    """nbgrader gives an untouched answer in words 0 points by itself."""

    def leave_empty(*students: str) -> dict[str, Any]:
        with pytest.MonkeyPatch.context() as patch, gradebook(course, patch) as book:
            for name in students:
                grade = book.find_grade("ex-deaf-yours", "attention", "hw1", name)
                grade.auto_score, grade.manual_score, grade.needs_manual_grade = 0, None, False
            book.db.commit()
        return difficulties(report.results(course, "hw1"))[2]

    row = leave_empty("bob")
    assert (row["students"], row["unanswered"]) == (3, 1)
    assert report.solved_words(row) == "0 of 3 (1 empty)"
    assert report.solved_words(leave_empty("Ada", "chen")) == "no answer"
    assert "no answer" in shown(report.results(course, "hw1"))


def test_a_message_is_told_only_where_points_are_lost(course: Path) -> None:
    def stored(*_: object) -> Any:
        return {("attention", cell): "old message" for cell in CELLS}, ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "stored", stored)
        ada = report.results(course, "hw1").students[0]
    said = {mark.exercise: mark.message for mark in ada.marks}
    assert said == {"ex-loops": "", "ex-goal": "", "ex-deaf": "old message"}


def test_regrading_and_scores_by_hand(course: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, gradebook(course, patch) as book:
        grade = book.find_grade("ex-loops-hidden", "attention", "hw1", "bob")
        grade.manual_score, grade.extra_credit = 1.5, 0.25
        grade.needs_manual_grade = True  # so nbgrader marks it when it is graded anew
        book.find_submission("hw1", "Ada").notebooks[0].late_submission_penalty = 2.5
        book.db.commit()
    ada, bob, *_ = report.results(course, "hw1").students
    assert (bob.total, bob.waiting) == (4.75, 2)
    assert (ada.total, ada.penalty) == (4.5, 2.5)


def test_handed_in_but_not_graded(course: Path) -> None:
    (course / "submitted" / "dan" / "hw1").mkdir(parents=True)
    (course / "submitted" / "zoe" / "hw2").mkdir(parents=True)
    found = report.results(course, "hw1")
    states = {student.id: student.state for student in found.students}
    assert (states["dan"], states["zoe"]) == (report.OPEN, report.MISSING)
    assert "4 of 5 students handed in, 1 of them not graded yet" in report.headline(found)


def test_nothing_is_written_to_the_gradebook(course: Path) -> None:
    before = (course / "gradebook.db").read_bytes()
    written(course)
    assert (course / "gradebook.db").read_bytes() == before


def test_errors_name_the_remedy(tmp_path: Path, course: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no gradebook\.db.*tfviz-course assignment"):
        report.results(tmp_path, "hw1")
    with pytest.raises(ValueError, match="assignment = 'hw9' is not in the gradebook; known: hw1"):
        report.results(course, "hw9")


def test_cells_of_somebody_else_are_visible_tests(tmp_path: Path) -> None:
    about = {"grade_id": "question", "grade": True, "points": 2}
    cells = [{"metadata": {"nbgrader": about}}, {"metadata": {"nbgrader": {"grade": False}}}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    expected = {("a", "question"): Mark("question", "visible", 2.0)}
    assert report.read_cells(tmp_path) == expected


def test_the_store_of_verdicts_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = {
        "verdicts": {"ex-a-checks": {"passed": False, "message": "no\nway", "printed": ""}},
        "outputs": {},
        "remarks": ["ran out of memory"],
    }
    one = {"answers": "", "remarks": ["no file", "edited"], "judged": judged}
    entry = {"notebooks": {"attention": one, "factorized": one | {"remarks": ["edited"]}}}
    monkeypatch.setattr(report.store, "read_entry", lambda *_: entry)
    messages, remarks = report.stored(tmp_path, "hw1", "ada")
    assert messages == dict.fromkeys(
        [(name, "ex-a-checks") for name in entry["notebooks"]], "no way"
    )
    assert remarks == ("no file", "edited", "ran out of memory")  # each once
    monkeypatch.setattr(report.store, "read_entry", lambda *_: None)
    assert report.stored(tmp_path, "hw1", "ada") == ({}, ())


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (1, "1 min late"),
        (59, "59 min late"),
        (60, "1 h late"),
        (95, "1 h 35 min late"),
        (1439, "23 h 59 min late"),
        (1441, "1 d late"),
        (4350, "3 d late"),  # and half an hour
        (4380, "3 d 1 h late"),
    ],
)
def test_how_late_is_said_in_days_and_hours(minutes: int, said: str) -> None:
    assert report.late_time(minutes) == said


def test_the_table_for_a_terminal(course: Path) -> None:
    text = shown(report.results(course, "hw1"))
    assert "3 of 4 students handed in; 1 has answers that wait for you" in text
    assert "so there is no median yet." in " ".join(text.split())
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert re.search(r"7\s+● ● ◐", lines["Ada"])
    assert re.search(r"3\s+◐ ● \?\s+1 h 35 min late; uses attention", lines["bob"])
    assert re.search(r"–\s+– – –\s+did not hand in", lines["zoe"])
    assert re.search(r"loops\s+2\s+row 3 sums to 0.5", text)
    assert "To be graded by hand, in formgrader: deaf: 1 of 3" in text
    assert "\x1b" not in text and "\x07" not in text


def test_what_waits_is_no_result(make: Make, tmp_path: Path) -> None:
    """Nobody has 0 points because nobody has looked yet; when all is graded, there is a median."""
    all_waits: dict[str, float | None] = dict.fromkeys(CELLS)
    found = report.results(make(tmp_path / "a", {"x": all_waits, "y": all_waits}), "hw1")
    assert report.headline(found) == (
        "2 of 2 students handed in; 2 have answers that wait for you, so there is no median yet."
    )
    lines = {line.split()[0]: line for line in shown(found).splitlines() if line.strip()}
    assert re.search(r"x\s+–\s+\? \? \?", lines["x"])
    assert re.search(r"loops\s+3\s+–\s+–\s+–\s+–", lines["1"])
    assert {row["solved"] for row in difficulties(found)} == {None}
    assert "median" not in report.figures(found)["totals"].alt
    assert [report.student_row(found, s)["ex-deaf"] for s in found.students] == [None, None]
    done = {name: CLASS[name] for name in ("Ada", "chen")}
    found = report.results(make(tmp_path / "b", done), "hw1")
    assert "2 of 2 students handed in; the median is 3.5 of 8 points." in shown(found)
    assert "median 3.5" in report.figures(found)["totals"].alt


def test_plain_text_is_bounded() -> None:
    assert report.plain(NASTY, 60) == "<script>alert('x')</script> =1+1 [31mred long long long lon…"
    assert report.plain("a" * 10**7).endswith("…")
    assert report.plain("\u202eabc\u2066") == "abc"  # no turning of the direction


@pytest.mark.parametrize(("value", "text"), [(2.0, "2"), (2.5, "2.5"), (7 / 3, "2.33"), (None, "")])
def test_numbers(value: float | None, text: str) -> None:
    assert report.number(value) == text


# --- files ---------------------------------------------------------------------------------------


def test_students_csv(course: Path) -> None:
    folder = written(course)
    ada, bob, chen, zoe = rows(folder / "students.csv")
    assert (ada["student"], ada["points"], ada["maximum"]) == ("Ada", "7", "8")
    assert (ada["ex-loops"], ada["ex-goal"], ada["ex-deaf"]) == ("3", "2", "2")
    assert (bob["points"], bob["ex-deaf"]) == ("3", "")  # so far; and it waits
    assert (bob["minutes_late"], bob["waiting"], bob["remarks"]) == ("95", "1", "uses attention")
    assert (chen["points"], zoe["points"], zoe["state"]) == ("0", "", "did not hand in")
    assert sum(float(row["points"] or 0) for row in (ada, bob, chen)) == 10


def test_exercises_csv(course: Path) -> None:
    loops, goal, deaf = rows(written(course) / "exercises.csv")
    assert (loops["solved"], loops["students"], loops["visible_share"]) == ("1", "3", "0.67")
    assert (loops["message"], loops["message_students"]) == ("row 3 sums to 0.5", "2")
    assert (goal["hidden_share"], deaf["waiting"], deaf["mean_points"]) == ("", "1", "")


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@sum",
    "\tx",
    "\rx",
    "\n=1",
    " =1",
    "\u00a0+1",
    "\uff1d1",
    "\uff20x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_spreadsheet_takes_text_for_a_formula(text: str) -> None:
    assert report._cell(text) == f"'{text}"
    assert report._cell(-1) == -1
    for plain in ("a=1", "1-1", "", " ", "O'Brien", "Å+", "李雷"):
        assert report._cell(plain) == plain


def test_one_place_knows_what_a_formula_is() -> None:
    """Whatever writes a CSV file here asks `sheets.harmless`; who writes another one must, too."""
    package = Path(report.__file__).parent
    writes = re.compile(r"csv\.(writer|DictWriter)|extensions\.csv\"\) as")
    found = {path.stem for path in package.glob("*.py") if writes.search(path.read_text("utf8"))}
    assert found == {"report", "gradebooks", "plugin", "settings"}
    for name in found:
        assert "from tfviz_course.sheets import harmless" in (package / f"{name}.py").read_text()


def test_nbgraders_export_is_a_table_without_formulas(course: Path) -> None:
    """By the command that the guide gives; names with commas, quotes and lines stay in one cell."""
    names = {"ada": '=HYPERLINK("http://x","y")', "bob": 'L, "Bob"', "chen": "+1\n2"}
    with api.Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        for student, last in names.items():
            mail = {"email": "@sum(1+1)", "first_name": "\uff0d1"}
            book.update_or_create_student(student, last_name=last, **mail)
        book.update_or_create_student("-1")
    (course / "nbgrader_config.py").write_text(config_text("nlp"), "utf8")
    command = [sys.executable, "-m", "nbgrader", "export", "--to", "out.csv"]
    told: Any = {"env": environment(), "capture_output": True, "timeout": 120}
    subprocess.run(command, cwd=course, check=True, **told)
    found = {row["student_id"]: row for row in rows(course / "out.csv")}
    assert {name: found[name]["last_name"] for name in names} == {
        "ada": "'" + names["ada"],
        "bob": names["bob"],
        "chen": "'" + names["chen"],
    }
    assert found["ada"]["email"] == "'@sum(1+1)" and found["ada"]["first_name"] == "'\uff0d1"
    assert found["'-1"]["score"] == "0.0" and float(found["ada"]["max_score"]) > 0
    head = (course / "out.csv").read_text("utf8").partition("\n")[0]
    assert head == (
        "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,"
        "late_submission_penalty,score,max_score"
    )


def test_nbgrader_exports_beside_it(course: Path) -> None:
    written(course)
    command = [sys.executable, "-m", "nbgrader", "export", f"--db=sqlite:///{course}/gradebook.db"]
    subprocess.run(command, cwd=course, check=True, capture_output=True, timeout=120)
    theirs = {row["student_id"]: row for row in rows(course / "grades.csv")}
    ours = {row["student"]: row for row in rows(course / "reports" / "hw1" / "students.csv")}
    assert theirs.keys() == ours.keys()
    for name, row in theirs.items():
        assert float(row["score"]) == float(ours[name]["points"] or 0)
        assert float(row["max_score"]) == float(ours[name]["maximum"])


# --- plots ---------------------------------------------------------------------------------------


def test_plots_are_not_empty(course: Path) -> None:
    folder = written(course)
    for name in ("totals", "matrix"):
        picture = Image.open(folder / f"{name}.png").convert("RGB")
        colours = {colour for _, colour in picture.getcolors(10**6) or ()}
        assert (0x9C, 0x32, 0xED) in colours and len(colours) > 20
        svg = (folder / f"{name}.svg").read_text("utf-8")
        assert 'aria-label="' in svg and "<path" in svg


def test_plots_say_what_they_show(course: Path) -> None:
    drawn = report.figures(report.results(course, "hw1"))
    assert drawn["totals"].alt == "Points of 3 students, of 8 possible: from 7 down to 0."
    assert "on average loops: 44 %; goal: 67 %; deaf: waits." in drawn["matrix"].alt
    assert "1 answer without points yet." in drawn["matrix"].alt
    assert "share of the points<" in drawn["matrix"].svg and "weight<" not in drawn["matrix"].svg


def test_totals_do_not_join_students(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a mark of their own: no line runs from one to the next."""
    from tfviz import plots

    drawn: list[Any] = []
    monkeypatch.setattr(plots, "figure", lambda drawing, **_: drawn.append(drawing))
    report.figures(report.results(course, "hw1"))
    (axes,) = drawn[0].axes
    assert not axes.lines and [bar.get_height() for bar in axes.patches] == [7, 3, 0]
    assert axes.get_xlabel() == "students, most points first"


def test_what_waits_is_not_painted_like_zero(make: Make, tmp_path: Path) -> None:
    """Two classes that differ in this alone: the same answer has no points, or none yet."""
    kept = {name: CLASS[name] for name in ("Ada", "chen")}
    waits = {**kept, "chen": {**CLASS["chen"], "ex-deaf-yours": None}}
    drawn = [
        report.figures(report.results(make(tmp_path / str(n), students), "hw1"))["matrix"].svg
        for n, students in enumerate((kept, waits))
    ]
    assert ["tfviz-hatch" in svg or 'class="hatch' in svg for svg in drawn] == [False, True]


def class_of(count: int, seed: int = 1) -> dict[str, dict[str, float | None]]:
    rng = random.Random(seed)
    return {
        f"s{n:03d}": {
            cell: None if kind == "markdown" and rng.random() < 0.3 else rng.choice([0, points])
            for cell, (points, kind) in CELLS.items()
        }
        for n in range(count)
    }


@pytest.mark.parametrize("count", [0, 1, 300])
def test_classes_of_any_size(make: Make, tmp_path: Path, count: int) -> None:
    students = class_of(count)
    course = make(tmp_path / "nlp", students, missing=["none-of-it"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "stored", lambda *_: ({}, ()))
        found = report.results(course, "hw1")
        folder = written(course)
    assert len(found.those(report.GRADED)) == count
    expected = sum(points or 0 for scores in students.values() for points in scores.values())
    assert sum(student.total for student in found.students) == expected
    assert len(rows(folder / "students.csv")) == count + 1
    assert len(rows(folder / "exercises.csv")) == 3
    assert (folder / "matrix.png").exists() == (count > 0)
    assert (folder / "totals.png").exists() == (count > 1)
    assert "did not hand in" in shown(found)


def test_a_course_without_anybody(make: Make, tmp_path: Path) -> None:
    course = make(tmp_path / "nlp", {})
    folder = written(course)
    assert rows(folder / "students.csv") == []
    assert "Nothing is graded yet" in shown(report.results(course, "hw1"))


def test_plots_of_an_earlier_run_do_not_stay(course: Path, make: Make, tmp_path: Path) -> None:
    folder = written(course)
    assert (folder / "totals.svg").exists()
    shutil.copy(make(tmp_path / "nobody", {}) / "gradebook.db", course)
    written(course)
    assert not (folder / "totals.svg").exists() and not (folder / "totals.png").exists()


def test_names_in_all_letters(make: Make, tmp_path: Path) -> None:
    scores = dict.fromkeys(CELLS, 1.0)
    course = make(tmp_path / "nlp", {"李雷": scores, "$x^$": scores, "<b>&": scores})
    folder = written(course)  # warnings are errors in these tests
    assert {row["student"] for row in rows(folder / "students.csv")} == {"李雷", "$x^$", "<b>&"}


# --- what students wrote -------------------------------------------------------------------------


def test_a_long_id_leaves_the_points_on_the_screen(make: Make, tmp_path: Path) -> None:
    """And the remarks: on one line with its beginning."""
    name = "x" * 64
    found = report.results(make(tmp_path / "nlp", {name: CLASS["Ada"]}, late={name: 95}), "hw1")
    text = shown(found, 80)
    line = next(line for line in text.splitlines() if line.startswith("xxx"))
    assert re.search(r"7\s+● ● ◐\s+1 h 35 min late", line) and text.count("x") >= 64


@pytest.mark.parametrize(("number", "words"), [(2, "and 1 more remark"), (3, "and 2 more remarks")])
def test_one_remark_and_many(make: Make, tmp_path: Path, number: int, words: str) -> None:
    found = report.results(make(tmp_path / "nlp", {"Ada": CLASS["Ada"]}), "hw1")
    ada = replace(found.students[0], remarks=tuple(f"odd {n}" for n in range(number)))
    (line,) = [x for x in shown(replace(found, students=(ada,))).splitlines() if "Ada" in x]
    assert line.rstrip().endswith(words)


@pytest.mark.parametrize("width", [40, 50, 60, 70])
def test_a_forged_message_stays_beside_its_own_exercise(course: Path, width: int) -> None:
    """Spaces that would wrap in a terminal, so that the message goes on like another line: it goes
    on below itself, in its own column."""
    found = report.results(course, "hw1")
    forged = "my own fault." + ("\n" + " " * 200 + "deaf  40  the model answer is wrong") * 2
    mark = Mark("ex-loops", "visible", 1.0, message=report.plain(forged))
    chen = replace(found.students[2], marks=(mark,))
    lines = shown(replace(found, students=(chen,)), width).splitlines()
    (place,) = [n for n, line in enumerate(lines) if "my own fault" in line]
    column = lines[place].index("my own fault")
    more = list(itertools.takewhile(str.strip, lines[place + 1 :]))
    assert lines[place].startswith("loops") and "40" in "".join([lines[place], *more])
    assert more and not "".join(line[:column] for line in more).strip()


# --- the page ------------------------------------------------------------------------------------


def test_the_page_says_who_what_and_what_waits(course: Path) -> None:
    html = (written(course) / "report.html").read_text("utf8")
    said = ("3 of 4 students handed in", "deaf: 1 of 3", "First of Ada", "1 h 35 min late")
    for part in (*said, "uses attention", "did not hand in", "row 3 sums to 0.5 (2 students)"):
        assert part in html, part
    assert html.count("<figure>") == 2 and html.count('aria-label="waits"') == 1
    assert "<script" not in html and "&lt;script&gt;" in html  # what a student wrote
    assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?(https?:)?//", html)
    anonymous = report.without_names(report.results(course, "hw1"), SECRET)
    nameless = page.html(anonymous)
    assert not [name for name in ("Ada", "bob", "chen", "zoe", "First") if name in nameless]


@pytest.mark.parametrize("count", [0, 1, 80])
def test_the_page_of_any_class(make: Make, tmp_path: Path, count: int) -> None:
    found = report.results(make(tmp_path / "nlp", class_of(count), missing=["zoe"]), "hw1")
    html = page.html(found)
    assert html.count('<tr><th scope="row"') == count + 1 + len(found.exercises)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(course: Path, browser: Any, theme: str, width: int) -> None:
    """axe finds nothing, nothing hides beside the screen, no other host is asked for anything."""
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    folder = written(course)
    about = "2026-12-01 18:05", "Ada", "ex-loops", 1.0, 3.0
    changes = Change(*about, "worth 3 points instead of 1; other answers handed in; points by hand")
    found = replace(report.results(course, "hw1"), changes=(changes, changes))
    (folder / "report.html").write_text(page.html(found), "utf8")
    view.goto((folder / "report.html").as_uri())
    assert len(asked) == 1
    assert view.evaluate("document.documentElement.scrollWidth") == width
    aside = (
        "[...document.querySelectorAll('.wide')].map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert view.evaluate(aside) == [0, 0, 0]  # on a phone each row is a card
    view.add_script_tag(path=ROOT / "node_modules/axe-core/axe.min.js")
    assert view.evaluate("axe.run().then((found) => found.violations.map((one) => one.id))") == []
    if shots := os.environ.get("TFVIZ_SHOTS"):
        view.screenshot(path=f"{shots}/report-{theme}-{width}.png", full_page=True)
    view.close()


# --- without names -------------------------------------------------------------------------------


def test_without_names(course: Path, tmp_path: Path) -> None:
    named = report.results(course, "hw1")
    nameless = report.without_names(named, SECRET)
    page.write(nameless, tmp_path / "anonymous")
    known = ["Ada", "bob", "chen", "zoe", "First of", "uses attention", "95", "script"]
    for text in [
        shown(nameless),
        *(file.read_text("utf-8") for file in (tmp_path / "anonymous").glob("*.csv")),
        *(drawn.alt for drawn in report.figures(nameless).values()),
    ]:
        assert not [word for word in known if word in text], text
    assert not [w for w in known[:4] if w in (tmp_path / "anonymous/matrix.svg").read_text()]
    assert sorted(s.total for s in nameless.students) == sorted(s.total for s in named.students)
    names = [student.id for student in nameless.students]
    assert names == sorted(names) and len(set(names)) == 4


def test_in_class_no_message_of_a_hidden_test_or_of_one_student(course: Path) -> None:
    named = report.results(course, "hw1")
    loops, goal, _ = difficulties(report.without_names(named, SECRET))
    assert (loops["message"], goal["message"]) == ("", "")
    twins = [replace(named.students[2], id=name) for name in ("x", "y")]
    together = replace(named, students=tuple(twins), anonymous=True)
    assert difficulties(together)[0]["message"] == "row 1 sums to 0.25"


def test_pseudonyms_stay_and_cannot_be_guessed(course: Path) -> None:
    found = report.results(course, "hw1")
    other = replace(found, students=found.students[:2], assignment="hw2")

    def names(results: Results, secret: str = SECRET) -> set[str]:
        return {student.id for student in report.without_names(results, secret).students}

    assert names(other) < names(found)
    assert not names(found) & names(found, "00" * 32)
    with pytest.raises(ValueError, match="secret is empty"):
        report.without_names(found, "")
    many = replace(found, students=tuple(Student(f"s{n}") for n in range(3000)))
    assert len(names(many)) == 3000
