"""Grading a class: every submission gets its points, whatever happens in the middle."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from course import classroom
from course.classroom import NAME, ROOT, hand_in, points, remarks, scores, solution

from tfviz_course import (
    CourseError,
    assignment,
    autograde,
    child,
    command,
    judge,
    report,
    sandbox,
    store,
)
from tfviz_course.judge import Judged, Verdict
from tfviz_course.sandbox import Unavailable
from tfviz_course.store import read_entry

if sys.platform != "linux":
    pytest.skip("the sandbox needs Linux", allow_module_level=True)

STUDENTS = ("ada", "bob", "cleo", "dan", "eve", "fay")
CELLS = {
    "ex-sharpness-checks",
    "ex-sharpness-hidden",
    "ex-repair-yours",
    "ex-best-stride-checks",
    "ex-best-stride-hidden",
}


@pytest.fixture
def graded(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """The class after a real run, in a folder of the test's own."""
    course = classroom.graded(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(course, tmp_path / "class"))


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A course in which nobody handed in anything."""
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


class Cells(list[tuple[str, str]]):
    """In place of `Prepared`: the cells of tests and their exercises."""

    tasks = ()

    def graded(self) -> list[str]:
        return [name for name, _ in self]


@dataclasses.dataclass
class Instant:
    """In place of the judge: an answer passes if it says RIGHT; counts what it was asked."""

    log: Path

    @property
    def asked(self) -> list[str]:
        return sorted(self.log.read_text().split()) if self.log.exists() else []

    def prepare(self, source: Any) -> Cells:
        return Cells(
            (cell.metadata.nbgrader.grade_id, cell.metadata.tfviz.exercise)
            for cell in source.cells
            if cell.metadata.tfviz.role in ("checks", "hidden")
        )

    def judge(
        self,
        prepared: Cells,
        answers: Mapping[str, str],
        *,
        student: str,
        **more: Any,
    ) -> Judged:
        with open(self.log, "a") as log:  # in a child: memory is not shared
            log.write(f"{student}\n")
        if any("DIE" in source for source in answers.values()):
            os._exit(9)
        if any("RAISE" in source for source in answers.values()):
            raise RuntimeError("the judge has a mistake")
        if any("STUCK" in source for source in answers.values()):
            raise Unavailable("its process does not start")
        if any("LATE" in s for s in answers.values()) and self.asked.count(student) < 3:
            fails = {cell: Verdict(False, "too long") for cell, _ in prepared}
            own = any("OWN" in source for source in answers.values())  # words of the student's
            who = "cell 'x' of the assignment fails for a submission" if own else "ex-sharpness"
            return Judged(fails, {}, (f"{who}: ran out of time: the machine was busy",))
        verdicts = {}
        for cell, exercise in prepared:
            right = "RIGHT" in answers.get(f"{exercise}-yours", "")
            verdicts[cell] = Verdict(right, "" if right else "it does not say RIGHT")
        return Judged(verdicts, {})


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Instant:
    """The judge replaced, in children too, as these are forked."""
    made = Instant(tmp_path / "asked")
    monkeypatch.setattr(judge, "prepare", made.prepare)
    monkeypatch.setattr(child, "judge", made.judge)
    monkeypatch.setattr(sandbox, "available", lambda: None)
    return made


RIGHT = {"ex-sharpness": "beta_for = 'RIGHT'", "ex-best-stride": "RIGHT"}


# --- a class, for real ---------------------------------------------------------------------------


def test_everybody_gets_points(graded: Path) -> None:
    both = ("ex-sharpness-checks", "ex-sharpness-hidden")
    code = {*both, "ex-best-stride-checks", "ex-best-stride-hidden"}
    right = {"ada": code, "bob": set(), "cleo": {both[0]}, "dan": {both[0]}, "eve": set()}
    for student, passed in (right | {"fay": code}).items():
        rows = scores(graded, student)
        assert rows.keys() == CELLS
        assert {cell for cell, row in rows.items() if row["score"]} == passed
        assert all(row["auto"] is not None for cell, row in rows.items() if not row["waits"])


def test_words_wait_for_a_person_unless_there_are_none(graded: Path) -> None:
    waits = {student: scores(graded, student)["ex-repair-yours"]["waits"] for student in STUDENTS}
    assert {student for student, wait in waits.items() if wait} == {"ada", "dan"}
    assert scores(graded, "bob")["ex-repair-yours"]["auto"] == 0


def test_remarks(graded: Path) -> None:
    assert remarks(graded, "ada") == ()
    assert remarks(graded, "eve") == ("no file for this notebook was found: all answers are empty",)
    assert "read from the file 'attention (1).ipynb'" in remarks(graded, "fay")[0]


def test_side_by_side_and_one_after_the_other(graded: Path) -> None:
    before = {name: read_entry(graded, NAME, name) for name in ("ada", "cleo")}
    autograde.autograde(graded, NAME, students=before, workers=1, again=True, judge_only=True)
    for name, entry in before.items():
        after = read_entry(graded, NAME, name)
        assert entry is not None and after is not None
        for notebook, part in entry["notebooks"].items():
            assert after["notebooks"][notebook]["judged"] == part["judged"]
            assert part["judged"]["verdicts"]


def test_a_second_run_judges_nothing(graded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {student: scores(graded, student) for student in STUDENTS}
    monkeypatch.setattr(judge, "prepare", lambda source: None)
    assert autograde.autograde(graded, NAME) == dict.fromkeys(STUDENTS, 0.0)
    assert {student: scores(graded, student) for student in STUDENTS} == before


# --- handing in again ----------------------------------------------------------------------------


def test_only_what_changed_is_judged_anew(course: Path, instant: Instant) -> None:
    hand_in(course, "ada", RIGHT)
    hand_in(course, "bob", {})
    autograde.autograde(course, NAME)
    assert instant.asked == ["ada", "ada", "bob", "bob"]  # for each of the two notebooks
    assert sum(points(course, "bob").values()) == 0
    hand_in(course, "bob", {"ex-sharpness": "RIGHT"})
    autograde.autograde(course, NAME)
    assert instant.asked == [*["ada"] * 2, *["bob"] * 4]
    assert points(course, "bob")["ex-sharpness-hidden"] > 0
    hand_in(course, "ada", {"ex-sharpness": "beta_for = 'RIGHT'"})
    autograde.autograde(course, NAME)
    assert points(course, "ada")["ex-best-stride-hidden"] == 0
    autograde.autograde(course, NAME, students=["bob"], again=True)
    assert instant.asked == [*["ada"] * 4, *["bob"] * 6]


def test_an_unchanged_submission_is_not_rebuilt(
    course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read = autograde.read_submission

    def counted(files: Any, told: Any, releases: Any, student: str, *more: Any) -> Any:
        asked.append(student)
        return read(files, told, releases, student, *more)

    monkeypatch.setattr(autograde, "read_submission", counted)

    def run(**more: Any) -> list[str]:
        asked.clear()
        autograde.autograde(course, NAME, **more)
        return list(asked)

    ada = hand_in(course, "ada", RIGHT)
    hand_in(course, "bob", {})
    assert (run(), run()) == (["ada", "bob"], [])
    (ada / "timestamp.txt").write_text("2026-12-01 18:30:00 UTC")
    assert (run(), run()) == (["ada"], [])
    hand_in(course, "bob", RIGHT)
    assert run() == ["bob"] and points(course, "bob")["ex-sharpness-hidden"] > 0
    (course / ".tfviz/rebuilt/ada" / NAME / "attention.ipynb").write_text("{}")
    assert (run(), run()) == (["ada"], [])
    release = course / "release" / NAME / "attention.ipynb"
    release.write_text(release.read_text().replace("Only what stands", "What stands"))
    assert run() == ["ada", "bob"]
    assert run(again=True) == ["ada", "bob"]


def test_another_test_or_limit_or_secret_judges_anew(course: Path, instant: Instant) -> None:
    hand_in(course, "ada", RIGHT)

    def run(**more: Any) -> int:
        before = len(instant.asked)
        autograde.autograde(course, NAME, **more)
        return len(instant.asked) - before

    assert (run(), run()) == (2, 0)
    assert run(limits=sandbox.Limits(seconds=99)) == 2
    assert (run(), run()) == (2, 0)
    toml = course / "course.toml"
    toml.write_text(toml.read_text().replace("c0de", "beef"))
    assert (run(), run()) == (2, 0)
    path = course / "source" / NAME / "attention.ipynb"
    path.write_text(path.read_text().replace("a few entries", "entries").replace("0.99", "0.98"))
    assert (run(), run()) == (2, 0)  # a submission is judged as a whole


@pytest.mark.parametrize("now", ["garbage", "another format", "nothing", "a link", "no folder"])
def test_no_score_outlives_its_answer(course: Path, instant: Instant, now: str) -> None:
    folder = hand_in(course, "ada", RIGHT)
    autograde.autograde(course, NAME)
    assert min(points(course, "ada")[cell] for cell in CELLS - {"ex-repair-yours"}) > 0
    for path in folder.glob("*.ipynb"):
        path.unlink()
        if now == "garbage":
            path.write_bytes(b"\x00\xff")
        elif now == "another format":
            path.write_text('{"nbformat": 99}')
        elif now == "a link":
            path.symlink_to(course / "source" / NAME / path.name)
    if now == "no folder":
        folder.rmdir()
        folder.write_text("a file")
    autograde.autograde(course, NAME)
    assert points(course, "ada") == dict.fromkeys(CELLS, 0)
    assert remarks(course, "ada")


def test_what_a_person_gave_stays(course: Path, instant: Instant) -> None:
    hand_in(course, "ada", RIGHT | {"ex-repair": "So."})
    autograde.autograde(course, NAME)
    with assignment.api(course).gradebook as book:
        for cell, score in (("ex-repair-yours", 1.5), ("ex-sharpness-hidden", 0.25)):
            grade = book.find_grade(cell, "attention", NAME, "ada")
            grade.manual_score, grade.needs_manual_grade = score, False
        book.find_comment("ex-sharpness-yours", "attention", NAME, "ada").manual_comment = "Fine"
        book.db.commit()

    def look() -> tuple[float, float, bool, str]:
        rows = scores(course, "ada")
        words, hidden = rows["ex-repair-yours"], rows["ex-sharpness-hidden"]
        with assignment.api(course).gradebook as book:
            said = book.find_comment("ex-sharpness-yours", "attention", NAME, "ada").comment
        return words["score"], hidden["score"], words["waits"] or hidden["waits"], said

    autograde.autograde(course, NAME)
    assert look() == (1.5, 0.25, False, "Fine")
    hand_in(course, "ada", RIGHT | {"ex-repair": "Otherwise."})  # somebody must look again
    autograde.autograde(course, NAME)
    assert look() == (1.5, 0.25, True, "Fine")


def test_late(course: Path, instant: Instant) -> None:
    with open(course / "nbgrader_config.py", "a") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    with assignment.api(course).gradebook as book:
        book.update_or_create_assignment(NAME, duedate="2026-12-01 18:00:00")
    for student, stamp in (
        ("ada", "2026-12-01 17:59:00 UTC"),
        ("bob", "2026-12-01 18:30:00 UTC\n"),
        ("cleo", "yesterday, I swear"),
        ("dan", ""),
    ):
        (hand_in(course, student, RIGHT) / "timestamp.txt").write_text(stamp)
    os.mkfifo(hand_in(course, "eve", RIGHT) / "timestamp.txt")
    autograde.autograde(course, NAME)
    with assignment.api(course).gradebook as book:
        late = {s.student.id: s.total_seconds_late for s in book.assignment_submissions(NAME)}
        total = {s.student.id: s.score for s in book.assignment_submissions(NAME)}
        penalty = sum(
            n.late_submission_penalty or 0 for n in book.find_submission(NAME, "bob").notebooks
        )
    assert late == {"ada": 0, "bob": 1800, "cleo": 0, "dan": 0, "eve": 0}
    assert penalty == total["bob"] > 0
    assert "timestamp.txt says 'yesterday, I swear'" in remarks(course, "cleo")[0]
    assert "timestamp.txt" in remarks(course, "eve")[0]


@pytest.mark.filterwarnings("ignore")  # of SQLAlchemy, about how nbgrader uses it
def test_late_days(course: Path, instant: Instant) -> None:
    """By the rule in course.toml: graded, given points by hand, given more time."""
    settings = course / "course.toml"
    rule = "[late]\ngrace_hours = 2\nfree_days = 1\nper_day = 0.25\nmost_days = 4\n"
    settings.write_text(f"{settings.read_text()}{rule}")
    assignment.create_assignment(course, "hw0", ["ex-sharpness"], due=datetime(2026, 11, 1))
    with assignment.api(course).gradebook as book:
        book.update_or_create_assignment(NAME, duedate="2026-12-01 18:00:00")
    for name, student, stamp in (
        ("hw0", "spent", "2026-11-01 09:00:00"),  # takes the free day
        (NAME, "spent", "2026-12-02 20:00:00"),  # a day late, to the second
        (NAME, "grace", "2026-12-01 20:00:00"),
        (NAME, "free", "2026-12-01 20:00:01"),
        (NAME, "two", "2026-12-02 20:00:01"),
        (NAME, "last", "2026-12-05 20:00:00"),
        (NAME, "over", "2026-12-05 20:00:01"),
        (NAME, "more", "2026-12-05 20:00:01"),  # who was given a day before anything was graded
    ):
        (hand_in(course, student, RIGHT, name) / "timestamp.txt").write_text(f"{stamp} UTC")

    def costs(name: str = NAME) -> dict[str, float]:
        found = report.results(course, name).students
        full = {s.id: sum(mark.points for mark in s.marks) for s in found if s.marks}
        return {s.id: s.penalty / full[s.id] for s in found if s.marks}

    assert command.main(["extension", NAME, "more", "--days", "1", "--course", str(course)]) == 0
    for name in ("hw0", NAME):
        autograde.autograde(course, name)
    assert costs("hw0") == {"spent": 0}
    wanted = {"spent": 0.25, "grace": 0, "free": 0, "two": 0.25, "last": 0.75, "over": 1}
    wanted["more"] = 0.75
    assert costs() == pytest.approx(wanted)

    with assignment.api(course).gradebook as book:  # as formgrader does
        sheet = next(n for n in book.find_submission(NAME, "two").notebooks if n.score)
        sheet.grades[0].extra_credit = 8.0
        book.db.commit()
        book.grant_extension(NAME, "over", hours=1)
    assert costs()["two"] < 0.2
    assert command.main(["feedback", NAME, "--course", str(course)]) == 0
    assert costs() == pytest.approx(wanted | {"over": 0.75})

    with open(course / "nbgrader_config.py", "a") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    with pytest.raises(CourseError, match=r"\[late\] in course.toml: remove one of them"):
        autograde.autograde(course, NAME)


def test_what_lies_beside_the_notebooks(course: Path, instant: Instant) -> None:
    folder = hand_in(course, "ada", RIGHT)
    beside = {"timestamp.txt": b"2026-11-21 10:00:00 UTC\n", "submission_secret.txt": b" 0af3 "}
    for name, data in (beside | {"data.csv": b"1", "tfviz.py": b"raise SystemExit"}).items():
        (folder / name).write_bytes(data)
    autograde.autograde(course, NAME)
    there = course / "autograded" / "ada" / NAME
    found = {path.name: path.read_bytes() for path in there.iterdir() if path.suffix != ".ipynb"}
    assert found == beside  # by the exact secret a student finds the feedback
    (folder / "submission_secret.txt").write_bytes(b"x" * 5000)
    autograde.autograde(course, NAME)
    assert "submission_secret.txt says 'xxx" in remarks(course, "ada")[0]


# --- when something goes wrong -------------------------------------------------------------------


def test_one_bad_submission_changes_no_other(course: Path, instant: Instant) -> None:
    for student in ("ada", "zoe"):
        hand_in(course, student, RIGHT)
    hand_in(course, "bad", {"ex-sharpness": "DIE"})
    hand_in(course, "odd", {"ex-sharpness": "RAISE"})
    hand_in(course, "Åsa B.", RIGHT)
    autograde.autograde(course, NAME, workers=2)
    for student in ("ada", "zoe", "Åsa B."):
        assert min(points(course, student)[cell] for cell in CELLS - {"ex-repair-yours"}) > 0
    for student, why in (
        ("bad", "the process that judges it died"),
        ("odd", "the judge itself failed"),
    ):
        assert sum(points(course, student).values()) == 0
        assert why in " ".join(remarks(course, student))
    before = len(instant.asked)
    autograde.autograde(course, NAME)  # what the judge itself is to blame for is tried again
    assert [*instant.asked].count("odd") == 4  # with both of its notebooks
    assert len(instant.asked) == before + 2


def test_a_submission_that_breaks_the_reader_harms_nobody(
    course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = autograde.read_submission

    def broken(files: Any, told: Any, releases: Any, student: str, *more: Any) -> Any:
        if student == "bad":
            raise RecursionError
        return read(files, told, releases, student, *more)

    monkeypatch.setattr(autograde, "read_submission", broken)
    for student in ("ada", "bad", "cleo"):
        hand_in(course, student, RIGHT)
    autograde.autograde(course, NAME)
    assert remarks(course, "bad") == ("the submission cannot be read: RecursionError",)
    assert set(points(course, "bad").values()) == {0}
    for student in ("ada", "cleo"):
        assert points(course, student)["ex-sharpness-hidden"] > 0


HOLD = """
import sys
from pathlib import Path
from tfviz_course.store import alone
with alone(Path(sys.argv[1])):
    print("alone", flush=True)
    sys.stdin.read()
"""


def test_two_at_once(course: Path, instant: Instant) -> None:
    """The second one says so and changes nothing; a lock of a killed one holds nobody up."""
    hand_in(course, "ada", RIGHT)
    command = [sys.executable, "-c", HOLD, str(course)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=classroom.environment(), **pipes) as other:
        try:
            assert other.stdout and other.stdout.readline() == b"alone\n"
            said = rf"graded by another program \(process {other.pid}\); wait until it has ended"
            with pytest.raises(CourseError, match=said):
                autograde.autograde(course, NAME)
            result = assignment.api(course).autograde(NAME, "ada")  # formgrader's button
            assert not result["success"] and re.search(said, result["error"])
        finally:
            other.kill()
    assert instant.asked == []
    autograde.autograde(course, NAME)
    assert points(course, "ada")["ex-sharpness-hidden"] > 0


def test_a_full_disk_names_the_path(
    course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    hand_in(course, "ada", RIGHT)
    with monkeypatch.context() as patch:
        patch.setattr(store, "written_whole", full)
        with pytest.raises(CourseError, match=r"judged/hw1/ada.json cannot be written: No space"):
            autograde.autograde(course, NAME)
    with monkeypatch.context() as patch:
        patch.setattr(autograde.nbformat, "write", lambda notebook, path: full(path))
        with pytest.raises(CourseError, match=r"rebuilt/ada/hw1 cannot be written: No space"):
            autograde.autograde(course, NAME, again=True)


def test_a_full_disk_is_told_when_grading_begins(course: Path, instant: Instant) -> None:
    """Here no file may have a byte."""
    kind, before = resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(kind, (0, before[1]))
    try:
        with pytest.raises(CourseError, match=r"lock cannot be written: File too large\. Fix"):
            autograde.autograde(course, NAME)
    finally:
        resource.setrlimit(kind, before)


SEE = "nbgrader.converters.base.NbGraderException: Please see the the above traceback for details"
OLD = (
    "nbgrader.converters.base.NbGraderException: There was an error accessing the nbgrader "
    "database. … run the command `nbgrader db upgrade`."
)


@pytest.mark.parametrize(
    ("log", "error", "said"),
    [
        ("[ERROR] x\nOSError: [Errno 28] No space left on device: 'x'", SEE, "the disk is full: "),
        ("(sqlite3.OperationalError) database or disk is full\n[SQL: x]", OLD, "the disk is full"),
        ("[ERROR] x\nsqlite3.OperationalError: no such table: grade", OLD, "sqlite3.Operational"),
        ("[ERROR] x\nKeyError: 'metadata'", SEE, "KeyError: 'metadata'"),
        ("", SEE, SEE),
    ],
)
def test_the_cause_is_told_and_not_where_nbgrader_would_look_for_it(
    log: str, error: str, said: str
) -> None:
    assert assignment.failure({"log": log, "error": f"Traceback\n{error}"}).startswith(said)


# --- the next run makes up for it ---------------------------------------------------------------


def test_who_was_late_is_judged_again_next_time(course: Path, instant: Instant) -> None:
    hand_in(course, "ada", RIGHT)
    hand_in(course, "late", {label: f"{text}  # LATE" for label, text in RIGHT.items()})
    autograde.autograde(course, NAME, workers=2)
    assert points(course, "late")["ex-sharpness-hidden"] == 0
    assert "the machine was busy" in remarks(course, "late")[0]
    autograde.autograde(course, NAME, workers=2)
    assert points(course, "late")["ex-sharpness-hidden"] > 0 and remarks(course, "late") == ()
    assert instant.asked == ["ada", "ada", "late", "late", "late", "late"]


def test_who_is_late_in_every_run_has_a_verdict_in_the_end(
    course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autograde, "TRIES", 2)
    monkeypatch.setattr(Instant, "asked", [])  # it is never right
    hand_in(course, "late", {label: f"{text}  # LATE" for label, text in RIGHT.items()})
    for judged in (2, 4, 4):  # two notebooks in each run, until it is final
        autograde.autograde(course, NAME, judge_only=True)
        assert len(instant.log.read_text().split()) == judged
    entry = store.read_entry(course, NAME, "late")
    assert entry and "in 2 runs, so it is final" in json.dumps(entry)
    autograde.autograde(course, NAME, judge_only=True, again=True)
    assert len(instant.log.read_text().split()) == 6
    autograde.autograde(course, NAME, judge_only=True)
    assert len(instant.log.read_text().split()) == 8


def test_whose_own_words_speak_of_time_is_not_judged_again(course: Path, instant: Instant) -> None:
    hand_in(
        course, "ada", {label: f"{text}  # LATE, in my OWN words" for label, text in RIGHT.items()}
    )
    autograde.autograde(course, NAME)
    autograde.autograde(course, NAME)
    assert instant.asked == ["ada", "ada"]


def test_a_process_that_does_not_start_is_told_when_all_others_are_judged(
    course: Path, instant: Instant
) -> None:
    hand_in(course, "bob", {label: f"{text}  # STUCK" for label, text in RIGHT.items()})
    hand_in(course, "ada", RIGHT)
    hand_in(course, "cleo", RIGHT)
    with pytest.raises(CourseError, match=r"its process does not start \(bob\); run this again"):
        autograde.autograde(course, NAME, workers=2)
    assert instant.asked == ["ada", "ada", "bob", "bob", "cleo", "cleo"]
    hand_in(course, "bob", RIGHT)
    autograde.autograde(course, NAME, workers=2)
    for student in ("ada", "bob", "cleo"):
        assert points(course, student)["ex-sharpness-hidden"] > 0


def test_a_process_that_never_starts_ends_the_run(course: Path, instant: Instant) -> None:
    for number in range(9):
        hand_in(course, f"s{number}", {label: "STUCK" for label in RIGHT})
    with pytest.raises(CourseError, match="its process does not start"):
        autograde.autograde(course, NAME, workers=2)
    assert len(instant.asked) < 10


def test_what_cannot_be_recorded_keeps_no_other_from_it(course: Path, instant: Instant) -> None:
    for student in ("ada", "bob"):
        hand_in(course, student, RIGHT)
    (course / "autograded").mkdir()
    (course / "autograded" / "ada").write_text("in the way")
    with pytest.raises(CourseError, match=r"not recorded: .*\(ada\)"):
        autograde.autograde(course, NAME)
    assert points(course, "bob")["ex-sharpness-hidden"] > 0


def test_a_store_edited_or_half_written_is_judged_anew(course: Path, instant: Instant) -> None:
    hand_in(course, "ada", RIGHT)
    autograde.autograde(course, NAME)
    path = course / ".tfviz/judged" / NAME / "ada.json"
    path.write_text(path.read_text()[:100])
    autograde.autograde(course, NAME)
    assert len(instant.asked) == 4
    assert points(course, "ada")["ex-sharpness-hidden"] > 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle(course: Path, how: signal.Signals) -> None:
    for student in ("ada", "bob", "cleo"):
        hand_in(course, student, {"ex-sharpness": solution(course, "ex-sharpness")})
    options = ["autograde", NAME, "--course", str(course), "--workers", "1"]
    command = [sys.executable, "-m", "tfviz_course", *options]
    store = course / ".tfviz/judged" / NAME

    def judged() -> int:
        entries = [json.loads(path.read_text()) for path in store.glob("[!.]*.json")]
        return sum(part["done"] for entry in entries for part in entry["notebooks"].values())

    run = subprocess.Popen(
        command,
        start_new_session=True,
        env=classroom.environment(),
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )
    try:
        below: list[psutil.Process] = []
        while len(below) < 3 and run.poll() is None:  # the next one, its judge, its sandbox
            _until(lambda: judged() >= 1 or run.poll() is not None)
            below = psutil.Process(run.pid).children(recursive=True)
        os.killpg(run.pid, how)
        _, said = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL), said
    assert below
    _until(lambda: not any(map(_alive, below)))
    kept = judged()
    assert 1 <= kept < 6
    if how is signal.SIGKILL:
        again = subprocess.run(
            command, env=classroom.environment(), cwd=ROOT, capture_output=True, text=True
        )
        assert again.returncode == 0, again.stderr
        assert judged() == 6
        for student in ("ada", "bob", "cleo"):
            assert points(course, student)["ex-sharpness-hidden"] > 0


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 900  # for a busy machine
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_gradebook_in_use_is_waited_for_and_then_told(
    course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, "ada", RIGHT)
    holder = sqlite3.connect(course / "gradebook.db", check_same_thread=False)
    holder.isolation_level = None
    holder.execute("BEGIN EXCLUSIVE")
    with monkeypatch.context() as patch:
        patch.setattr(autograde, "LOCKED", 0.1)
        with pytest.raises(CourseError, match="in use by another program"):
            autograde.autograde(course, NAME)
    threading.Timer(1.0, holder.close).start()
    autograde.autograde(course, NAME)
    assert instant.asked == ["ada", "ada"]  # the verdicts were kept
    assert points(course, "ada")["ex-sharpness-hidden"] > 0


def test_no_sandbox(course: Path, instant: Instant, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "ada", RIGHT)
    monkeypatch.setattr(sandbox, "available", lambda: "bubblewrap is not installed.")
    with pytest.raises(CourseError, match=r"without a sandbox: bubblewrap is not installed\."):
        autograde.autograde(course, NAME)
    assert instant.asked == []


def test_what_cannot_be_graded(course: Path, tmp_path: Path, instant: Instant) -> None:
    with pytest.raises(CourseError, match=r"no assignment 'hw9' in .*: it has hw1"):
        autograde.autograde(course, "hw9")
    with pytest.raises(CourseError, match="no submission of nobody"):
        autograde.autograde(course, NAME, students=["nobody"])
    with pytest.raises(assignment.CourseError, match="is not a course"):
        autograde.autograde(tmp_path, NAME)
    assert autograde.autograde(course, NAME) == {}
    shutil.rmtree(course / "release" / NAME)
    with pytest.raises(CourseError, match="generate the assignment"):
        autograde.autograde(course, NAME)
