"""Judges one submission: the student's code runs apart, the tests run here, on what it returned.

    >>> prepared = prepare(source)                                          # doctest: +SKIP
    >>> judge(prepared, answers, student="ada", secret=secret, assignment="week1")  # doctest: +SKIP

The tests never share a process with the student's code. `prepare` executes the set-up and the
official solutions in this process. For each exercise the names that the solution binds are then
replaced by the student's: a function by a `Remote`, which sends its arguments to the student's
process and reads what comes back (`tfviz_course.codec`), any other value by a copy. So a student's
code can return wrong values, and that is all it can do here.

Two limits of this. A function that changes its arguments changes its own copies, not the tests'.
And a tensor that comes back has no history: a test may not differentiate through a student's
function, but it may ask the student's code for gradients.
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import hashlib
import hmac
import io
import random
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from nbformat import NotebookNode

from tfviz import checks
from tfviz_course import codec
from tfviz_course.asked import asked
from tfviz_course.line import TEXT, Ran, Session, StudentError, about, clean, kind_of, say
from tfviz_course.sandbox import Limits, Stopped, Unavailable

LIMITS = Limits()
PICTURES = 2  # in the output of one cell of tests
EMPTY = "No answer yet: the gap in the answer's cell is not filled."
MARK = re.compile(r"^\s*### (BEGIN|END) (SOLUTION|HIDDEN TESTS)\s*$")


# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """How one cell of tests ended; `outputs` are those of a notebook."""

    passed: bool
    message: str
    outputs: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Judged:
    """All about one submission's notebook: `verdicts` by the cells of tests, `outputs` by the
    answers' cells, `remarks` for the instructor."""

    verdicts: dict[str, Verdict]
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


# --- the trusted side ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One cell that is executed: `role` as in the notebook's metadata."""

    name: str
    role: str
    exercise: str
    source: str


@dataclass
class State:
    """The trusted names at one moment, with the random generators as they were."""

    names: dict[str, Any]
    dice: tuple[Any, Any, Any]


@dataclass
class Task:
    """One exercise: what its solution binds, and the names before and after its visible tests."""

    label: str
    answer: Cell
    checks: Cell | None
    hidden: Cell | None
    step: int  # place of the answer among the cells
    names: tuple[str, ...]
    locked: list[list[str]] = field(default_factory=list)  # what the student may not call instead
    before: State | None = None
    after: State | None = None


@dataclass
class Prepared:
    """A source notebook, executed. Its namespace is one dict, because functions keep theirs; so
    one `Prepared` judges one submission at a time (fork for more)."""

    cells: tuple[Cell, ...]
    tasks: dict[str, Task]
    varies: bool  # students have numbers of their own
    space: dict[str, Any]
    start: State | None = None  # before the first exercise

    def show(self, state: State) -> None:
        """Make the names those of `state`."""
        self.space.clear()
        self.space.update(state.names)
        torch.set_rng_state(state.dice[0])
        numpy.random.set_state(state.dice[1])
        random.setstate(state.dice[2])

    def keep(self) -> State:
        """The names as they are now."""
        dice = torch.get_rng_state(), numpy.random.get_state(), random.getstate()
        return State(dict(self.space), dice)

    def graded(self) -> list[str]:
        """The cells that get a verdict, in the notebook's order."""
        return [cell.name for cell in self.cells if cell.role in ("checks", "hidden")]


def prepare(source: NotebookNode) -> Prepared:
    """Execute the set-up, the official solutions and their visible tests of a source notebook.

    Limits torch to one thread, in this process: children forked from it could hang otherwise.
    Raises ValueError if a cell fails, with its name and the error.
    """
    torch.set_num_threads(1)
    cells = []
    for cell in source.cells:
        about = cell.metadata.get("tfviz", {})
        role = about.get("role", "")
        if cell.cell_type == "code" and role != "install":
            name = str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", ""))
            text = "\n".join(line for line in cell.source.split("\n") if not MARK.match(line))
            cells.append(Cell(name, role, about.get("exercise") or "", text))
    tasks = {}
    for step, cell in enumerate(cells):
        if cell.role == "yours":
            tests = {c.role: c for c in cells if c.exercise == cell.exercise}
            names = _bound(cell.source)
            tasks[cell.exercise] = Task(
                cell.exercise, cell, tests.get("checks"), tests.get("hidden"), step, names
            )
    varies = any(cell.role == "student" for cell in cells)
    prepared = Prepared(tuple(cells), tasks, varies, {})
    _execute_trusted(prepared, "instructor")
    return prepared


def _execute_trusted(prepared: Prepared, student: str) -> None:
    """Run the trusted cells from top to bottom; keep the names around each exercise's tests.

    The set-up above the first exercise does not depend on the student: it runs once.
    """
    space = prepared.space
    places = (n for n, cell in enumerate(prepared.cells) if cell.exercise)
    first = next(places, len(prepared.cells))
    if prepared.start is None:
        space.update({"__name__": "__main__", "__builtins__": builtins, "display": _nothing})
        for cell in prepared.cells[:first]:
            if cell.role != "student":
                _run_trusted(cell, space)
        prepared.start = prepared.keep()
    prepared.show(prepared.start)
    if prepared.varies:
        space["STUDENT"] = student
    for cell in prepared.cells[first:]:
        if cell.role == "hidden":
            continue
        task = prepared.tasks.get(cell.exercise)
        if cell.role == "checks" and task:
            task.before = prepared.keep()
            tests = [one.source for one in (task.checks, task.hidden) if one]
            task.locked = asked(tests, task.answer.source, task.names, space)
        _run_trusted(cell, space)
        if cell.role == "checks" and task:
            task.after = prepared.keep()
    for task in prepared.tasks.values():
        task.after = task.after or prepared.keep()


def _run_trusted(cell: Cell, space: dict[str, Any]) -> None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(_compiled(cell), space)
    except Exception as error:
        line = _line(error, cell)
        raise ValueError(
            f"cell {cell.name!r} of the assignment fails{f' at line {line}' if line else ''}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _nothing(*things: Any, **options: Any) -> None:
    """In place of `display`."""


def _compiled(cell: Cell) -> Any:
    return compile(cell.source, f"<{cell.name}>", "exec")


def _line(error: BaseException, cell: Cell) -> int:
    """The line of the cell at which it stopped; 0 if it did elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == f"<{cell.name}>"), 0)


def _bound(source: str) -> tuple[str, ...]:
    """The names that a cell binds at its top level, imports apart."""
    found: dict[str, None] = {}

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = None
            return
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        for child in ast.iter_child_nodes(node):
            look(child)

    for statement in ast.parse(source).body:
        look(statement)
    return tuple(found)


def _imports(cell: Cell | None) -> str:
    """The imports at the top level of a cell."""
    lines = ast.parse(cell.source).body if cell else []
    return "\n".join(ast.unparse(n) for n in lines if isinstance(n, ast.Import | ast.ImportFrom))


def _used(source: str) -> set[str]:
    """The names that a cell reads."""
    nodes = ast.walk(ast.parse(source))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def seed_of(secret: str, assignment: str, exercise: str, student: str) -> int:
    """The `seed` of a hidden cell: 31 bits that only who knows the secret can compute."""
    about = f"{assignment}/{exercise}/{student}".encode()
    digest = hmac.new(secret.encode(), about, hashlib.sha256).digest()
    return int.from_bytes(digest[:4], "big") >> 1


# --- one submission ------------------------------------------------------------------------------


def judge(
    prepared: Prepared,
    answers: Mapping[str, str],
    *,
    student: str,
    secret: str,
    assignment: str,
    limits: Limits = LIMITS,
    sandboxed: bool = True,
    report: Callable[[str, Verdict], object] = lambda name, verdict: None,
) -> Judged:
    """Judge the answers of one student: {name of the answer's cell: its source}.

    `report` is told each verdict as soon as it is known. Nothing that a student wrote raises here.
    Raises Unavailable if there is no sandbox, or if the set-up does not run in it.
    """
    if prepared.varies:
        _execute_trusted(prepared, student)
    judging = _Judging(prepared, answers, student, secret, assignment, limits, sandboxed)
    try:
        for part in ("checks", "hidden"):  # the student's process sees no hidden input before
            for task in prepared.tasks.values():
                if cell := getattr(task, part):
                    verdict = judging.verdict(task, cell)
                    judging.verdicts[cell.name] = verdict
                    report(cell.name, verdict)
                    prepared.show(task.after)  # type: ignore[arg-type]
    finally:
        judging.close()
    return Judged(judging.verdicts, judging.outputs, tuple(dict.fromkeys(judging.remarks)))


@dataclass
class _Judging:
    """The state while one submission is judged."""

    prepared: Prepared
    answers: Mapping[str, str]
    student: str
    secret: str
    assignment: str
    limits: Limits
    sandboxed: bool
    session: Session | None = None
    ran: dict[str, Ran] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)  # exercises that ended a process, and how
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.limits.seconds

    def close(self) -> None:
        if self.session:
            self.session.line.close()
            self.session = None

    def _answer(self, cell: Cell) -> str:
        return self.answers.get(cell.name, "").strip()

    @contextlib.contextmanager
    def _charged(self, most: float) -> Iterator[float]:
        """Work at the submission's expense, in its process and here; gives the seconds it may
        take. Raises Stopped."""
        assert self.session
        if self.left <= 0:
            raise Stopped(
                f"The whole submission took more than {self.limits.seconds:.0f} seconds.",
                "ran longer than it may",
            )
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
            self.session = Session(self.limits, self.sandboxed)
            last = ""  # the answer that ran last; empty until the student's code begins
            for step, cell in enumerate(self.prepared.cells):
                try:
                    if cell.role == "yours":
                        if cell.exercise in self.stopped or not self._answer(cell):
                            continue
                        last = cell.exercise
                        self._run_answer(step, cell)
                    elif cell.role not in ("checks", "hidden"):
                        self._run_ours(step, cell, own=bool(last))
                except Stopped as stopped:
                    if not last:
                        self.close()
                        raise Unavailable(
                            f"cell {cell.name!r} of the assignment does not run for a submission: "
                            f"{stopped}"
                        ) from None
                    # A cell of ours can stop too, because of what the answer above it did.
                    self._stop(last, stopped)
                    break
        return self.session

    def _run_ours(self, step: int, cell: Cell, *, own: bool) -> None:
        """A cell of the assignment; `own`: after the student's code, at the student's expense."""
        assert self.session
        source = cell.source
        if cell.role == "student":
            source = f"STUDENT = {self.student!r}"
        if own:
            with self._charged(self.limits.cell_seconds) as seconds:
                ran = self.session.run(step, source, (), seconds)
        else:
            ran = self.session.run(step, source, (), self.limits.start_seconds)
        if ran.error is None:
            return
        said = f"cell {cell.name!r} of the assignment fails for a submission: {say(ran.error)}"
        if own:  # then it may be because of what the student's code did
            self.remarks.append(said)
        else:
            raise Unavailable(said)

    def _run_answer(self, step: int, cell: Cell) -> None:
        assert self.session
        task = self.prepared.tasks[cell.exercise]
        with self._charged(self.limits.cell_seconds) as seconds:
            # Who runs the whole notebook has what the checks import when the answer is called.
            if imports := _imports(task.checks):
                self.session.run(step, imports, (), seconds)
            source = self.answers[cell.name]
            ran = self.session.run(step, source, task.names, seconds, task.locked)
        # Whoever has filled the memory still holds it, and later answers would have none.
        if kind_of(ran.error) == "MemoryError":
            raise self.session.line.full()
        self.ran[cell.exercise] = ran
        # Only from the first run, before any hidden input was in the student's process.
        self.outputs.setdefault(cell.name, ran.outputs)

    # --- the tests ---

    def verdict(self, task: Task, cell: Cell) -> Verdict:
        if not self._answer(task.answer):
            return failed(EMPTY)
        session = self._start()
        if task.label in self.stopped:
            return failed(self.stopped[task.label])
        if session is None:
            return failed(
                "Not judged: the submission's time was over "
                f"({self.limits.seconds:.0f} seconds for all answers together)."
            )
        ran, names = self.ran[task.label], set(task.names) & _used(cell.source)
        if missing := sorted(names - ran.values.keys()):
            why = f" The cell stops before: {say(ran.error)}" if ran.error else ""
            return failed(f"The answer does not define `{'` and `'.join(missing)}`.{why}")
        for name in sorted(names):
            if isinstance(ran.values[name], StudentError):
                return failed(f"`{name}` is {ran.values[name]}")
        hidden = cell.role == "hidden"
        self.prepared.show(task.after if hidden else task.before)  # type: ignore[arg-type]
        if hidden:
            self.prepared.space["seed"] = seed_of(
                self.secret, self.assignment, task.label, self.student
            )
        self.prepared.space.update(ran.values)
        try:
            with self._charged(self.limits.cell_seconds) as seconds:
                session.fresh(seconds)
                return self._execute(cell, session)
        except Stopped as stopped:
            self._stop(task.label, stopped)
            return failed(stopped.reason)

    def _execute(self, cell: Cell, session: Session) -> Verdict:
        """Run a cell of tests with the student's names in place. Raises Stopped."""
        printed = io.StringIO()
        pictures: list[str] = []
        raised: BaseException | None = None
        try:
            with _pictures(pictures), contextlib.redirect_stdout(printed):
                exec(_compiled(cell), self.prepared.space)
        except Exception as error:
            raised = error
        if kind_of(raised) == "MemoryError":
            raise session.line.full()
        if session.line.broken:
            raise session.line.broken
        said = printed.getvalue() or ("" if raised else f"✓ {cell.name}\n")
        stream = {"output_type": "stream", "name": "stdout", "text": said}
        figures = [{"output_type": "display_data", "data": {"image/png": png}} for png in pictures]
        shown = clean([*([stream] if said else []), *figures], self.limits.output)
        if raised is None:
            return Verdict(True, codec.short(printed.getvalue().strip(), TEXT), tuple(shown))
        if isinstance(raised, MemoryError) and about(raised) is None:
            self.remarks.append(f"{cell.exercise}: the checks ran out of memory")
        return failed(_why(raised, cell), shown)


def failed(message: str, before: list[dict[str, Any]] | None = None) -> Verdict:
    said = codec.short(message, TEXT)
    error = {
        "output_type": "error",
        "ename": "CheckFailed",
        "evalue": said,
        "traceback": [f"✗ {said}"],
    }
    return Verdict(False, said, (*(before or []), error))


def _why(error: BaseException, cell: Cell) -> str:
    """Why a cell of tests failed, for who wrote the answer."""
    if isinstance(error, checks.CheckFailed):
        return str(error)
    theirs = about(error)
    if theirs is None:
        return f"The checks stop{_where(error, cell)} with {type(error).__name__}: {error}"
    if theirs.kind == "NotImplementedError" and not theirs.message:
        return EMPTY
    if theirs.signature:
        return f"The answer cannot be called as the checks call it: {theirs.message}"
    return f"The answer stops{_where(error, cell)} with {say(error)}"  # type: ignore[arg-type]


def _where(error: BaseException, cell: Cell) -> str:
    """The line of the tests, as code."""
    line = _line(error, cell)
    said = codec.short(cell.source.split("\n")[line - 1].strip(), 100)
    return f" in `{said}`" if line else ""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise Stopped when this process has used this much processor time: what a student's value
    costs here, in reading it and in the checks. Only where signals arrive, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise Stopped(
            f"The checks took more than {seconds:.0f} seconds with this answer.",
            "the checks ran longer than they may",
        )

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, if somebody swallows it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def _pictures(found: list[str]) -> Iterator[None]:
    """Take the pictures that a check shows, as PNG in base64."""

    def picture(matrices: torch.Tensor, titles: list[str], *, row: int) -> bool:
        figure = checks._figure(matrices, titles, row=row) if len(found) < PICTURES else None
        if figure is not None:
            found.append(base64.b64encode(figure.png).decode())
        return figure is not None

    before = checks._picture
    checks._picture = picture
    try:
        yield
    finally:
        checks._picture = before
