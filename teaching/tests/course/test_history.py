"""The log of changed points: what changed, when it was seen, and why."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from course import classroom
from course.classroom import NAME

from tfviz_course import CourseError, assignment, command, history, page, report, store
from tfviz_course.report import GRADED, LATE, Change, Mark, Results, Student

ADA = Student("ada", state=GRADED, marks=(Mark("ex-loops", "visible", 3.0, 1.0),))


def results(*students: Student, most: float = 3.0) -> Results:
    return Results("NLP", "hw1", {"ex-loops": most}, students)


def with_points(points: float, **more: Any) -> Student:
    return replace(ADA, marks=(replace(ADA.marks[0], points=points, **more),))


def handed_in(course: Path, answers: str) -> None:
    notebooks = {"attention": {"answers": answers}}
    entry = {"format": store.FORMAT, "student": "ada", "notebooks": notebooks}
    store.write_entry(course, "hw1", entry)


def told(changes: tuple[Change, ...]) -> list[tuple[str, str, float, float, str]]:
    return [(one.student, one.exercise, one.before, one.points, one.why) for one in changes]


def test_each_reason_is_told(tmp_path: Path) -> None:
    handed_in(tmp_path, "a")
    steps: list[tuple[Results, str]] = [
        (results(ADA), ""),  # the first points are no change
        (results(ADA), ""),
        (results(with_points(2)), "judged again, with the same answers"),
        (results(with_points(4), most=6), "worth 6 points instead of 3"),
        (results(with_points(5, by_hand=5.0), most=6), "points by hand"),
        (results(with_points(4.5, by_hand=4.5), most=6), "points by hand"),
        (results(with_points(4), most=6), "no points by hand any more"),
    ]
    points = 1.0
    for found, why in steps:
        before, points = points, found.students[0].total
        _, new = history.update(tmp_path, found)
        assert told(new) == ([("ada", "ex-loops", before, points, why)] if why else [])
    handed_in(tmp_path, "b")
    _, new = history.update(tmp_path, results(ADA))
    reasons = "worth 3 points instead of 6; other answers handed in"
    assert told(new) == [("ada", "ex-loops", 4, 1, reasons)]
    whole, new = history.update(tmp_path, results(ADA))
    assert not new and [one.points for one in whole.changes] == [2, 4, 5, 4.5, 4, 1]
    assert all(len(one.time) == len("2026-11-25 06:41") for one in whole.changes)


def test_what_waits_is_compared_when_it_is_there(tmp_path: Path) -> None:
    handed_in(tmp_path, "a")
    history.update(tmp_path, results(with_points(3, by_hand=3.0)))
    handed_in(tmp_path, "b")
    waits = with_points(3, by_hand=3.0, waits=True)
    assert not history.update(tmp_path, results(waits))[1]
    _, new = history.update(tmp_path, results(with_points(2, by_hand=2.0)))
    assert told(new) == [("ada", "ex-loops", 3, 2, "other answers handed in; points by hand")]


def test_a_penalty_is_told_once_all_points_are_there(tmp_path: Path) -> None:
    late = replace(ADA, penalty=0.5, minutes_late=95)
    history.update(tmp_path, results(ADA))
    waits = replace(late, marks=with_points(1, waits=True).marks)
    assert not history.update(tmp_path, results(waits))[1]
    _, new = history.update(tmp_path, results(late))
    assert told(new) == [("ada", LATE, 0, -0.5, "1 h 35 min late")]
    _, new = history.update(tmp_path, results(ADA))
    assert told(new) == [("ada", LATE, -0.5, 0, "in time now")]


def test_only_who_is_graded_has_points(tmp_path: Path) -> None:
    missing = Student("bob")
    history.update(tmp_path, results(ADA, missing))
    bob = replace(with_points(2), id="bob")
    assert not history.update(tmp_path, results(ADA, bob))[1]
    odd = replace(ADA, id="a/../b")  # of a gradebook of somebody else
    assert not history.update(tmp_path, results(odd))[1]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    history.update(tmp_path, results(ADA))
    path = tmp_path / history.FOLDER / "hw1.json"
    whole = path.read_text()
    for text in (whole[:40], "[]", whole.replace('"format": 1', '"format": 9')):
        path.write_text(text)
        with pytest.raises(CourseError, match=r"hw1.json, the log .* cannot be read.* move it"):
            history.update(tmp_path, results(ADA))
        assert path.read_text() == text


AT_ONCE = """
import sys
from pathlib import Path
from tfviz_course import history
from tfviz_course.report import GRADED, Mark, Results, Student
for n in range(40):
    mark = Mark("ex-loops", "visible", 99.0, float(n))
    student = Student(sys.argv[2], state=GRADED, marks=(mark,))
    history.update(Path(sys.argv[1]), Results("NLP", "hw1", {"ex-loops": 99.0}, (student,)))
"""


def test_two_at_a_time_lose_nothing(tmp_path: Path) -> None:
    names = ("ada", "bob")
    begin: Any = [sys.executable, "-W", "ignore", "-c", AT_ONCE, str(tmp_path)]
    both = [subprocess.Popen([*begin, name], env=classroom.environment()) for name in names]
    assert [one.wait(120) for one in both] == [0, 0]
    whole, _ = history.update(tmp_path, results())
    assert {name: sum(one.student == name for one in whole.changes) for name in names} == {
        "ada": 39,
        "bob": 39,
    }


# --- where it is shown ---------------------------------------------------------------------------

MANY = tuple(
    Change("2026-11-25 06:41", f"s{n:03d}", "ex-loops", 0.0, float(n), "points by hand")
    for n in range(report.SHOWN + 3)
)


def test_the_newest_are_shown_and_all_are_written(tmp_path: Path) -> None:
    found = replace(results(ADA), changes=MANY)
    html = page.html(found)
    assert html.count(">points by hand<") == report.SHOWN
    assert html.index(">s022<") < html.index(">s003<") and ">s002<" not in html
    assert "and 3 older ones" in html
    report.write(found, tmp_path)
    with (tmp_path / "changes.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["student"] for row in rows] == [one.student for one in MANY]
    assert rows[2] == {
        "seen_utc": "2026-11-25 06:41",
        "student": "s002",
        "exercise": "ex-loops",
        "before": "0",
        "now": "2",
        "why": "points by hand",
    }
    report.write(results(ADA), tmp_path)
    assert not (tmp_path / "changes.csv").exists()
    assert "Points that changed" not in page.html(results(ADA))


def test_in_class_nobody_sees_whose_points_changed() -> None:
    nameless = report.without_names(replace(results(ADA), changes=MANY), "5e" * 32)
    assert not nameless.changes and "Points that changed" not in page.html(nameless)


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
@pytest.mark.filterwarnings("ignore")  # of SQLAlchemy, about how nbgrader uses it
def test_every_command_tells_what_changed(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real class: points by hand are seen by the next command, and told once as new."""
    graded = classroom.graded(tmp_path_factory.getbasetemp())
    course = Path(shutil.copytree(graded, tmp_path / "class"))

    def run(what: str, *more: str) -> str:
        assert command.main([what, NAME, *more, "--course", str(course)]) == 0
        return capsys.readouterr().out

    def by_hand(points: float) -> None:
        with assignment.api(course).gradebook as book:
            (sheet,) = (
                sheet
                for sheet in book.find_submission(NAME, "ada").notebooks
                if any(grade.name == "ex-repair-yours" for grade in sheet.grades)
            )
            (grade,) = (grade for grade in sheet.grades if grade.name == "ex-repair-yours")
            grade.manual_score, grade.needs_manual_grade = points, False
            book.db.commit()

    assert "Changed points" not in run("report")
    by_hand(2.0)
    assert "Changed points" not in run("feedback", "--student", "ada")  # the first points of it
    by_hand(3.0)
    assert "Changed points" in run("feedback", "--student", "ada")
    assert "Changed points" not in run("feedback", "--student", "ada")
    by_hand(1.0)
    regraded = run("autograde", "--student", "ada")
    assert "Changed points" in regraded and " 3    1  points by hand" in regraded
    text = run("report")
    assert " 3    1  points by hand" in text and " 2    3  points by hand" in text
    assert "changes.csv" in text and (course / "reports" / NAME / "changes.csv").is_file()
    assert "Changed points" not in run("report", "--anonymous")
