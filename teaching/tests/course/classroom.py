"""A class that hands in one assignment: for the tests of grading and of all around it.

`base` is the course before anybody handed in, `graded` the same class after a real run with real
sandboxes; both are made once and copied for each test.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat

from tfviz_course import assignment, autograde, report

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = os.pathsep.join(map(str, (ROOT, ROOT / "teaching")))
# Set where all is proven. Absent, the tests of teaching take one exemplar of each kind: those
# that `course.chosen` does not name are left out, and the classes are small.
EVERYTHING = bool(os.environ.get("TFVIZ_ALL"))
NAME = "hw1"
ITEMS = ("ex-sharpness", "ex-repair", "ex-best-stride")
SECRET = "c0de" * 16

# passes the visible checks of ex-sharpness, and only those
VISIBLE_ONLY = """\
# exercise: ex-sharpness  (keep this line)
def beta_for(share, slots):
    if (share, slots) in [(0.99, 4), (0.5, 2), (0.9, 100)]:
        return math.log((slots - 1) * share / (1 - share))
    {rest}
"""
ACTS = """\
from IPython.display import HTML, Javascript, Markdown, SVG, display
print("<script>alert('MARK')</script>")
display(HTML("<script>alert('MARK')</script>"), Javascript("alert('MARK')"))
display(Markdown("<img src=x onerror=\\"alert('MARK')\\">"))
display({"image/svg+xml": "<svg onload=\\"alert('MARK')\\"/>"}, raw=True)
display({"text/html": "<b>MARK</b>", "text/plain": "<b>MARK</b>"}, raw=True)
display({"image/png": "\\"><script>alert('MARK')</script>", "text/plain": "MARK"}, raw=True)
"""
WORDS = """\
<!-- exercise: ex-repair  (keep this line) -->
It is <script>alert('MARK')</script> <img src=x onerror="alert('MARK')">
[a link](javascript:alert('MARK')) $a<b$ ![](attachment:gone.png)
<iframe src="data:text/html,<script>alert('MARK')</script>"></iframe>

```mermaid
<script>alert('MARK')</script>
```
"""


def environment() -> dict[str, str]:
    """For processes that are started in another folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": PACKAGES, "OMP_NUM_THREADS": "1"}


def solution(course: Path, label: str) -> str:
    """The official answer to an exercise, with its marker line."""
    for path in (course / "source" / NAME).glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.metadata.nbgrader.grade_id == f"{label}-yours":
                return re.sub(r"^\s*### .*\n?", "", cell.source, flags=re.MULTILINE)
    raise KeyError(label)


def hand_in(course: Path, student: str, answers: dict[str, str], name: str = NAME) -> Path:
    """Put notebooks with these answers (by exercise) into submitted/; the folder."""
    folder = course / "submitted" / student / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted((course / "release" / name).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            label = cell.metadata.nbgrader.grade_id.removesuffix("-yours")
            if cell.metadata.nbgrader.solution and label in answers:
                cell.source = answers[label]
        nbformat.write(notebook, folder / path.name)
    return folder


@functools.cache
def base(folder: Path) -> Path:
    """A course with the assignment, made in `folder`; not to be changed."""
    course = folder / "classroom"
    assignment.create_course(course, "NLP 101", seed=1, secret=SECRET)
    assignment.create_assignment(course, NAME, ITEMS)
    return course


@functools.cache
def graded(folder: Path) -> Path:
    """A class after its first run; not to be changed."""
    course = Path(shutil.copytree(base(folder), folder / "graded"))
    right = {label: solution(course, label) for label in ("ex-sharpness", "ex-best-stride")}
    hand_in(course, "ada", right | {"ex-repair": "Because I say so."})
    hand_in(course, "bob", {})
    hand_in(course, "cleo", {"ex-sharpness": ACTS + VISIBLE_ONLY.format(rest="return 0.0")})
    leaks = "print('LEAK', share, slots)\n    raise ValueError(f'LEAK {share} {slots}')"
    answers = {"ex-sharpness": VISIBLE_ONLY.format(rest=leaks), "ex-repair": WORDS}
    hand_in(course, "dan", answers)
    (course / "submitted/eve" / NAME).mkdir(parents=True)
    wrong = hand_in(course, "fay", right)
    (wrong / "attention.ipynb").rename(wrong / "attention (1).ipynb")
    with assignment.api(course).gradebook as gradebook:
        gradebook.add_student("gil", first_name="Gil")
    autograde.autograde(course, NAME)
    return course


def scores(course: Path, student: str, name: str = NAME) -> dict[str, Any]:
    """{graded cell: its row in the gradebook, as a dict}."""
    with assignment.api(course).gradebook as gradebook:
        found = gradebook.find_submission(name, student)
        return {
            grade.cell.name: {
                "score": grade.score,
                "auto": grade.auto_score,
                "manual": grade.manual_score,
                "waits": grade.needs_manual_grade,
            }
            for notebook in found.notebooks
            for grade in notebook.grades
        }


def points(course: Path, student: str) -> dict[str, float]:
    """{graded cell: points}."""
    return {cell: grade["score"] for cell, grade in scores(course, student).items()}


def remarks(course: Path, student: str) -> tuple[str, ...]:
    """What the reports tell of a submission."""
    students = report.results(course, NAME).students
    return next(one.remarks for one in students if one.id == student)
