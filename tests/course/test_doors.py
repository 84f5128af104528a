"""Names that students choose: which of them can be a student's id, and that no other gets in."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from course import classroom
from course.classroom import NAME, hand_in, points
from traitlets.config import LoggingConfigurable

from tfviz_course import CourseError, assignment, command, report
from tfviz_course.collect import NamedFiles, OwnWork
from tfviz_course.students import check, is_id, shown

IDS = ["ada", "Åsa B.", "A\u030asa", "李雷", "a.b@c-d_e", "-x", "4711", "x" * 64]
SCRIPT = "<img src=x onerror=alert(1)>"
NO_IDS = [
    SCRIPT, "", " ", ".", "..", ".x", " x", "x ", "[a]*", "*", "a/b", "a\nb", "a\x1b[31m",
    "a\u202eb", "a,b", "a'b", 'a"b', "m\udcffllory", "x" * 65,
]  # fmt: skip
PATTERN = r".*/(?P<student_id>[^/_]+)_(?P<file_id>[^/]+)"  # the one of the guide


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


@pytest.mark.parametrize("name", IDS)
def test_ids(name: str) -> None:
    assert is_id(name) and check(name) == name


@pytest.mark.parametrize("name", NO_IDS)
def test_no_ids(name: str) -> None:
    assert not is_id(name)
    with pytest.raises(CourseError, match="cannot be a student's id: an id has letters, digits"):
        check(name)
    assert shown(name).isprintable() and len(shown(name)) <= 60


@pytest.mark.parametrize("words", [["autograde", NAME], ["feedback", NAME]])
def test_every_command_checks_the_ids_that_it_is_given(
    words: list[str], course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--course", str(course), "--student", "../ada"]) == 2
    assert "'../ada' cannot be a student's id" in capsys.readouterr().err


# --- zip_collect ---------------------------------------------------------------------------------


def collect(course: Path, *names: str) -> str:
    """What the guide says to do with files of these names; what nbgrader prints."""
    archive = course / "downloaded" / NAME / "archive"
    shutil.rmtree(archive, ignore_errors=True)
    archive.mkdir(parents=True)
    for name in names:
        shutil.copy(course / "release" / NAME / "attention.ipynb", archive / name)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "zip_collect", NAME, "--force",
         f"--FileNameCollectorPlugin.named_regexp={PATTERN}"],
        cwd=course, env=classroom.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.stdout


def test_a_file_name_is_no_code_and_no_path(course: Path) -> None:
    said = collect(course, "ada_attention.ipynb", f"{SCRIPT}_attention.ipynb", ".._attention.ipynb")
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    assert not (course / NAME).exists()  # which is submitted/../hw1
    assert said.count("Left out ") == 2 and "an id has letters, digits" in said


def test_replacing_work_asks(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = hand_in(course, "ada", {"ex-sharpness": "mine"}) / "attention.ipynb"
    before = mine.read_bytes()
    said = collect(course, "ada_attention.ipynb", "bob_attention.ipynb")
    assert mine.read_bytes() == before
    assert "ada has handed in hw1 already; kept. To have it replaced, remove " in said
    assert (course / "submitted" / "bob" / NAME / "attention.ipynb").exists()
    # with somebody to answer
    asked: list[str] = []
    answers = iter(["", "y"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", answer)
    for taken in (False, True):
        plugin = collector(course)
        for name in ("attention", "factorized"):  # one question for all files of a student
            assert bool(plugin.collect(f"/x/ada_{name}.ipynb")) is taken
    assert asked == ["ada has handed in hw1 already. Replace it? [y/N] "] * 2


def collector(course: Path) -> Any:
    handle = assignment.api(course)
    handle.coursedir.assignment_id = NAME
    app = LoggingConfigurable()  # in place of nbgrader's command
    app.coursedir = handle.coursedir
    return NamedFiles(named_regexp=PATTERN, parent=app)


def test_two_files_of_one_name_are_named(course: Path) -> None:
    plugin = collector(course)
    assert plugin.collect("/x/a/ada_attention.ipynb")
    with pytest.raises(ValueError, match=r"/x/a/ada_attention.ipynb' and '/x/b/ada_attention"):
        plugin.collect("/x/b/ada_attention.ipynb")


def test_a_notebook_that_leaves_the_folder_is_left_out(course: Path) -> None:
    plugin = collector(course)
    plugin.named_regexp = r".*/in/(?P<student_id>[^/_]+)_(?P<file_id>.+)"
    assert plugin.collect("/x/in/ada_../../bob/hw1/attention.ipynb") is None


def test_an_odd_account_keeps_nobody_from_being_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def records(self: Any) -> None:
        self.src_records = [{"username": "ada"}, {"username": "DOMAIN\\mallory"}]

    monkeypatch.setattr(OwnWork.__mro__[1], "init_src", records)
    work = OwnWork.__new__(OwnWork)
    work.init_src()
    assert work.src_records == [{"username": "ada"}]


# --- submitted/ ----------------------------------------------------------------------------------


def odd_folders(course: Path) -> list[str]:
    """Folders of no id beside Ada's; their names."""
    hand_in(course, "ada", {})
    names = [SCRIPT, "[ab]*", "m\udcffllory"]
    for name in names:
        shutil.copytree(course / "submitted/ada", course / "submitted" / name)
    return names


def test_formgrader_hears_of_no_odd_name(course: Path) -> None:
    odd_folders(course)
    handle = assignment.api(course)
    assert handle.get_submitted_students(NAME) == handle.get_submitted_students("*") == {"ada"}
    assert [one["id"] for one in handle.get_students()] == ["ada"]
    assert {one["student"] for one in handle.get_submissions(NAME)} == {"ada"}


def test_formgraders_button_refuses_an_odd_name(course: Path) -> None:
    odd_folders(course)
    result = assignment.api(course).autograde(NAME, "[ab]*")
    assert not result["success"] and "cannot be a student's id" in result["error"]


def test_one_bad_name_costs_nobody_the_points_and_the_report(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Grades, tables and remarks come first; then the names are told, on one line."""
    odd_folders(course)
    assert command.main(["autograde", NAME, "--course", str(course)]) == 2
    said = capsys.readouterr()
    assert "ada" in said.out and "1 submission graded" in said.out
    assert said.err.count("\n") == 1 and r"'m\udcffllory'" in said.err and SCRIPT in said.err
    assert set(points(course, "ada").values()) == {0}
    assert not list((course / "autograded").glob("[!a]*"))
    assert command.main(["report", NAME, "--course", str(course)]) == 0
    said = capsys.readouterr()
    assert r"m\udcffllory" in said.out and "Left out of submitted/" in said.out
    found = report.results(course, NAME)
    assert [student.id for student in found.students] == ["ada"]
    assert r"\udcff" not in str(report.without_names(found, "secret"))
