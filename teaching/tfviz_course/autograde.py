"""Grade the submissions of an assignment: rebuilt, judged in a sandbox, recorded by nbgrader.

What is in the store (`tfviz_course.store`) is neither rebuilt nor judged again unless the
submission, the assignment or the code that does it changed, or it was not judged to the end.
Recording, in gradebook.db and autograded/, is done in every run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import time
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import MissingEntry
from sqlalchemy.exc import OperationalError

from tfviz_course import CourseError, judge, sandbox, store
from tfviz_course import students as ids
from tfviz_course.assignment import api, failure, kept, released
from tfviz_course.child import Child
from tfviz_course.rebuild import (
    BESIDE,
    Rebuilt,
    Version,
    read_files,
    read_submission,
    rebuild,
)
from tfviz_course.settings import read_course

JUDGING = ("rebuild", "judge", "line", "asked", "child", "inside", "sandbox", "codec")
NOTHING: dict[str, Any] = {"verdicts": {}, "outputs": {}, "remarks": []}
LONGEST = 1000  # bytes of a file of nbgrader's beside the notebooks
# remarks of the last resort, whole: a student's own words may stand in others
TRIES = 3  # runs in which a submission may meet the last resort; then its verdicts stand
LATE = re.compile(r"(\S+: ran out of time|judging it took too long): the machine was busy")
LOCKED = 30  # seconds to wait when another program holds the gradebook
BUSY = "database is locked"


def autograde(
    course: str | Path,
    assignment: str,
    *,
    students: Iterable[str] | None = None,
    workers: int | None = None,
    limits: sandbox.Limits | None = None,
    again: bool = False,
    judge_only: bool = False,
    progress: bool = False,
) -> dict[str, float]:
    """Grade an assignment. Returns the seconds that judging took, by student.

    students      names of folders in submitted/; all of them unless given
    workers       submissions that are judged at a time; unless given, as many as there are cores
    again         judge anew what the store has
    judge_only    bring the store up to date; the gradebook stays as it is
    progress      say on stderr who is judged

    Raises `CourseError` with the remedy; what is judged until then is kept.
    """
    task = _load(Path(course).resolve(), assignment)
    if not judge_only:
        _check_gradebook(task)
    limits = limits or judge.LIMITS
    took = dict.fromkeys(_chosen(task, students), 0.0)
    if why := sandbox.available():
        raise CourseError(f"submissions are not judged without a sandbox: {why}")
    state = _state(task, limits)
    with store.alone(task.course):
        entries: dict[str, dict[str, Any]] = {}
        jobs: list[Job] = []
        for student in took:
            submission = _collect(task, student, state)
            old = store.read_entry(task.course, task.name, student) or {}
            if again or not _is_judged(task, submission, old):
                rebuilt, remarks = _rebuild(task, submission)
                entries[student] = _begun(task, submission, rebuilt, remarks, old, again)
                store.write_entry(task.course, task.name, entries[student])
                jobs += _jobs(student, rebuilt)
        workers = workers or len(os.sched_getaffinity(0))
        with contextlib.closing(_judge(task, jobs, workers, limits)) as judging:
            for number, verdicts in enumerate(judging, 1):
                student = verdicts.job.student
                if verdicts.judged is not None:
                    entries[student] = _with(entries[student], verdicts.job, verdicts.judged)
                    store.write_entry(task.course, task.name, entries[student])
                took[student] += verdicts.seconds
                if progress:
                    print(f"judged {number} of {len(jobs)}: {student}", file=sys.stderr)
        if not judge_only:
            _record_all(task, list(took))
    return took


@dataclass(frozen=True)
class Assignment:
    """What there is to grade, and with what."""

    course: Path
    name: str
    secret: str
    sources: dict[str, NotebookNode]
    releases: dict[str, NotebookNode]
    earlier: dict[str, list[Version]]  # the releases of all times, by notebook


@dataclass(frozen=True)
class Submission:
    """What a student handed in, as it was read."""

    student: str
    files: Mapping[str, bytes]
    remarks: Sequence[str]  # on what was not read
    seen: str  # a mark of all that its verdicts depend on


@dataclass(frozen=True)
class Job:
    """One notebook of one submission, which a process judges."""

    student: str
    notebook: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class Verdicts:
    """What came of a job: what the judge says, None where its process did not start."""

    job: Job
    judged: Mapping[str, Any] | None
    seconds: float


def _load(course: Path, name: str) -> Assignment:
    secret = read_course(course).secret
    sources, releases = (
        {path.stem: nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))}
        for folder in (course / "source" / name, course / "release" / name)
    )
    if not sources:
        known = sorted(path.name for path in (course / "source").glob("[!.]*"))
        said = f"there is no assignment {name!r} in {course}: it has"
        raise CourseError(f"{said} {', '.join(known) or 'none'}")
    if missing := ", ".join(sorted(sources.keys() - releases.keys())):
        how = f"in formgrader or with 'nbgrader generate_assignment {name}'"
        raise CourseError(f"release/{name} lacks {missing}: generate the assignment, {how}")
    releases = {notebook: releases[notebook] for notebook in sources}
    return Assignment(course, name, secret, sources, releases, released(course, name))


def _check_gradebook(task: Assignment) -> None:
    """Raises `CourseError` where nbgrader would make an empty one and fail in it."""
    address = api(task.course).coursedir.db_url
    file = Path(address.removeprefix("sqlite:///").partition("?")[0])
    if address.startswith("sqlite:///") and not file.is_file():
        how = f"make one with 'tfviz-course assignment {task.name} ITEM… --again'"
        raise CourseError(f"there is no gradebook {file}: restore it from your copy, or {how}")


def _chosen(task: Assignment, students: Iterable[str] | None) -> list[str]:
    there, _ = ids.below(task.course / "submitted", task.name)
    wanted = there if students is None else sorted(map(ids.check, set(students)))
    if strangers := [student for student in wanted if student not in there]:
        folder = task.course / "submitted" / strangers[0] / task.name
        raise CourseError(f"no submission of {', '.join(strangers)}: there is no folder {folder}")
    return wanted


def _state(task: Assignment, limits: sandbox.Limits) -> str:
    """A mark of what all verdicts depend on: the code that judges, limits, and the assignment."""
    books = (*task.sources.items(), *task.releases.items())
    known = [(name, c.cell_type, c.source, c.metadata) for name, book in books for c in book.cells]
    code = [Path(__file__).with_name(f"{name}.py").read_text("utf8") for name in JUDGING]
    return store.hashed([code, asdict(limits), task.secret, task.name, known])


# --- one submission: collected, rebuilt ----------------------------------------------------------


def _collect(task: Assignment, student: str, state: str) -> Submission:
    files, remarks = read_files(task.course / "submitted" / student / task.name, task.releases)
    sums = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
    return Submission(student, files, remarks, store.hashed([state, student, sums, remarks]))


def _place(task: Assignment, student: str) -> Path:
    """Where a rebuilt submission stands."""
    return task.course / store.REBUILT / student / task.name


def _is_judged(task: Assignment, submission: Submission, entry: Mapping[str, Any]) -> bool:
    """Whether the store has all verdicts on a submission as it is, and what they are on."""
    rebuilt = _sums(_place(task, submission.student))
    return entry.get("seen") == submission.seen and entry.get("rebuilt") == rebuilt


def _rebuild(
    task: Assignment, submission: Submission
) -> tuple[Mapping[str, Rebuilt], Sequence[str]]:
    """The release with the student's answers, written too; and remarks on what lies beside it."""
    student, files = submission.student, submission.files
    try:
        known = (submission.remarks, task.releases, student, task.earlier)
        rebuilt = read_submission(files, *known)
    except Exception as error:  # odder than was thought of; the class is to get its points
        said = [f"the submission cannot be read: {type(error).__name__}"]
        rebuilt = {one: rebuild(release, (), said) for one, release in task.releases.items()}
    place = _place(task, student)
    with store.writing(place), kept(place):
        remarks = _write_rebuilt(place, rebuilt, files)
    return rebuilt, remarks


def _begun(
    task: Assignment,
    submission: Submission,
    rebuilt: Mapping[str, Rebuilt],
    remarks: Sequence[str],
    old: Mapping[str, Any],
    again: bool,
) -> dict[str, Any]:
    """The store's entry on a submission that is rebuilt and not judged; `old` is the one before."""
    late = {} if again or old.get("aim") != submission.seen else old.get("notebooks", {})
    return {
        "format": store.FORMAT,
        "student": submission.student,
        "seen": "",
        "recorded": old.get("recorded"),
        "rebuilt": _sums(_place(task, submission.student)),
        "aim": submission.seen,
        "notebooks": {
            notebook: {
                "done": False,
                "late": late.get(notebook, {}).get("late", 0),
                "answers": store.digest(found.notebook),
                "remarks": [*(() if number else remarks), *found.remarks],
                "judged": NOTHING,
            }
            for number, (notebook, found) in enumerate(rebuilt.items())
        },
    }


def _jobs(student: str, rebuilt: Mapping[str, Rebuilt]) -> list[Job]:
    """What is to be judged; where nothing is answered no process need start."""
    return [
        Job(student, notebook, found.answers if found.found else {})
        for notebook, found in rebuilt.items()
    ]


def _sums(folder: Path) -> list[list[str]]:
    """Marks of the rebuilt files, so that who removes or changes them gets them anew."""
    files = sorted(folder.glob("*"))
    return [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]


def _write_rebuilt(
    final: Path, rebuilt: Mapping[str, Rebuilt], files: Mapping[str, bytes]
) -> list[str]:
    """Write what nbgrader is to read; returns remarks on the files beside the notebooks."""
    final.mkdir(parents=True)
    for notebook, found in rebuilt.items():
        nbformat.write(found.notebook, final / f"{notebook}.ipynb")
    remarks: list[str] = []
    for name in BESIDE:
        data = files.get(name, b"")
        if not (text := data.decode("utf-8", "replace").strip()):
            continue
        try:
            if len(data) > LONGEST or not text.isascii():
                raise ValueError("not one of nbgrader's")
            if "time" in name:
                utils.parse_utc(text)
            (final / name).write_bytes(data)  # as it is: the student finds the feedback by it
        except (ValueError, OverflowError):
            remarks.append(f"{name} says {text[:40]!r}, which is not understood; it is not used")
    return remarks


# --- judged ---------------------------------------------------------------------------------------


def _judge(
    task: Assignment, jobs: Sequence[Job], workers: int, limits: sandbox.Limits
) -> Generator[Verdicts, None, None]:
    """Judge each job in a child process, `workers` at a time.

    Whose process does not start is judged again in the next run: `CourseError` says so when all
    others are judged, or at once when nobody's does.
    """
    prepared = {}
    for name in sorted({job.notebook for job in jobs}):
        try:
            prepared[name] = judge.prepare(task.sources[name])
        except ValueError as error:
            place = f"source/{task.name}/{name}.ipynb"
            raise CourseError(f"{place} does not run with its own answers: {error}") from error
    queue = list(reversed(jobs))
    running: dict[Child, tuple[Job, float]] = {}
    dead: dict[str, str] = {}  # whose process did not start, and why
    good = False
    try:
        while queue or running:
            while queue and len(running) < workers:
                job = queue.pop()
                who: Any = {"student": job.student, "secret": task.secret, "assignment": task.name}
                child = Child(prepared[job.notebook], job.answers, limits=limits, **who)
                running[child] = job, time.monotonic()
            wait([child.line for child in running], timeout=1)
            for child in [child for child in running if child.done()]:
                job, begin = running.pop(child)
                seconds = round(time.monotonic() - begin, 3)
                judged: Mapping[str, Any] | None = None
                try:
                    judged = asdict(child.result())
                    good = True
                except sandbox.Unavailable as error:
                    dead[job.student] = str(error)
                    if not good and len(dead) > workers:
                        queue = []
                except RuntimeError as error:
                    judged = {**NOTHING, "remarks": [f"could not be judged: {error}"]}
                yield Verdicts(job, judged, seconds)
    finally:
        for child in running:
            child.end()
    if dead:
        raise CourseError(f"not judged: {ids.together(dead)}; run this again")


def _with(entry: Mapping[str, Any], job: Job, judged: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what the judge says of one of its notebooks. Where that met the last resort, it
    is judged again next time, but for the last of `TRIES` runs."""
    part = entry["notebooks"][job.notebook]
    late = any(map(LATE.fullmatch, judged["remarks"]))
    runs = part["late"] + late
    if late and runs >= TRIES:
        said = f"this happened in {TRIES} runs, so it is final; --again judges it once more"
        judged, late = {**judged, "remarks": [*judged["remarks"], said]}, False
    done = bool(judged["verdicts"]) and not late
    parts = {**entry["notebooks"]}
    parts[job.notebook] = {**part, "late": runs, "judged": judged, "done": done}
    whole = all(one["done"] for one in parts.values())  # else again, next time
    return {**entry, "notebooks": parts, "seen": entry["aim"] if whole else entry["seen"]}


# --- recorded -------------------------------------------------------------------------------------


def _record_all(task: Assignment, students: Sequence[str]) -> None:
    """Write the stored verdicts into the gradebook, by nbgrader's own Autograde. One that cannot be
    recorded does not keep the others from it; `CourseError` names it at the end."""
    failed: dict[str, str] = {}
    handle = api(task.course)
    handle.config.Autograde.judged = True
    address = handle.coursedir.db_url
    if address.startswith("sqlite") and "?" not in address:
        handle.coursedir.db_url = f"{address}?timeout={LOCKED}"
    for student in students:
        try:
            with warnings.catch_warnings(action="ignore"):  # of packages that nbgrader stands on
                said = _record(handle, task.name, student)
        except (OSError, OperationalError) as error:
            said = failure({"error": f"{type(error).__name__}: {error}"})
        if BUSY in said:
            raise CourseError(
                "the gradebook is in use by another program, such as formgrader or one that copies "
                "gradebook.db: close it, then run this again. All verdicts are kept."
            )
        if said:
            failed[student] = said
    if failed:
        raise CourseError(f"not recorded: {ids.together(failed)}")


def _record(handle: Any, assignment: str, student: str) -> str:
    """Record one student; returns why it did not work, or an empty text."""
    course = Path(handle.coursedir.root)
    entry = store.read_entry(course, assignment, student) or {}
    seen = entry.get("seen")
    before = set()
    if entry.get("recorded") == seen:  # nothing changed since a person looked at it
        with handle.gradebook as gradebook:
            grades = _grades(gradebook, assignment, student)
            done = [one for one in grades if not one.needs_manual_grade]
            before = {one.cell.name for one in done if one.manual_score is not None}
    result = handle.autograde(assignment, student)
    if not result["success"]:
        if str(result.get("error")).strip().endswith("KeyboardInterrupt"):
            raise KeyboardInterrupt  # nbgrader catches everything
        return BUSY if BUSY in f"{result.get('log')}{result.get('error')}" else failure(result)
    if before:  # so nobody need look again
        with handle.gradebook as gradebook:
            for grade in _grades(gradebook, assignment, student):
                if grade.cell.name in before:
                    grade.needs_manual_grade = False
            gradebook.db.commit()
    store.write_entry(course, assignment, {**entry, "recorded": seen})
    return ""


def _grades(gradebook: Any, assignment: str, student: str) -> list[Any]:
    with contextlib.suppress(MissingEntry):
        notebooks = gradebook.find_submission(assignment, student).notebooks
        return [grade for notebook in notebooks for grade in notebook.grades]
    return []
