"""What grading keeps in a course folder, between judging and recording.

.tfviz/released/<assignment>/<digest>.json               what students were given, each version
.tfviz/rebuilt/<student>/<assignment>/<notebook>.ipynb   what is graded of a submission
.tfviz/judged/<assignment>/<student>.json                its verdicts; a file is there whole
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from tfviz._files import written_whole
from tfviz_course import CourseError, students

RELEASED = ".tfviz/released"
REBUILT = ".tfviz/rebuilt"
JUDGED = ".tfviz/judged"
FORMAT = 2  # of the files with verdicts


@contextlib.contextmanager
def alone(course: Path) -> Iterator[None]:
    """While one grades in this course, no other process does.

    Raises `CourseError` at once if another one is at it. Not to be used twice in one process.
    """
    path = Path(course) / ".tfviz" / "lock"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, even killed
        except OSError:
            file.seek(0)
            said = f"this course is being graded by another program (process {file.read().strip()})"
            raise CourseError(f"{said}; wait until it has ended, then run this again") from None
        with writing(path):
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), str(os.getpid()).encode())
        yield


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Where this cannot be written, as on a full disk, the error names it."""
    try:
        yield
    except OSError as error:
        said = f"{path} cannot be written: {error.strerror or error}"
        how = "Fix that, then run this again; finished work is kept"
        raise CourseError(f"{said}. {how}") from error


def read_entry(course: Path, assignment: str, student: str) -> dict[str, Any] | None:
    """What the store has on a submission; None if nothing, or if it cannot be read.

    {"student", "seen" (what is judged, empty if not all), "recorded" (the same of the gradebook),
     "rebuilt" (marks of its files), "aim" (what "seen" will be),
     "notebooks": {notebook: {"done", "late" (in how many runs), "answers", "remarks",
                              "judged": {"verdicts", "outputs", "remarks"}}}}
    """
    try:
        entry = json.loads(_entry_path(course, assignment, student).read_text("utf8"))
    except (FileNotFoundError, ValueError):
        return None
    return entry if isinstance(entry, dict) and entry.get("format") == FORMAT else None


def _entry_path(course: Path, assignment: str, student: str) -> Path:
    return Path(course) / JUDGED / assignment / f"{students.check(student)}.json"


def write_entry(course: Path, assignment: str, entry: Mapping[str, Any]) -> None:
    path = _entry_path(course, assignment, entry["student"])
    with writing(path), written_whole(path) as file:
        file.write(json.dumps(entry, indent=1).encode())


def remember(course: Path, assignment: str, versions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Keep what students are given, by notebook; returns this and all that was kept before."""
    folder = Path(course) / RELEASED / assignment
    path = folder / f"{hashed(versions)[:16]}.json"
    if not path.exists():
        with writing(path), written_whole(path) as file:
            file.write(json.dumps(versions).encode())
    found = []
    for kept in sorted(folder.glob("*.json")):
        with contextlib.suppress(OSError, ValueError):  # it only says less
            found.append(json.loads(kept.read_text("utf8")))
    return found


def digest(notebook: NotebookNode) -> str:
    """A mark of the answers in a rebuilt notebook."""
    answers = filter(is_solution, notebook.cells)
    return hashed([(cell.metadata.nbgrader.grade_id, cell.source) for cell in answers])


def hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
