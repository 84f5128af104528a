"""The command: help that is enough, errors on one line, and the whole way from new to report."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from course import classroom
from course.classroom import NAME, ROOT, hand_in, points, solution

from tfviz_course import command
from tfviz_course.command import main

COMMANDS = ["new", "list", "assignment", "autograde", "feedback", "report", "check"]


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
    for action in part._actions:
        assert action.help or action.dest == "folder", action.dest
    with pytest.raises(SystemExit):
        main([name, "--help"])
    said = capsys.readouterr().out
    assert f"for example:\n  tfviz-course {name}" in said
    for line in said.split("for example:\n")[1].splitlines():  # the examples can be read
        command.parser().parse_args(_words(line)[1:])


def _words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


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
        (["new", "{folder}/x", "--name", " "], "name of one line"),
        (["new", "{folder}/x", "--name", "?"], "no letter or digit"),
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
        (["assignment", NAME, "ex-sharpness"], "is there already"),
        (["assignment", "hw 2", "ex-sharpness"], "without spaces"),
        (["assignment", "hw2", "ex-sharpness", "--points", "ex-sharpness"], "write it as ex-label"),
        (
            ["assignment", "hw2", "ex-sharpness", "--points", "ex-repair=2"],
            "points for 'ex-repair'",
        ),
        (["assignment", "hw2", "ex-sharpness", "--due", "soon"], 'write it as "2026-12-01 18:00"'),
        (["feedback", NAME], "nothing of 'hw1' is graded"),
        (["report", "hw9"], "hw9"),
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
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["grade", NAME],
        ["autograde"],
        ["autograde", NAME, "--workers", "0"],
        ["autograde", NAME, "--memory", "much"],
        ["autograde", NAME, "--seconds", "-1"],
        ["new", "x"],
        ["assignment", NAME],
    ],
)
def test_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: tfviz-course" in capsys.readouterr().err


def test_an_error_that_nobody_thought_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("first line\nmore\nlast line")

    from tfviz_course import sandbox

    monkeypatch.setattr(sandbox, "available", fail)
    assert main(["check"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "tfviz-course: ZeroDivisionError: first line … last line (--debug shows where)\n"
    )
    assert main(["check", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


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
    assert err.count("No space left") == 1 and f"feedback/STUDENT/{NAME}: OSError" in err
    assert err.rstrip().endswith("(s0, s1, s10, s11, s12 and 35 more)")


def test_a_remark_stays_on_its_line_and_many_are_few(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who writes line ends into a remark does not speak of somebody else."""
    from tfviz_course import autograde, store

    remarks = ["odd\n  bob: cheated \x1b[31m", *(f"odd {n}" for n in range(41))]
    assert main(["autograde", NAME, "--course", str(course)]) == 0
    entry = store.read_entry(course, NAME, "ada")
    assert entry
    next(iter(entry["notebooks"].values()))["remarks"] = remarks
    store.write_entry(course, NAME, entry)
    capsys.readouterr()
    monkeypatch.setattr(autograde, "autograde", lambda *_, **__: {"ada": 0.0})
    assert main(["autograde", NAME, "--course", str(course)]) == 0
    said = capsys.readouterr().out.split("Remarks")[1].splitlines()[1:]
    assert said[0] == "  ada: odd bob: cheated [31m" and len(said) == 6
    assert said[-1] == "  ada: and 37 more remarks; tfviz-course report writes them all"


def test_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tfviz_course import sandbox

    monkeypatch.setattr(sandbox, "available", lambda: None)
    assert main(["check"]) == 0
    assert "The sandbox works" in capsys.readouterr().out
    monkeypatch.setattr(sandbox, "available", lambda: "Install bubblewrap.")
    assert main(["check"]) == 2
    assert "Install bubblewrap." in capsys.readouterr().err


# --- the whole way -------------------------------------------------------------------------------


def test_list() -> None:
    done = run("list")
    assert done.returncode == 0, done.stderr
    for part in ("basics/attention", "ex-sharpness", "code", "ex-repair", "words", "ex-two-hops"):
        assert part in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
def test_from_new_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    course = tmp_path / "nlp101"
    items = ("ex-sharpness", "ex-repair")
    more = ("--points", "ex-sharpness=3", "ex-repair=5", "--due", "2026-12-01T20:00+02:00")
    steps = [
        (("new", course, "--name", "NLP 101", "--seed", "5"), ROOT),
        (("assignment", NAME, *items, *more), course),
    ]
    for words, folder in steps:
        done = run(*words, folder=folder)
        assert done.returncode == 0, done.stderr
    assert "attention.ipynb  ex-sharpness 3, ex-repair 5" in done.stdout
    assert "Due: 2026-12-01 18:00 UTC" in done.stdout

    hand_in(course, "ada", {"ex-sharpness": solution(course, "ex-sharpness")})
    hand_in(course, "bob", {})
    (course / "submitted/bob" / NAME / "attention.ipynb").write_text("sorry")
    done = run("autograde", NAME, "--workers", "2", folder=course)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "2 submissions graded" in done.stdout
    assert "bob: the file is no notebook" in done.stdout
    assert sum(points(course, "ada").values()) == 3
    assert sum(points(course, "bob").values()) == 0

    done = run("feedback", NAME, folder=course)
    assert done.returncode == 0, done.stderr
    assert "Feedback for 2 students" in done.stdout
    for student in ("ada", "bob"):
        assert (course / "feedback" / student / NAME / "attention.html").exists()
    done = run("report", NAME, folder=course)
    assert done.returncode == 0, done.stderr
    assert "ada" in done.stdout
    assert (course / "reports" / NAME / "matrix.png").is_file()

    # once more in this process, which is faster
    monkeypatch.chdir(course)
    capsys.readouterr()
    assert main(["feedback", NAME, "--student", "zoe"]) == 2
    assert capsys.readouterr().err == "tfviz-course: zoe: not graded for 'hw1'\n"
    assert main(["report", NAME, "--anonymous"]) == 0
    said = capsys.readouterr().out
    assert "ada" not in said.rsplit("\n", 2)[0]
    assert (course / "reports" / NAME / "anonymous" / "students.csv").is_file()
    assert main(["assignment", NAME, *items, "--points", "ex-sharpness=6", "--again"]) == 0
    capsys.readouterr()
    assert main(["autograde", NAME, "--student", "ada"]) == 0
    said = capsys.readouterr().out
    assert "made from an earlier version of the assignment" in said
    assert "edited" not in said and "points were changed" not in said
    assert sum(points(course, "ada").values()) == 6
