"""The command: help that is enough, errors on one line, and the whole way from new to report."""

from __future__ import annotations

import argparse
import errno
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from course import classroom
from course.classroom import NAME, ROOT, hand_in, points, solution
from sqlalchemy.exc import OperationalError

from tfviz_course import command
from tfviz_course.command import main
from tfviz_lessons import clone

COMMANDS = ["new", "list", "assignment", "autograde", "feedback", "report"]
COMMANDS += ["students", "extension", "export", "check"]


def run(*words: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    words = tuple(map(str, words))
    return subprocess.run(
        [sys.executable, "-m", "tfviz_course", *words],
        cwd=folder,
        env=classroom.environment(),
        capture_output=True,
        text=True,
    )


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


# --- help ----------------------------------------------------------------------------------------


def subcommands() -> dict[str, argparse.ArgumentParser]:
    actions = command.parser()._actions
    return dict(next(a for a in actions if isinstance(a, argparse._SubParsersAction)).choices)


def test_every_command_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(subcommands()) == COMMANDS
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n    {name}" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    part = subcommands()[name]
    assert all(action.help for action in part._actions)
    with pytest.raises(SystemExit):
        main([name, "--help"])
    said = capsys.readouterr().out
    assert said.startswith(f"usage: tfviz-course {name}")
    assert part.description and part.description in said


def test_the_examples_can_be_read() -> None:
    examples = re.findall(r"^  tfviz-course (.*?)(?:  .*)?$", command.ABOUT, re.M)
    assert len(examples) == 5
    for line in examples:
        command.parser().parse_args(shlex.split(line))


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["autograde", NAME], "is not a course: it has no course.toml"),
        (["report", NAME], "gradebook"),
        (["feedback", NAME], "is not a course"),
        (["assignment", "hw1", "ex-sharpness"], "is not a course"),
        (["assignment", "hw1", "ex-sharp"], "is not a course"),
        (["list", "basics/atention"], "did you mean basics/attention"),
        (["list", "nowhere/at-all-xyz"], "no chapter or exercise is called"),
        (["new", "{folder}/x", "--name", " "], "name on one line"),
        (["new", "{folder}/x", "--name", "?"], "no letter a to z and no digit"),
    ],
)
def test_errors_are_one_line(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([word.format(folder=tmp_path) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("tfviz-course: ")
    assert said in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["autograde", "hw9"], "there is no assignment 'hw9'"),
        (["autograde", NAME, "--student", "zoe"], "no submission of zoe"),
        (["assignment", "hw2", "ex-sharpnes"], "did you mean ex-sharpness"),
        (["assignment", NAME, "ex-sharpness"], "already exists; give --again to replace it"),
        (["assignment", "hw 2", "ex-sharpness"], "without spaces"),
        (
            ["assignment", "hw2", "ex-sharpness", "--points", "ex-repair=2"],
            "points for 'ex-repair'",
        ),
        (["feedback", NAME], "nothing of 'hw1' is graded"),
        (["report", "hw9"], "hw9"),
        (
            ["export", NAME, "--to", "qti"],
            "'hw1' is an assignment, and --to qti takes a chapter, su",
        ),
        (
            ["export", NAME, "--to", "anki"],
            "and --to anki takes a chapter, such as basics/attentio",
        ),
    ],
)
def test_errors_in_a_course(
    words: list[str],
    said: str,
    course: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(course)
    assert main(words) == 2
    *progress, error = capsys.readouterr().err.splitlines()
    assert all(line.startswith("Reading the lessons") for line in progress)
    assert error.startswith("tfviz-course: ") and said in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "required: COMMAND"),
        (["grade", NAME], "invalid choice: 'grade'"),
        (["autograde"], "required: name"),
        (["autograde", NAME, "--workers", "0"], "0 is not above 0"),
        (["autograde", NAME, "--memory", "much"], "--memory: invalid"),
        (["autograde", NAME, "--seconds", "-1"], "-1 is not above 0"),
        (["new", "x"], "required: --name"),
        (["assignment", NAME], "required: items"),
        (["assignment", NAME, "ex-a", "--points", "ex-a"], "'ex-a': write it as ex-label=3"),
        (["assignment", NAME, "ex-a", "--due", "soon"], 'write it as "2026-12-01 18:00"'),
    ],
)
def test_wrong_use(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "usage: tfviz-course" in err and said in err


def test_an_error_of_many_lines_is_told_in_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tfviz_course import sandbox

    why: Exception = sandbox.Unavailable("first line\nmore\nlast line")

    def fail() -> None:
        raise why

    monkeypatch.setattr(sandbox, "available", fail)
    assert main(["check"]) == 2
    assert capsys.readouterr().err == "tfviz-course: first line … last line\n"
    why = ZeroDivisionError("nobody thought of it")
    with pytest.raises(ZeroDivisionError):  # with all of it, to be reported
        main(["check"])


SPACE = OSError(errno.ENOSPC, "No space left on device", "/x/class.csv")
NO_PLACE: dict[str, tuple[Exception, str]] = {
    "full": (SPACE, "the disk is full: make room, then run this again"),
    "quota": (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk is full: make room"),
    "gradebook": (
        OperationalError("INSERT", {}, Exception("database or disk is full")),
        "the disk is full: make room",
    ),
    "read-only": (
        OSError(errno.EROFS, "Read-only file system", "/x/y"),
        "/x/y: Read-only file system. Fix that, then run this again",
    ),
    "closed": (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "/x/y: Permission deni"),
}


@pytest.mark.parametrize("what", NO_PLACE)
@pytest.mark.parametrize("name", command.COMMANDS)
def test_where_nothing_can_be_written_every_command_says_it_in_one_sentence(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error, said = NO_PLACE[what]

    def fail(options: object) -> None:
        """Do it."""
        raise error

    words = {"new": ["x", "--name", "X"], "students": ["import", "x.csv"], "list": [], "check": []}
    more = {"assignment": ["ex-a"], "extension": ["ada"], "export": ["--to", "moodle"]}
    monkeypatch.setitem(command.COMMANDS, name, (fail, command.COMMANDS[name][1]))
    assert main([name, *words.get(name, [NAME]), *more.get(name, [])]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"tfviz-course: {said}") and err.count("\n") == 1


def test_a_full_disk_while_an_assignment_is_made_is_one_sentence(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours and nbgrader's part of it; the assignment of before stays."""
    from tfviz_course import assignment

    before = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    words = ["assignment", NAME, "ex-sharpness", "--again", "--course", str(course)]
    log = "[ERROR] Traceback\n[ERROR] x\nOSError: [Errno 28] No space left on device: 'x'\n"

    class Full:
        coursedir = SimpleNamespace(groupshared=False)

        def generate_assignment(self, name: str) -> dict[str, object]:
            return {"success": False, "log": log, "error": "NbGraderException: Please see the"}

    def full(*given: object) -> None:
        raise SPACE

    for where, name, broken in (
        (assignment, "api", lambda course: Full()),
        (assignment.nbformat, "write", full),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(where, name, broken)
            assert main(words) == 2
        *_, error = capsys.readouterr().err.splitlines()
        assert "the disk is full: make room, then run this again" in error, name
        assert before == {path: path.read_bytes() for path in course.rglob("*.ipynb")}


def test_feedback_says_once_what_ails_all(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a disk that is full: not one line for each student of the class."""
    from tfviz_course import assignment

    log = "[ERROR] Traceback\nOSError: [Errno 28] No space left on device: 'feedback/{0}/x.html'\n"
    log += "[ERROR] There was an error processing assignment 'hw1' for student '{0}'"

    class Full:
        def generate_feedback(self, name: str, student: str) -> dict[str, object]:
            return {"success": False, "log": log.format(student)}

    everybody = [f"s{n}" for n in range(40)]
    for student in everybody:
        (course / "autograded" / student / NAME).mkdir(parents=True)
    monkeypatch.setattr(assignment, "api", lambda course: Full())
    assert main(["feedback", NAME, "--course", str(course)]) == 2
    err = capsys.readouterr().err
    assert err.count("the disk is full") == 1 and f"feedback/STUDENT/{NAME}: the disk" in err
    assert err.rstrip().endswith("(s0, s1, s10, s11, s12 and 35 more)")


def test_a_remark_stays_on_its_line_and_many_are_few(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who writes line ends into a remark does not speak of somebody else."""
    from tfviz_course import autograde, store

    remarks = ["odd\n  bob: cheated \x1b[31m", *(f"odd {n}" for n in range(41))]
    hand_in(course, "ada", {})
    assert main(["autograde", NAME, "--course", str(course)]) == 0
    entry = store.read_entry(course, NAME, "ada")
    assert entry
    next(iter(entry["notebooks"].values()))["remarks"] = remarks
    store.write_entry(course, NAME, entry)
    capsys.readouterr()
    monkeypatch.setattr(autograde, "autograde", lambda *_, **__: {"ada": 0.0})
    assert main(["autograde", NAME, "--course", str(course)]) == 0
    table, listed = capsys.readouterr().out.split("Remarks")
    assert "odd" not in table and "42 remarks" in table  # each remark is told once
    said = listed.splitlines()[1:]
    assert said[0] == "  ada: odd bob: cheated [31m" and len(said) == 6
    assert said[-1] == "  ada: and 37 more remarks; tfviz-course report writes them all"


def test_a_gradebook_that_is_gone_is_named_before_anything_is_judged(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "ada", {})
    (course / "gradebook.db").unlink()
    assert main(["autograde", NAME, "--course", str(course)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and f"there is no gradebook {course / 'gradebook.db'}" in err
    assert not (course / ".tfviz" / "judged").exists() and not (course / "gradebook.db").exists()


def test_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tfviz_course import sandbox

    monkeypatch.setattr(sandbox, "available", lambda: None)
    for unbound in (None, "Memory is not bounded here."):
        monkeypatch.setattr(sandbox, "unbound", lambda said=unbound: said)
        assert main(["check"]) == 0
        first, *more = capsys.readouterr().out.splitlines()
        assert first.startswith("The sandbox works") and more == ([unbound] if unbound else [])
    monkeypatch.setattr(sandbox, "available", lambda: "Install bubblewrap.")
    assert main(["check"]) == 2
    assert "Install bubblewrap." in capsys.readouterr().err


# --- the whole way -------------------------------------------------------------------------------


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    for part in ("basics/attention", "ex-sharpness", "code", "ex-repair", "words", "ex-two-hops"):
        assert part in said
    row = re.search(r"ex-steep +14\.(\d+) +words +Why does R→0 stop learning\?", said)
    assert row and not re.search(r"[\\$]", said)
    labels = [task.label for task in clone.read("adaptive/span").tasks]
    assert labels[int(row[1]) - 1] == "ex-steep"
    # as in the book
    assert clone.told("adaptive/span")["exercises"]["ex-steep"]["name"] == f"Exercise 14.{row[1]}"


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
def test_from_new_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    course = tmp_path / "nlp101"
    items = ("ex-sharpness", "ex-repair")
    more = ("--points", "ex-sharpness=3", "ex-repair=5", "--due", "2026-12-01T20:00+02:00")

    def run_here(*words: str | Path) -> str:
        assert main(list(map(str, words))) == 0
        return capsys.readouterr().out

    done = run("new", course, "--name", "NLP 101", "--seed", "5")  # as a program, once
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(course)
    said = run_here("assignment", NAME, *items, *more)
    assert "attention.ipynb  ex-sharpness 3, ex-repair 5" in said
    assert "Due: 2026-12-01 18:00 UTC" in said

    answers = {"ex-sharpness": solution(course, "ex-sharpness"), "ex-repair": "She is right."}
    hand_in(course, "ada", answers)
    hand_in(course, "bob", {})
    (course / "submitted/bob" / NAME / "attention.ipynb").write_text("sorry")
    done = run("autograde", NAME, "--workers", "2", folder=course)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "2 submissions graded" in done.stdout
    assert "bob: the file is no notebook" in done.stdout
    assert sum(points(course, "ada").values()) == 3
    assert sum(points(course, "bob").values()) == 0

    said = run_here("feedback", NAME)
    assert "Feedback for 2 students" in said and "Not graded yet: repair: 1 of 2." in said
    for student in ("ada", "bob"):
        assert (course / "feedback" / student / NAME / "attention.html").exists()
    assert "ada" in run_here("report", NAME)
    assert (course / "reports" / NAME / "matrix.png").is_file()
    assert main(["feedback", NAME, "--student", "zoe"]) == 2
    error = "tfviz-course: not graded for 'hw1': zoe; run 'tfviz-course autograde hw1' first\n"
    assert capsys.readouterr().err == error
    said = run_here("report", NAME, "--anonymous")
    assert not re.search(r"\b(ada|bob)\b", said.rsplit("\n", 2)[0])
    assert (course / "reports" / NAME / "anonymous" / "students.csv").is_file()
    run_here("assignment", NAME, *items, "--points", "ex-sharpness=6", "--again")
    said = run_here("autograde", NAME, "--student", "ada")
    assert "earlier version" not in said  # who worked in the release of before has edited nothing
    assert sum(points(course, "ada").values()) == 6
