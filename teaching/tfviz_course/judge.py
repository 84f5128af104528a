"""Judges one submission: the student's code runs apart, the tests run here, on what it returned.

`prepare` executes the set-up and the official solutions in this process. For each exercise the
names that the solution binds are then replaced by the student's: a function by a `Remote`, which
sends its arguments to the student's process and reads what comes back (`tfviz_course.codec`), any
other value by a copy. So a student's code can return wrong values, and that is all it can do here.

Limits of this: a function that changes its arguments changes its own copies, not the tests'. A
tensor that comes back has no history: a test may not differentiate through a student's function,
but it may ask the student's code for gradients. And what a test measures here while the function
runs (memory, calls of the library) is not the function's: that happens elsewhere.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hmac
import io
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from nbformat import NotebookNode

from tfviz import checks
from tfviz_course import codec
from tfviz_course.asked import asked
from tfviz_course.inside import compile_later
from tfviz_course.line import TEXT, Ran, Session, StudentError, about, say
from tfviz_course.sandbox import Cells, Limits, Stopped, Unavailable, nursery
from tfviz_lessons import variants
from tfviz_lessons.lesson import unmark
from tfviz_lessons.slice import uses

LIMITS = Limits()
GRADED = ("checks", "hidden")  # roles of cells, in this order
EMPTY = "No answer yet: the gap in the answer's cell is not filled."


@dataclass(frozen=True)
class Verdict:
    """How one cell of tests ended: why it failed, and what the tests had printed."""

    passed: bool
    message: str = ""
    printed: str = ""


@dataclass(frozen=True)
class Judged:
    """`verdicts` by the cells of tests, `outputs` by the answers', `remarks` for the instructor."""

    verdicts: dict[str, Verdict]
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class Cell(NamedTuple):
    """One cell that is executed: `role` as in the notebook's metadata."""

    name: str
    role: str
    exercise: str
    source: str


State = tuple[dict[str, Any], Any]  # names, and random generators as they were


@dataclass
class Task:
    """One exercise: its cells by role, and what its solution binds."""

    cells: dict[str, Cell]
    names: tuple[str, ...]
    locked: list[list[str]] = field(default_factory=list)  # what the student may not call instead
    before: Any = None  # a State, once the trusted cells have run: before the visible tests,
    after: Any = None  # and after all of its cells


@dataclass
class Prepared:
    """A source notebook, executed. Its namespace is one dict, because functions keep theirs; so
    one `Prepared` judges one submission at a time (fork for more)."""

    cells: tuple[Cell, ...]
    tasks: dict[str, Task]
    first: int  # where the cells of the first exercise begin
    varies: bool  # students have numbers of their own
    space: dict[str, Any]
    start: Any = None  # a State, before the first exercise

    def set_up(self) -> Cells:
        """What the processes of all submissions begin with."""
        above = self.cells[: self.first]
        return tuple((cell.name, cell.source) for cell in above if cell.role != "student")

    def show(self, state: State) -> None:
        """Make the names those of `state`."""
        names, dice = state
        self.space.clear()
        self.space.update(names)
        variants.seed(dice)

    def keep(self) -> State:
        """The names as they are now."""
        return dict(self.space), variants.seeds()

    def graded(self) -> list[str]:
        """The cells that get a verdict, in the notebook's order."""
        return [cell.name for cell in self.cells if cell.role in GRADED]


def prepare(source: NotebookNode) -> Prepared:
    """Execute the set-up, the official solutions and their visible tests of a source notebook.

    Limits torch to one thread, in this process: children forked from it could hang otherwise.
    Raises ValueError if a cell fails, with its name and the error.
    """
    torch.set_num_threads(1)
    compile_later()
    cells = []
    for cell in source.cells:
        about = cell.metadata.get("tfviz", {})
        role = about.get("role", "")
        if cell.cell_type == "code" and role != "install":
            name = str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", ""))
            cells.append(Cell(name, role, about.get("exercise") or "", unmark(cell.source)))
    tasks = {}
    for cell in cells:
        if cell.role == "yours":
            own = {one.role: one for one in cells if one.exercise == cell.exercise}
            names = uses(cell.source).binds - uses(_imports(cell)).binds
            tasks[cell.exercise] = Task(own, tuple(sorted(names)))
    first = next((n for n, cell in enumerate(cells) if cell.exercise), len(cells))
    varies = any(cell.role == "student" for cell in cells)
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    space["display"] = lambda *things, **options: None
    prepared = Prepared(tuple(cells), tasks, first, varies, space)
    nursery(prepared.set_up())  # begins here, so that all who are forked from here share it
    for cell in cells[:first]:
        if cell.role != "student":  # what does not depend on the student runs once
            _run_trusted(cell, space)
    prepared.start = prepared.keep()
    _execute_trusted(prepared, "instructor")
    return prepared


def _execute_trusted(prepared: Prepared, student: str) -> None:
    """Run the trusted cells below the set-up; keep the names around each exercise's tests."""
    space = prepared.space
    prepared.show(prepared.start)
    if prepared.varies:
        space["STUDENT"] = student
    for cell in prepared.cells[prepared.first :]:
        if cell.role == "hidden":
            continue
        task = prepared.tasks.get(cell.exercise)
        if task and cell.role == "checks":
            task.before = prepared.keep()
            tests = [one.source for role, one in task.cells.items() if role in GRADED]
            task.locked = asked(tests, task.cells["yours"].source, task.names, space)
        _run_trusted(cell, space)
        if task:
            task.after = prepared.keep()


def _run_trusted(cell: Cell, space: dict[str, Any]) -> None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(cell.source, f"<{cell.name}>", "exec"), space)
    except Exception as error:
        place = f" at line {line}" if (line := _line(error, cell)) else ""
        said = f"cell {cell.name!r} of the assignment fails{place}: {type(error).__name__}: {error}"
        raise ValueError(said) from error


def _line(error: BaseException, cell: Cell) -> int:
    """The line of the cell at which it stopped; 0 if it did elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == f"<{cell.name}>"), 0)


def _imports(cell: Cell | None) -> str:
    lines = ast.parse(cell.source).body if cell else []
    return "\n".join(ast.unparse(n) for n in lines if isinstance(n, ast.Import | ast.ImportFrom))


def seed_of(secret: str, assignment: str, exercise: str, student: str) -> int:
    """The `seed` of a hidden cell: 31 bits that only who knows the secret can compute."""
    about = f"{assignment}/{exercise}/{student}".encode()
    return int.from_bytes(hmac.digest(secret.encode(), about, "sha256")[:4], "big") >> 1


def judge(
    prepared: Prepared,
    answers: Mapping[str, str],
    *,
    student: str,
    secret: str,
    assignment: str,
    limits: Limits = LIMITS,
    report: Callable[[str, Verdict], object] = lambda name, verdict: None,
) -> Judged:
    """Judge the answers of one student: {name of the answer's cell: its source}.

    `report` is told each verdict as soon as it is known. Nothing that a student wrote raises here.
    Raises Unavailable if there is no sandbox, or if the set-up does not run in it.
    """
    if prepared.varies:
        _execute_trusted(prepared, student)
    given = {name: source for name, source in answers.items() if source.strip()}
    judging = _Judging(prepared, given, student, secret, assignment, limits, limits.seconds)
    with contextlib.closing(judging):
        for role in GRADED:  # the student's process sees no hidden input before
            for task in prepared.tasks.values():
                if cell := task.cells.get(role):
                    verdict = judging.verdict(task, cell)
                    judging.verdicts[cell.name] = verdict
                    report(cell.name, verdict)
                    prepared.show(task.after)
    return Judged(judging.verdicts, judging.outputs, tuple(dict.fromkeys(judging.remarks)))


@dataclass
class _Judging:
    prepared: Prepared
    answers: Mapping[str, str]
    student: str
    secret: str
    assignment: str
    limits: Limits
    left: float  # seconds for the rest of it
    session: Session | None = None
    ran: dict[str, Ran] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)  # exercises that ended a process, and how
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def close(self) -> None:
        if self.session:
            self.session.line.close()
            self.session = None

    @contextlib.contextmanager
    def _charged(self, most: float) -> Iterator[float]:
        """Work at the submission's expense, in its process and here; gives the seconds it may
        take. Raises Stopped."""
        assert self.session
        if self.left <= 0:
            said = f"All answers of the notebook took more than {self.limits.seconds:.0f} seconds."
            raise Stopped(said, "ran longer than it may")
        line, seconds = self.session.line, min(most, self.left)
        before = line.used + time.thread_time()
        try:
            with _alarm(seconds):
                yield seconds
        finally:
            self.left -= line.used + time.thread_time() - before

    def _stop(self, label: str, stopped: Stopped) -> None:
        """The process went in the course of this exercise: that exercise is over."""
        self.close()
        self.stopped[label] = stopped.reason
        self.remarks.append(f"{label}: {stopped.remark}")

    def _start(self) -> Session | None:
        """A process in which all cells have run, except the answers that ended one; None when the
        time is over."""
        while self.session is None and self.left > 0:
            session = self.session = Session(self.limits, self.prepared.set_up())
            last = ""  # the answer that ran last; empty until the student's code begins
            for step, cell in enumerate(self.prepared.cells):
                if step < self.prepared.first and cell.role != "student":
                    continue  # it has run in the nursery
                try:
                    if cell.role == "yours":
                        if cell.exercise in self.stopped or cell.name not in self.answers:
                            continue
                        last = cell.exercise
                        self._run_answer(session, step, cell)
                    elif cell.role not in GRADED:
                        self._run_ours(session, step, cell, own=bool(last))
                except Stopped as stopped:
                    if not last:
                        self.close()
                        said = f"cell {cell.name!r} of the assignment does not run"
                        raise Unavailable(f"{said} for a submission: {stopped}") from None
                    # A cell of ours can stop too, because of what the answer above it did.
                    self._stop(last, stopped)
                    break
        return self.session

    def _run_ours(self, session: Session, step: int, cell: Cell, *, own: bool) -> None:
        """A cell of the assignment; `own`: after the student's code, at the student's expense."""
        source = f"STUDENT = {self.student!r}" if cell.role == "student" else cell.source
        free = contextlib.nullcontext(self.limits.start_seconds)
        with self._charged(self.limits.cell_seconds) if own else free as seconds:
            ran = session.run(step, source, (), seconds)
        if ran.error is not None:
            said = f"cell {cell.name!r} of the assignment fails for a submission: {say(ran.error)}"
            if not own:
                raise Unavailable(said)
            self.remarks.append(said)  # it may be because of what the student's code did

    def _run_answer(self, session: Session, step: int, cell: Cell) -> None:
        task = self.prepared.tasks[cell.exercise]
        with self._charged(self.limits.cell_seconds) as seconds:
            # Who runs the whole notebook has what the checks import when the answer is called.
            if imports := _imports(task.cells.get("checks")):
                session.run(step, imports, (), seconds)
            source = self.answers[cell.name]
            ran = session.run(step, source, task.names, seconds, task.locked)
        session.check_memory(ran.error)
        self.ran[cell.exercise] = ran
        # Only from the first run, before any hidden input was in the student's process.
        self.outputs.setdefault(cell.name, ran.outputs)

    def verdict(self, task: Task, cell: Cell) -> Verdict:
        if task.cells["yours"].name not in self.answers:
            return failed(EMPTY)
        session = self._start()
        if cell.exercise in self.stopped:
            return failed(self.stopped[cell.exercise])
        if session is None:
            most = f"({self.limits.seconds:.0f} seconds for all answers together)"
            return failed(f"Not judged: the notebook's time was over {most}.")
        found = uses(cell.source)
        names = (found.now | found.later) & {*task.names}
        ran = self.ran[cell.exercise]
        if missing := sorted(names - ran.values.keys()):
            why = f" The cell stops before: {say(ran.error)}" if ran.error else ""
            return failed(f"The answer does not define `{'` and `'.join(missing)}`.{why}")
        for name in sorted(names):
            if isinstance(ran.values[name], StudentError):
                return failed(f"`{name}` is {ran.values[name]}")
        hidden = cell.role == "hidden"
        self.prepared.show(task.after if hidden else task.before)
        if hidden:
            who = self.assignment, cell.exercise, self.student
            self.prepared.space["seed"] = seed_of(self.secret, *who)
        self.prepared.space.update(ran.values)
        try:
            with self._charged(self.limits.cell_seconds) as seconds:
                session.fresh(seconds)
                return self._execute(cell, session)
        except Stopped as stopped:
            self._stop(cell.exercise, stopped)
            return failed(stopped.reason)

    def _execute(self, cell: Cell, session: Session) -> Verdict:
        """Run a cell of tests with the student's names in place. Raises Stopped."""
        printed = io.StringIO()
        raised: Exception | None = None
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.source, f"<{cell.name}>", "exec"), self.prepared.space)
        except Exception as error:
            raised = error
        session.check_memory(raised)
        session.line.check()
        shown = codec.short(printed.getvalue(), self.limits.output)
        if raised is None:
            return Verdict(True, printed=shown or f"✓ {cell.name}\n")
        if isinstance(raised, MemoryError) and about(raised) is None:
            self.remarks.append(f"{cell.exercise}: the checks ran out of memory")
        return failed(_why(raised, cell), shown)


def failed(message: str, printed: str = "") -> Verdict:
    return Verdict(False, codec.short(message, TEXT), printed)


def _why(error: Exception, cell: Cell) -> str:
    """Why a cell of tests failed, for who wrote the answer."""
    if isinstance(error, checks.CheckFailed):
        return str(error)
    theirs = about(error)
    if theirs and theirs.kind == "NotImplementedError" and not theirs.message:
        return EMPTY
    if theirs and theirs.signature:
        return f"The answer cannot be called as the checks call it: {theirs.message}"
    stops = "The answer stops" if theirs else "The checks stop"
    if line := _line(error, cell):
        code = cell.source.split("\n")[line - 1].strip()
        stops += f" in `{codec.short(code, 100)}`"
    return f"{stops} with {say(error)}"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise Stopped when this thread has used this much processor time: what a student's value
    costs here, in reading it and in the checks, without the watch that goes on beside. Only where
    signals arrive, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    end = time.thread_time() + seconds

    def ring(number: int, frame: Any) -> None:
        if (left := end - time.thread_time()) > 0:  # the timer counts all threads
            signal.setitimer(signal.ITIMER_PROF, left, 1.0)
            return
        said = f"The checks took more than {seconds:.0f} seconds with this answer."
        raise Stopped(said, "the checks ran longer than they may")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, if somebody swallows it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
