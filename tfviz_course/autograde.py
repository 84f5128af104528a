"""Grade the submissions of an assignment: rebuilt, judged in a sandbox, recorded by nbgrader.

    rebuilt     .tfviz/rebuilt/<student>/<assignment>/<notebook>.ipynb
    judged      .tfviz/judged/<assignment>/<student>.json: the store; each file is written whole
    recorded    gradebook.db and autograded/, one student after the other

What is in the store is neither rebuilt nor judged again unless the submission, the assignment or
the code that does it changed.
So a run that was stopped goes on where it was. Recording is done anew in every run, so that every
graded cell of every submission has the score of what is handed in *now*; scores and comments that
a person gave stay.

**Neighbours.** Submissions that are judged side by side share the machine, so one can take time
from another. Whose process does not start, or who runs out of time beside others, is judged once
more, alone, at the end, and the second verdict counts. So that a class of endless loops does not
double the time of a run, no second try for lack of time begins after these have taken a quarter of
the first round and one more submission's time limit; the shortest come first. Who is left out
reads so in a remark.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import nbformat
from nbformat import NotebookNode

from tfviz_course import students as ids
from tfviz_course.assignment import api, failure, read_course
from tfviz_course.rebuild import Rebuilt, fingerprint, read_bytes, read_submission, rebuild
from tfviz_course.store import (
    FORMAT,
    REBUILT,
    alone,
    digest,
    hashed,
    read_entry,
    write_entry,
    writing,
)

if TYPE_CHECKING:
    from tfviz_course.judge import Prepared
    from tfviz_course.sandbox import Limits

NOTHING: dict[str, Any] = {"verdicts": {}, "outputs": {}, "remarks": []}
REMARKS = 20  # on one notebook
BESIDE = 1000  # bytes of a file of nbgrader's beside the notebooks
LATE = ("ran out of time: the machine was busy", "judging it took too long")  # only the last resort
PAUSES = (1, 2, 4, 8, 15)  # seconds to wait when another program holds the gradebook
BUSY = "database is locked"
T = TypeVar("T")


class GradingError(Exception):
    """Why grading cannot go on, with the remedy; nothing that is judged is lost."""


@dataclass(frozen=True)
class Graded:
    """One student's result.

    scores      points by exercise, as the gradebook has them (a person's score goes first)
    waiting     exercises that wait for a person
    remarks     what was odd, for student and instructor
    seconds     that judging took; 0 where the store had it
    """

    scores: dict[str, float]
    waiting: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Results:
    """A run over an assignment.

    maximum     points by exercise
    missing     students of the gradebook who handed in nothing
    strange     folders in submitted/ whose names cannot be ids; nothing of them is graded
    seconds     of the whole run
    """

    assignment: str
    maximum: dict[str, float]
    students: dict[str, Graded]
    missing: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    seconds: float = 0.0


def autograde(
    course: str | Path,
    assignment: str,
    *,
    students: Iterable[str] | None = None,
    workers: int | None = None,
    limits: Limits | None = None,
    accept_risk: bool = False,
    again: bool = False,
    progress: bool = False,
) -> Results:
    """Grade an assignment, and say who has how many points.

    students      names of folders in submitted/; all of them unless given
    workers       submissions that are judged at a time; unless given, as many as there are cores
    accept_risk   judge without a sandbox where there is none
    again         judge anew what the store has
    progress      show a bar on stderr

    Raises `GradingError` (or a `CourseError`) with the remedy; what is judged until then is kept.
    """
    begin = time.monotonic()
    folder = Path(course).resolve()
    task = _load(folder, assignment)
    with alone(folder):
        took = _judge(
            task,
            students=students,
            workers=workers,
            limits=limits,
            accept_risk=accept_risk,
            again=again,
            progress=progress,
        )
        record(folder, assignment, sorted(took), progress=progress)
    return _results(task, took, time.monotonic() - begin)


# --- the assignment and its submissions ----------------------------------------------------------


@dataclass(frozen=True)
class _Assignment:
    course: Path
    name: str
    secret: str
    sources: dict[str, NotebookNode]
    releases: dict[str, NotebookNode]

    def exercise(self, grade_id: str) -> str:
        """The exercise that a graded cell belongs to."""
        return self._exercises.get(grade_id, grade_id)

    @cached_property
    def _exercises(self) -> dict[str, str]:
        cells = [cell for release in self.releases.values() for cell in release.cells]
        return {
            cell.metadata.nbgrader.grade_id: cell.metadata.tfviz.exercise
            for cell in cells
            if "exercise" in cell.metadata.get("tfviz", {}) and "nbgrader" in cell.metadata
        }


def _load(course: Path, name: str) -> _Assignment:
    secret = read_course(course).secret
    found = {}
    for kind in ("source", "release"):
        paths = sorted((course / kind / name).glob("*.ipynb"))
        found[kind] = {path.stem: nbformat.read(path, as_version=4) for path in paths}
    if not found["source"]:
        known = sorted(path.name for path in (course / "source").glob("[!.]*"))
        raise GradingError(
            f"there is no assignment {name!r} in {course}: it has {', '.join(known) or 'none'}"
        )
    missing = sorted(found["source"].keys() - found["release"].keys())
    if missing:
        raise GradingError(
            f"release/{name} lacks {', '.join(missing)}: generate the assignment, in formgrader or "
            f"by 'nbgrader generate_assignment {name}'"
        )
    releases = {notebook: found["release"][notebook] for notebook in found["source"]}
    return _Assignment(course, name, secret, found["source"], releases)


def _chosen(task: _Assignment, students: Iterable[str] | None) -> list[str]:
    there, _ = ids.below(task.course / "submitted", task.name)
    if students is None:
        return there
    wanted = sorted(map(ids.check, set(students)))
    strangers = [student for student in wanted if student not in there]
    if strangers:
        raise GradingError(
            f"no submission of {', '.join(strangers)}: there is no folder "
            f"{task.course / 'submitted' / strangers[0] / task.name}"
        )
    return wanted


def _version() -> str:
    """Changes with the code that rebuilds and judges."""
    here = Path(__file__).parent
    names = ("rebuild", "judge", "line", "asked", "child", "inside", "sandbox", "codec")
    return hashed([(here / f"{name}.py").read_text("utf8") for name in names])


# --- rebuilding and judging ----------------------------------------------------------------------


def judge_submissions(course: str | Path, assignment: str, **options: Any) -> dict[str, float]:
    """Rebuild submissions and bring the store up to date; the gradebook stays as it is.

    Takes what `autograde` takes. Returns the seconds that judging took, by student.
    """
    task = _load(Path(course).resolve(), assignment)
    with alone(task.course):
        return _judge(task, **options)


def _judge(
    task: _Assignment,
    *,
    students: Iterable[str] | None = None,
    workers: int | None = None,
    limits: Limits | None = None,
    accept_risk: bool = False,
    again: bool = False,
    progress: bool = False,
) -> dict[str, float]:
    from tfviz_course import sandbox

    limits = limits or sandbox.Limits()
    names = _chosen(task, students)
    why = sandbox.available()
    if why and not accept_risk:
        raise GradingError(
            f"submissions are not judged without a sandbox: {why} To run what students wrote with "
            "your own rights all the same, say --accept-risk."
        )
    base = [_version(), asdict(limits), not why, task.secret, task.name]
    marks = {notebook: hashed([base, _plain(source)]) for notebook, source in task.sources.items()}
    released = [marks, {name: _plain(release) for name, release in task.releases.items()}]
    took = dict.fromkeys(names, 0.0)
    jobs = []
    for name in names:
        old = read_entry(task.course, task.name, name) or {"notebooks": {}, "recorded": {}}
        seen = hashed([released, name, fingerprint(task.course / "submitted" / name / task.name)])
        judged = all(part["key"] for part in old["notebooks"].values())
        if not again and judged and old.get("seen") == [seen, _files_of(task, name)]:
            continue
        rebuilt = _rebuilt(task, name)
        with writing(task.course / REBUILT / name / task.name):
            odd = _write_rebuilt(task, name, rebuilt)
        entry: dict[str, Any] = {
            "format": FORMAT,
            "student": name,
            "seen": [seen, _files_of(task, name)],
            "recorded": old["recorded"],
            "notebooks": {},
        }
        for notebook, found in rebuilt.items():
            key = hashed([marks[notebook], name, found.answers])
            kept = old["notebooks"].get(notebook, {})
            known = kept.get("key") == key and not again
            entry["notebooks"][notebook] = {
                "key": key if known else "",
                "answers": digest(found.notebook),
                "remarks": _some([*odd, *found.remarks]),
                "seconds": kept["seconds"] if known else 0.0,
                "judged": kept["judged"] if known else NOTHING,
            }
            odd = []  # told once
            if not known:
                jobs.append(_Job(name, notebook, key, found.answers, entry))
        write_entry(task.course, task.name, entry)
    if jobs:
        count = min(workers or _cores(), len(jobs))
        for job, seconds in _judged(task, jobs, count, limits, not why, progress):
            took[job.student] += seconds
    return took


def _files_of(task: _Assignment, student: str) -> str:
    """A mark of the rebuilt files, so that who removes or changes them gets them anew."""
    files = sorted((task.course / REBUILT / student / task.name).glob("*"))
    return hashed([(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files])


def _some(remarks: Sequence[str]) -> list[str]:
    """As many remarks as somebody reads."""
    more = len(remarks) - REMARKS
    return [*remarks[:REMARKS], *([f"and {more} remarks of this kind"] if more > 0 else [])]


def _rebuilt(task: _Assignment, student: str) -> dict[str, Rebuilt]:
    """What the student handed in; nothing, with a remark, if it is odder than was thought of."""
    try:
        return read_submission(task.course / "submitted" / student / task.name, task.releases)
    except Exception as error:  # one submission does not keep the class from its points
        line = f"the submission cannot be read: {type(error).__name__}"
        empty = {name: rebuild(release, None) for name, release in task.releases.items()}
        return {name: replace(one, remarks=(line,)) for name, one in empty.items()}


@dataclass(frozen=True)
class _Job:
    """One notebook of one submission; `entry` is what the store has on that submission."""

    student: str
    notebook: str
    key: str
    answers: dict[str, str]
    entry: dict[str, Any]


def _plain(source: NotebookNode) -> list[Any]:
    """What of a notebook verdicts can depend on."""
    return [[cell.cell_type, cell.source, cell.metadata] for cell in source.cells]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _write_rebuilt(task: _Assignment, student: str, rebuilt: Mapping[str, Rebuilt]) -> list[str]:
    """Write what nbgrader is to read; returns remarks on the files beside the notebooks."""
    final = task.course / REBUILT / student / task.name
    fresh = final.with_name(f".{task.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for notebook, found in rebuilt.items():
        nbformat.write(found.notebook, fresh / f"{notebook}.ipynb")
    remarks: list[str] = []
    submitted = task.course / "submitted" / student / task.name
    for name, fine in (("timestamp.txt", _is_time), ("submission_secret.txt", str.isascii)):
        path = submitted / name
        data = (read_bytes(path, name, remarks) if os.path.lexists(path) else None) or b""
        text = data.decode("utf-8", "replace").strip()
        if len(data) <= BESIDE and text and fine(text):
            (fresh / name).write_bytes(data)  # as it is: the student finds the feedback by it
        elif text:
            remarks.append(f"{name} says {text[:40]!r}, which is not understood; it is not used")
    shutil.rmtree(final, ignore_errors=True)
    fresh.rename(final)
    return remarks


def _is_time(text: str) -> bool:
    from nbgrader.utils import parse_utc

    try:
        parse_utc(text)
    except (ValueError, OverflowError):
        return False
    return True


def _judged(
    task: _Assignment,
    jobs: Sequence[_Job],
    workers: int,
    limits: Limits,
    sandboxed: bool,
    progress: bool,
) -> Iterator[tuple[_Job, float]]:
    """Judge each job in a child process, `workers` at a time, and store what comes back.

    What suffered from its neighbours is judged once more, as the module says.
    """
    from tfviz_course import sandbox
    from tfviz_course.judge import prepare

    prepared = {}
    for name in sorted({job.notebook for job in jobs}):
        try:
            prepared[name] = prepare(task.sources[name])
        except ValueError as error:
            place = f"source/{task.name}/{name}.ipynb"
            raise GradingError(f"{place} does not run with its own answers: {error}") from error
    start = partial(_start, task=task, prepared=prepared, limits=limits, sandboxed=sandboxed)
    dead: list[_Job] = []  # whose process did not start
    late: list[_Late] = []
    good = False
    begin = time.monotonic()
    with _bar("judging", len(jobs), progress) as step, _interruptible() as check:
        for run, judged in _round(jobs, workers, start, check):
            if "unavailable" in judged and len(jobs) > 1:
                dead.append(run.job)
                why = sandbox.available() if sandboxed else None
                if len(dead) > workers and not good:  # it is not the neighbours
                    why = why or judged["unavailable"]
                if why:
                    raise GradingError(why)
                continue
            good = True
            again = run.beside and any(w in line for line in judged["remarks"] for w in LATE)
            # a run that is stopped before the second try makes up for it next time
            seconds = _keep(task, run, judged | {"failed": True} if again else judged)
            if again:
                late.append(_Late(seconds, run.job))
            else:
                step(run.job.student)
            yield run.job, seconds
        until = time.monotonic() + (time.monotonic() - begin) / 4 + limits.seconds
        for run, judged in _round(dead, 1, start, check):
            seconds = _keep(task, run, judged)
            step(run.job.student)
            yield run.job, seconds
        for one in sorted(late, key=lambda one: one.seconds):
            if time.monotonic() > until:
                _leave(task, one.job, "ran out of time beside others; not judged once more")
                step(one.job.student)
                continue
            for run, judged in _round([one.job], 1, start, check):
                seconds = _keep(task, run, judged)
                step(run.job.student)
                yield run.job, seconds


def _keep(task: _Assignment, run: _Running, judged: dict[str, Any]) -> float:
    """Put a verdict into the store; returns the seconds that it took."""
    if "unavailable" in judged:
        raise GradingError(judged["unavailable"])
    seconds = round(time.monotonic() - run.begin, 3)
    _store(task, run.job, judged, seconds)
    return seconds


def _leave(task: _Assignment, job: _Job, line: str) -> None:
    """Let what the store has be the verdict, with one more remark."""
    part = job.entry["notebooks"][job.notebook]
    part["key"] = job.key
    part["judged"] = {**part["judged"], "remarks": [*part["judged"]["remarks"], line]}
    write_entry(task.course, task.name, job.entry)


def _round(
    jobs: Sequence[_Job],
    workers: int,
    start: Callable[[_Job], _Running],
    check: Callable[[], None],
) -> Iterator[tuple[_Running, dict[str, Any]]]:
    """What came back of each job, as soon as it did."""
    queue = list(reversed(jobs))
    running: list[_Running] = []
    try:
        while queue or running:
            check()
            while queue and len(running) < workers:
                fresh = start(queue.pop())
                for run in running:
                    run.beside = fresh.beside = True
                running.append(fresh)
            wait([run.child for run in running], timeout=1)
            for run in [run for run in running if run.child.done()]:
                running.remove(run)
                yield run, _answer(run.child)
    finally:
        for run in running:
            run.child.end()


def _start(
    job: _Job,
    *,
    task: _Assignment,
    prepared: Mapping[str, Prepared],
    limits: Limits,
    sandboxed: bool,
) -> _Running:
    """Have a job judged in a child process."""
    from tfviz_course.child import Child

    child = Child(
        prepared[job.notebook],
        job.answers,
        limits=limits,
        student=job.student,
        secret=task.secret,
        assignment=task.name,
        sandboxed=sandboxed,
    )
    return _Running(job, child, time.monotonic())


@dataclass
class _Running:
    job: _Job
    child: Any
    begin: float
    beside: bool = False  # whether another one ran meanwhile


@dataclass(frozen=True)
class _Late:
    """A job that ran out of time beside others, and the seconds that it took."""

    seconds: float
    job: _Job


def _answer(child: Any) -> dict[str, Any]:
    """What a child has found; that it could not judge, if the judge itself failed."""
    from tfviz_course.sandbox import Unavailable

    try:
        return dict(child.result().to_json())
    except Unavailable as error:
        return {"unavailable": str(error)}
    except RuntimeError as error:
        return {**NOTHING, "remarks": [f"could not be judged: {error}"], "failed": True}


def _store(task: _Assignment, job: _Job, judged: dict[str, Any], seconds: float) -> None:
    key = "" if judged.pop("failed", False) else job.key  # what failed is tried again next time
    part = {"key": key, "judged": judged, "seconds": seconds}
    job.entry["notebooks"][job.notebook] |= part
    write_entry(task.course, task.name, job.entry)


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C act only where what this gives is called.

    A KeyboardInterrupt anywhere else could get lost (while forking), or be taken for a mistake in
    a submission (nbgrader catches everything).
    """
    pressed = threading.Event()

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield check  # no signal ever arrives here
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _bar(what: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """A bar on stderr; calling what it gives moves it on by one."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    name = TextColumn("{task.fields[student]}", markup=False)
    console = Console(stderr=True)
    # no thread of its own: children are forked meanwhile
    with Progress(*columns, name, console=console, disable=not shown, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total, student="")
        bar.refresh()

        def step(student: str) -> None:
            bar.update(task, advance=1, student=student)
            bar.refresh()

        yield step


# --- recording -----------------------------------------------------------------------------------


def record(
    course: Path, assignment: str, students: Sequence[str], *, progress: bool = False
) -> None:
    """Write the stored verdicts into the gradebook, by nbgrader's own Autograde.

    A submission that cannot be recorded does not keep the others from it; `GradingError` names it
    at the end.
    """
    failed: dict[str, str] = {}
    with _quiet(), _bar("recording", len(students), progress) as step, _interruptible() as check:
        handle = api(course)
        handle.config.Autograde.judged = True
        for student in students:
            check()
            try:
                said = _patiently(partial(_record, handle, assignment, student))
            except OSError as error:
                said = f"{type(error).__name__}: {error}"
            if said:
                failed[student] = said
            step(student)
    if failed:
        raise GradingError(f"not recorded: {ids.together(failed)}")


def _record(handle: Any, assignment: str, student: str) -> str:
    """Record one student; returns why it did not work, or an empty text."""
    course = Path(handle.coursedir.root)
    entry = read_entry(course, assignment, student) or {}
    keys = {notebook: part["key"] for notebook, part in entry.get("notebooks", {}).items()}
    before = _reviewed(handle, assignment, student) if entry.get("recorded") == keys else set()
    result = handle.autograde(assignment, student)
    if not result["success"]:
        said = failure(result)
        if BUSY in f"{result.get('log')}{result.get('error')}":
            raise _BusyError
        return said
    if before:  # nothing changed since a person looked at it, so nobody need look again
        with handle.gradebook as gradebook:
            for grade in _grades(gradebook, assignment, student):
                if grade.cell.name in before:
                    grade.needs_manual_grade = False
            gradebook.db.commit()
    write_entry(course, assignment, {**entry, "recorded": keys})
    return ""


def _reviewed(handle: Any, assignment: str, student: str) -> set[str]:
    """Cells with a score that a person gave and that wait for nobody."""
    with handle.gradebook as gradebook:
        return {
            grade.cell.name
            for grade in _grades(gradebook, assignment, student)
            if grade.manual_score is not None and not grade.needs_manual_grade
        }


def _grades(gradebook: Any, assignment: str, student: str) -> list[Any]:
    from nbgrader.api import MissingEntry

    try:
        notebooks = gradebook.find_submission(assignment, student).notebooks
    except MissingEntry:
        return []
    return [grade for notebook in notebooks for grade in notebook.grades]


class _BusyError(Exception):
    """Another program holds the gradebook."""


def _patiently(act: Callable[[], T]) -> T:
    """Do something with the gradebook; wait a while when another program holds it."""
    from sqlalchemy.exc import OperationalError

    for pause in (*PAUSES, None):
        try:
            return act()
        except (_BusyError, OperationalError) as error:
            if isinstance(error, OperationalError) and BUSY not in str(error):
                raise
            if pause is None:
                break
            time.sleep(pause)
    raise GradingError(
        "the gradebook is in use by another program, such as formgrader or a copy of gradebook.db "
        "that is being made: close it, then run this again. All verdicts are kept."
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """nbgrader warns of the packages it stands on, and reports each step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _results(task: _Assignment, took: Mapping[str, float], seconds: float) -> Results:
    with _quiet():
        handle = api(task.course)
        return _patiently(lambda: _read_results(task, handle, took, seconds))


def _read_results(
    task: _Assignment, handle: Any, took: Mapping[str, float], seconds: float
) -> Results:
    maximum: dict[str, float] = {}
    for cell in [cell for release in task.releases.values() for cell in release.cells]:
        info = cell.metadata.get("nbgrader", {})
        if info.get("grade"):
            label = task.exercise(info.grade_id)
            maximum[label] = maximum.get(label, 0.0) + float(info.points)
    graded = {}
    with handle.gradebook as gradebook:
        there, strange = ids.below(task.course / "submitted", task.name)
        missing = [student.id for student in gradebook.students if student.id not in there]
        for student in took:
            scores = dict.fromkeys(maximum, 0.0)
            waiting: list[str] = []
            for grade in _grades(gradebook, task.name, student):
                label = task.exercise(grade.cell.name)
                scores[label] = scores.get(label, 0.0) + (grade.score or 0.0)
                if grade.needs_manual_grade and label not in waiting:
                    waiting.append(label)
            entry = read_entry(task.course, task.name, student) or {"notebooks": {}}
            parts = entry["notebooks"].values()
            remarks = [
                line for part in parts for line in (*part["remarks"], *part["judged"]["remarks"])
            ]
            told = tuple(dict.fromkeys(remarks))
            graded[student] = Graded(scores, tuple(waiting), told, took[student])
    return Results(task.name, maximum, graded, tuple(sorted(missing)), tuple(strange), seconds)
