"""An assignment as an autograder of Gradescope: our grader, in a zip that brings all it needs.

`pack` writes the zip, on the instructor's machine. `run` is what `run_autograder` starts in
Gradescope's container. It puts the submission into a course folder of its own, calls the same
`autograde` as everybody, and writes results.json. Without a sandbox it refuses: there is then a
message in results.json, and no score, so that nobody has 0 points by accident.

What Gradescope expects (gradescope-autograders.readthedocs.io, "Autograder Specifications" and
"Submission Metadata"): setup.sh and run_autograder at the top of the zip; /autograder/source is the
zip unpacked, /autograder/submission what was handed in, /autograder/submission_metadata.json says
whose it is, /autograder/results/results.json is the outcome. A score stands there as a whole or
with each test; here as a whole, so that an answer in words can be a test without a score.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfviz._files import written_whole
from tfviz_course import CourseError, store
from tfviz_course import students as ids
from tfviz_course.assignment import api
from tfviz_course.report import number, read_cells, short
from tfviz_course.settings import read_course

PACKAGES = ("tfviz", "tfviz_lab", "tfviz_lessons", "teaching/tfviz_course")
# what the packages are built from
BESIDE = ("pyproject.toml", "README.md", "LICENSE", "teaching/pyproject.toml", "teaching/README.md")
PINS = ("requirements.txt", "teaching/requirements.txt")
LEFT_OUT = {"__pycache__", "records"}  # folders
NOBODY = "student"  # where Gradescope does not say whose it is
LONGEST = 4000  # characters of one message
DATE = (2020, 1, 1, 0, 0, 0)  # of all files in the zip: the same assignment gives the same zip

SETUP = """\
#!/usr/bin/env bash
# Makes the grader's environment when Gradescope builds its image. Written by tfviz-course.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates
python=""
for name in python3.13 python3.12 python3.11; do  # older ones cannot run the grader
  if apt-get install -y --no-install-recommends "$name" "$name-venv"; then
    python="$name"
    break
  fi
done
if [ -z "$python" ]; then
  echo "This image has no Python from 3.11 to 3.13: choose a newer Ubuntu in Gradescope." >&2
  exit 1
fi
"$python" -m venv /opt/tfviz
pip=(/opt/tfviz/bin/python -m pip install --quiet --constraint "$here/pins.txt")
# the wheel without CUDA is ten times smaller; where it cannot be had, the other one comes below
"${pip[@]}" torch --index-url https://download.pytorch.org/whl/cpu || true
"${pip[@]}" "$here/library" "$here/library/teaching"
"""
RUN = """\
#!/usr/bin/env bash
# Grades one submission in Gradescope. Written by tfviz-course.
root="${AUTOGRADER:-/autograder}"
results="$root/results/results.json"
mkdir -p "$root/results"
rm -f "$results"
"${TFVIZ_PYTHON:-/opt/tfviz/bin/python}" -P -m tfviz_course.gradescope "$root"
code=$?
if [ ! -s "$results" ]; then
  echo '{"output": "The grader did not start, so there is no score: tell your instructor."}' \\
    > "$results"
fi
exit $code
"""
WAITS = "Your answer is in words: a person reads it and gives the points. It is not counted here."
EMPTY = "There is no answer yet."
PASSED = "passed"


# --- on the instructor's machine -----------------------------------------------------------------


def pack(course: Path, assignment: str) -> tuple[Path, dict[str, float], float]:
    """Write exports/<assignment>-gradescope.zip.

    Returns the file, what exercises in words are worth, which a person grades, and what all others
    are worth together. Raises `CourseError` with the remedy.
    """
    known = read_course(course)
    release, source = course / "release" / assignment, course / "source" / assignment
    cells = read_cells(release)
    if not cells or not source.is_dir():
        there = ", ".join(sorted(path.name for path in (course / "release").glob("[!.]*")))
        raise CourseError(f"there is no assignment {assignment!r}: {course} has {there or 'none'}")
    file = course / "exports" / f"{assignment}-gradescope.zip"
    with store.writing(file), written_whole(file) as out, zipfile.ZipFile(out, "w") as packed:
        for name, data, mode in _members(course, assignment, known):
            about = zipfile.ZipInfo(name, DATE)
            about.external_attr = (0o100000 | mode) << 16
            packed.writestr(about, data, zipfile.ZIP_DEFLATED)
    words: dict[str, float] = {}
    rest = 0.0
    for cell in cells.values():
        if cell.kind == "written":
            words[cell.exercise] = words.get(cell.exercise, 0.0) + cell.most
        else:
            rest += cell.most
    return file, words, rest


def _members(course: Path, assignment: str, known: Any) -> Iterator[tuple[str, bytes, int]]:
    """Name, content and mode of the files in the zip."""
    yield "setup.sh", SETUP.encode(), 0o755
    yield "run_autograder", RUN.encode(), 0o755
    home = Path(__file__).resolve().parents[2]
    lines = [line for name in PINS for line in _read(home / name).decode().splitlines()]
    pins = [line for line in lines if "==" in line and not line.startswith("#")]
    yield "pins.txt", "\n".join([*pins, ""]).encode(), 0o644
    text = {key: json.dumps(getattr(known, key)) for key in ("name", "seed", "secret")}
    toml = "".join(f"{key} = {value}\n" for key, value in text.items())
    yield "course/course.toml", toml.encode(), 0o600
    about = {"assignment": assignment, "students": _addresses(course)}
    yield "course/gradescope.json", json.dumps(about, indent=1).encode(), 0o600
    for part in ("source", "release"):
        for path in sorted((course / part / assignment).glob("*.ipynb")):
            yield f"course/{part}/{assignment}/{path.name}", path.read_bytes(), 0o600
    for name in BESIDE:
        yield f"library/{name}", _read(home / name), 0o644
    for package in PACKAGES:
        for path in sorted((home / package).rglob("*")):
            inside = path.relative_to(home)
            if path.is_file() and not LEFT_OUT & {*inside.parts}:
                yield f"library/{inside.as_posix()}", path.read_bytes(), 0o644


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        how = "run this in a clone of the course, after 'make env'"
        raise CourseError(f"{file} cannot be read ({error.strerror}): {how}") from None


def _addresses(course: Path) -> dict[str, str]:
    """Students' ids, by what Gradescope may call them: the addresses that the gradebook has, and
    the ids themselves."""
    if not (course / "gradebook.db").is_file():
        return {}
    with warnings.catch_warnings(action="ignore"), api(course).gradebook as book:
        students = {student.id: student.email or "" for student in book.students}
    known = {one.casefold(): one for one in students}
    return known | {email.casefold(): one for one, email in students.items() if email}


# --- in Gradescope's container -------------------------------------------------------------------


def run(root: Path) -> int:
    """Grade the submission that lies in Gradescope's folder; the exit code, 0 if there is a score.

    What students read is in results.json, what only the instructor sees is printed.
    """
    begin = time.monotonic()
    try:
        found = _graded(root)
    except Exception as error:
        if not isinstance(error, CourseError):
            traceback.print_exc(file=sys.stdout)
        print(f"Not graded: {error}")
        said = str(error) if isinstance(error, CourseError) else f"Error: {type(error).__name__}"
        found = {"output": f"Not graded, so there is no score. {said}"[:LONGEST]}
    found["execution_time"] = round(time.monotonic() - begin)
    found["stdout_visibility"] = "hidden"
    with written_whole(root / "results" / "results.json") as out:
        out.write(json.dumps(found, indent=1).encode())
    return 0 if "score" in found else 1


def _graded(root: Path) -> dict[str, Any]:
    from tfviz_course.autograde import autograde

    packed = root / "source" / "course"
    about = json.loads((packed / "gradescope.json").read_text("utf8"))
    assignment = about["assignment"]
    student, called = _whose(root / "submission_metadata.json", about["students"])
    with tempfile.TemporaryDirectory(prefix="tfviz-") as place:
        course = Path(place) / "course"
        shutil.copytree(packed, course)
        handed_in = course / "submitted" / student / assignment
        shutil.copytree(root / "submission", handed_in, symlinks=True)
        autograde(course, assignment, students=[student], workers=1, judge_only=True)
        entry = store.read_entry(course, assignment, student) or {}
        found = _results(course, assignment, entry)
    remarks = dict.fromkeys(one for part in entry["notebooks"].values() for one in part["remarks"])
    lines = [f"Graded as {called}.", *(f"How your file was read: {one}" for one in remarks)]
    return {"output": "\n".join(lines)[:LONGEST], "output_format": "text", **found}


def _whose(metadata: Path, known: Mapping[str, str]) -> tuple[str, str]:
    """The student's id, and words for it. Students draw their own numbers by their id."""
    try:
        users = json.loads(metadata.read_text("utf8"))["users"]
        address = str(users[0]["email"]).strip().casefold()
    except (OSError, ValueError, LookupError, TypeError):
        address = ""
    local = address.partition("@")[0]
    student = known.get(address) or known.get(local) or address
    if not ids.is_id(student):
        return NOBODY, "somebody whose address Gradescope does not give"
    return student, student


def _results(course: Path, assignment: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Score and tests out of the store. `CourseError` where something was not judged to its end."""
    tests, score = [], 0.0
    empty = _left_empty(course, assignment, entry["student"])
    for (notebook, name), cell in read_cells(course / "release" / assignment).items():
        judged = entry["notebooks"][notebook]["judged"]
        for remark in judged["remarks"]:
            print(f"{notebook}: {remark}")
        test: dict[str, Any] = {"name": short(cell.exercise), "max_score": cell.most}
        if cell.kind == "written":
            answered = (notebook, name) not in empty
            test |= {"output": WAITS} if answered else {"score": 0.0, "output": EMPTY}
        else:
            verdict = judged["verdicts"].get(name)
            if verdict is None or not entry["notebooks"][notebook]["done"]:
                how = "Run the autograder again on this submission; its log says more"
                raise CourseError(f"{notebook} could not be judged to its end. {how}.")
            points = cell.most if verdict["passed"] else 0.0
            score += points
            said = PASSED if verdict["passed"] else verdict["message"][:LONGEST]
            test |= {"score": points, "output": said}
            if cell.kind == "hidden":
                test |= {"name": f"{test['name']}, further checks", "visibility": "hidden"}
        tests.append(test | {"output_format": "text", "name_format": "text"})
    return {"score": score, "tests": tests}


def _left_empty(course: Path, assignment: str, student: str) -> set[tuple[str, str]]:
    """The answers in words in which nothing is written: nbgrader gives those 0 points, too."""
    empty = set()
    for file in sorted((course / store.REBUILT / student / assignment).glob("*.ipynb")):
        for cell in json.loads(file.read_text("utf8"))["cells"]:
            if cell["metadata"].get("tfviz", {}).get("empty"):
                empty.add((file.stem, cell["metadata"]["nbgrader"]["grade_id"]))
    return empty


def told(words: Mapping[str, float], rest: float) -> list[str]:
    """What the instructor is to do in Gradescope with a zip."""
    lines = [f"In Gradescope: a programming assignment, autograder points {number(rest)}."]
    for exercise, most in words.items():
        lines += [
            f"Add a question that is graded by hand: {short(exercise)}, {number(most)} points."
        ]
    return lines


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        sys.exit(run(Path(sys.argv[1])))
