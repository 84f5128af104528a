"""The autograder of Gradescope: same submission, same score, and no score without a sandbox.

/autograder is a folder of the test's own, in which the zip is unpacked as Gradescope does it. What
is not run is setup.sh's use of apt-get and pip: it is run with stand-ins that write down how they
are called. The class is a part of the one in `course/bad`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from course.bad import EXERCISES, KINDS, Around, HandIn, submit

from tfviz_course import CourseError, assignment, autograde, gradescope, report, sandbox
from tfviz_course.command import main
from tfviz_course.settings import read_course

NAME = "ps2"
# who of course/bad hands in these kinds; others come with them
STUDENT = {kind.name: kind.student for kind in KINDS}
CHOSEN = (
    *("honest_partly_right", "honest_written_answer_only", "exit_hooks", "right_once"),
    "returns_the_hidden_input",
)
CLASS = tuple(dict.fromkeys(STUDENT[name] for name in CHOSEN))
Results = dict[str, dict[str, Any]]

pytestmark = pytest.mark.filterwarnings("ignore")  # of SQLAlchemy, about how nbgrader uses it


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class, graded here; not to be changed."""
    place = tmp_path_factory.mktemp("class")
    course = place / "course"
    assignment.create_course(course, "A class", seed=7)
    assignment.create_assignment(course, NAME, list(EXERCISES.values()))
    release = {}
    for path in (course / "release" / NAME).glob("*.ipynb"):
        release[path.stem] = json.loads(path.read_text("utf8"))
        for cell in release[path.stem]["cells"]:
            cell["source"] = "".join(cell["source"])
    root = Path(__file__).resolve().parents[3]
    around = Around(
        course, NAME, place, place, root / "chapters", root, "honest_all_right", 9, "\0nobody"
    )
    for student in CLASS:
        kinds = [kind for kind in KINDS if kind.student == student]
        submit(kinds, HandIn(student, around, release, course / "submitted" / student / NAME))
    with assignment.api(course).gradebook as book:
        for student in CLASS:
            book.add_student(student, email=f"{student}@uni.example".title())
    autograde.autograde(course, NAME, workers=2)
    return course


@pytest.fixture(scope="module")
def packed(course: Path) -> Path:
    return gradescope.pack(course, NAME)[0]


def container(packed: Path, root: Path, submission: Path, address: str) -> Path:
    """/autograder, as Gradescope makes it for one submission."""
    with zipfile.ZipFile(packed) as file:
        for member in file.infolist():
            mode = member.external_attr >> 16
            Path(file.extract(member, root / "source")).chmod(mode & 0o777)
    shutil.copy2(root / "source" / "run_autograder", root / "run_autograder")
    shutil.copytree(submission, root / "submission", symlinks=True)
    about = {"id": 1, "users": [{"email": address, "id": 1234, "name": "Student User"}]}
    (root / "submission_metadata.json").write_text(json.dumps(about))
    (root / "results").mkdir()
    return root


def environment(place: Path, library: Path) -> Path:
    """What setup.sh makes: a Python with this library, and the packages that are installed here."""
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "library.pth").write_text(
        "\n".join([str(library), str(library / "teaching"), *installed, ""])
    )
    return place / "bin" / "python"


def results(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "results/results.json").read_text("utf8"))
    return found


def same(course: Path, student: str, found: dict[str, Any]) -> None:
    """What Gradescope gets of a submission is what our own gradebook has."""
    (mine,) = [one for one in report.results(course, NAME).students if one.id == student]
    assert mine.state == report.GRADED and len(mine.marks) == len(found["tests"]) == 10
    total = 0.0
    for mark, test in zip(mine.marks, found["tests"], strict=True):
        assert test["max_score"] == mark.most
        assert test.get("visibility") == ("hidden" if mark.kind == "hidden" else None)
        if mark.waits:
            assert "score" not in test and "a person reads it" in test["output"]
        else:
            assert test["score"] == mark.points, (mark, test)
            total += mark.points
    assert found["score"] == total == mine.total


@pytest.fixture(scope="module")
def found(course: Path, packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of all but the first, each graded once."""
    known: Results = {}
    for student in CLASS[1:]:
        submission = course / "submitted" / student / NAME
        root = tmp_path_factory.mktemp("autograder")
        container(packed, root, submission, f"{student}@UNI.example")
        assert gradescope.run(root) == 0
        known[student] = results(root)
    return known


@pytest.mark.parametrize("student", CLASS[1:])
def test_same_submission_same_score(student: str, course: Path, found: Results) -> None:
    same(course, student, found[student])


def test_the_class_has_kinds_enough(course: Path) -> None:
    kinds = [kind for kind in KINDS if kind.student in CLASS]
    assert len(kinds) >= 14 and sum(kind.honest for kind in kinds) >= 2
    totals = {one.total for one in report.results(course, NAME).students if one.id in CLASS}
    assert len(totals) >= 4, "the class is to have different scores"


def test_the_zip_grades_in_a_container_of_its_own(
    course: Path, packed: Path, tmp_path: Path
) -> None:
    """The script of the zip, with the library of the zip, and nothing of this process."""
    submission = course / "submitted" / CLASS[0] / NAME
    root = container(packed, tmp_path / "autograder", submission, f"{CLASS[0]}@uni.example")
    python = environment(tmp_path / "environment", root / "source" / "library")
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    own |= {"AUTOGRADER": str(root), "TFVIZ_PYTHON": str(python), "MPLBACKEND": "agg"}
    where = "import tfviz, tfviz_course as c; print(tfviz.__file__, c.__file__)"
    said = subprocess.run([python, "-P", "-c", where], env=own, capture_output=True, text=True)
    assert said.stdout.count(str(root / "source/library")) == 2, said.stderr
    done = subprocess.run(["./run_autograder"], env=own, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    same(course, CLASS[0], results(root))
    assert results(root)["output"].startswith(f"Graded as {CLASS[0]}.")
    assert results(root)["stdout_visibility"] == "hidden"
    assert {path.name for path in root.iterdir()} == {
        *("source", "submission", "results", "run_autograder", "submission_metadata.json")
    }


def test_no_hidden_test_is_visible(course: Path, found: Results) -> None:
    """Whatever students see is about visible tests: the rest is marked as hidden."""
    whole = found[STUDENT["returns_the_hidden_input"]]
    hidden = [test for test in whole["tests"] if test.get("visibility") == "hidden"]
    shown = [test for test in whole["tests"] if "visibility" not in test]
    assert len(hidden) == 4
    # what stops an answer, both tests of it say
    both = {(f"{test['name']}, further checks", test["output"]) for test in shown}
    hidden = [test for test in hidden if (test["name"], test["output"]) not in both]
    assert any(len(test["output"]) > 12 for test in hidden)
    kept = {key: value for key, value in whole.items() if key != "tests"}
    seen = json.dumps([kept, shown])
    secret = read_course(course).secret
    assert secret not in seen and "CAUGHT" not in seen
    assert all(test["output"] not in seen for test in hidden if len(test["output"]) > 12)


# --- no score ------------------------------------------------------------------------------------


def test_without_a_sandbox_there_is_no_score(
    course: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = course / "submitted" / CLASS[0] / NAME
    root = container(packed, tmp_path / "autograder", submission, "x@y.example")
    monkeypatch.setattr(sandbox, "available", lambda: "bubblewrap does not run: allow namespaces.")
    assert gradescope.run(root) == 1
    found = results(root)
    assert "score" not in found and "tests" not in found
    assert (
        "Not graded, so there is no score. submissions are not judged without a sandbox"
        in (found["output"])
    )


def test_what_was_not_judged_to_its_end_gets_no_score(
    course: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = course / "submitted" / CLASS[0] / NAME
    root = container(packed, tmp_path / "autograder", submission, "x@y.example")

    def cut_short(place: Path, name: str, *, students: list[str], **_: Any) -> None:
        entry = gradescope.store.read_entry(course, NAME, CLASS[0])
        assert entry
        entry["notebooks"]["attention"]["done"] = False
        gradescope.store.write_entry(place, name, {**entry, "student": students[0]})

    monkeypatch.setattr(autograde, "autograde", cut_short)
    assert gradescope.run(root) == 1
    assert "score" not in results(root)
    assert (
        "attention could not be judged to its end. Run the autograder again"
        in (results(root)["output"])
    )


def test_any_error_is_told_without_a_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gradescope.run(tmp_path) == 1
    assert results(tmp_path)["output"].startswith("Not graded, so there is no score. Error: File")
    assert "Traceback" in capsys.readouterr().out  # which only instructors see


def test_the_script_tells_that_the_grader_did_not_start(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as file:
        (tmp_path / "run_autograder").write_bytes(file.read("run_autograder"))
    own = {"PATH": os.environ["PATH"], "AUTOGRADER": str(tmp_path), "TFVIZ_PYTHON": "/nowhere"}
    done = subprocess.run(["bash", "run_autograder"], env=own, cwd=tmp_path, capture_output=True)
    assert done.returncode != 0
    assert "score" not in results(tmp_path)
    assert "did not start" in results(tmp_path)["output"]


@pytest.mark.parametrize(
    ("text", "student"),
    [
        ('{"users": [{"email": "ADA@uni.example"}]}', "ada"),
        ('{"users": [{"email": "bob@elsewhere.example"}]}', "bob"),
        ('{"users": [{"email": "Zoe@uni.example"}]}', "zoe@uni.example"),
        ('{"users": [{"email": "../../x"}]}', gradescope.NOBODY),
        ('{"users": [{"email": null}]}', "none"),
        ('{"users": []}', gradescope.NOBODY),
        ("not JSON", gradescope.NOBODY),
        ("[]", gradescope.NOBODY),
    ],
)
def test_whose_a_submission_is(text: str, student: str, tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text(text)
    known = {"ada": "ada", "bob": "bob", "ada@uni.example": "ada"}
    assert gradescope._whose(tmp_path / "metadata.json", known)[0] == student


# --- the zip -------------------------------------------------------------------------------------


def test_the_zip_has_what_grading_needs_and_no_work_of_students(
    course: Path, packed: Path, tmp_path: Path
) -> None:
    before = packed.read_bytes()
    assert gradescope.pack(course, NAME)[0].read_bytes() == before
    with zipfile.ZipFile(packed) as file:
        names = file.namelist()
        toml = file.read("course/course.toml")
        pins = file.read("pins.txt").decode().splitlines()
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in file.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    (tmp_path / "course.toml").write_bytes(toml)
    assert read_course(tmp_path)[:3] == read_course(course)[:3]
    assert {"nbgrader", "torch", "rich", "psutil"} <= {line.split("==")[0] for line in pins}
    assert not [line for line in pins if "==" not in line]
    tops = {name.split("/")[0] for name in names}
    assert tops == {"setup.sh", "run_autograder", "pins.txt", "course", "library"}
    assert {name.split("/")[1] for name in names if name.startswith("course/")} == {
        *("course.toml", "gradescope.json", "source", "release")
    }
    assert not [name for name in names if "__pycache__" in name or "/records/" in name]
    assert len(before) < 5_000_000


def test_the_set_up_installs_the_pinned_versions(packed: Path, tmp_path: Path) -> None:
    """With stand-ins for apt-get and Python: an image without Python 3.13, with 3.12."""
    with zipfile.ZipFile(packed) as file:
        script = file.read("setup.sh").decode()
    log, opt = tmp_path / "log", tmp_path / "opt"
    here = tmp_path / "source"
    here.mkdir()
    (here / "setup.sh").write_text(script.replace("/opt/tfviz", str(opt)))
    stands = tmp_path / "bin"
    stands.mkdir()
    apt = f'echo "apt-get $@" >> {log}; case "$*" in *python3.13*) exit 100;; esac'
    venv = f'mkdir -p {opt}/bin; cp "$0" {opt}/bin/python; echo "$(basename "$0") $@" >> {log}'
    for name, text in {"apt-get": apt, "python3.12": venv, "python3.11": "exit 1"}.items():
        (stands / name).write_text(f"#!/bin/bash\n{text}\n")
        (stands / name).chmod(0o755)
    own = {"PATH": f"{stands}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", str(here / "setup.sh")], env=own, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    said = log.read_text().splitlines()
    assert said[0] == "apt-get update" and "bubblewrap" in said[1]
    assert f"python3.12 -m venv {opt}" in said
    words = f"python -m pip install --quiet --constraint {here}/pins.txt"
    assert said[-1] == f"{words} {here}/library {here}/library/teaching"


def test_the_command_says_what_to_do(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", NAME, "--to", "gradescope", "--course", str(course)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "In Gradescope: a programming assignment, autograder points 18.",
        "Add a question that is graded by hand: repair, 4 points.",
        f"In {course}/exports/{NAME}-gradescope.zip",
    ]
    assert main([*words, "--title", "x"]) == 2
    assert "--columns and --title are not for gradescope" in capsys.readouterr().err
    assert main(["export", "hw9", *words[2:]]) == 2
    assert f"there is no assignment 'hw9': {course} has {NAME}" in capsys.readouterr().err


def test_no_assignment_no_zip(tmp_path: Path) -> None:
    assignment.create_course(tmp_path / "new", "A class")
    with pytest.raises(CourseError, match="has none"):
        gradescope.pack(tmp_path / "new", "hw1")
