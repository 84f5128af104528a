"""Lessons executed: several at once, each in a kernel of its own, only those that have changed.

What a page shows goes into the cache that the book's builder reads (`jupyter_cache`), before Sphinx
begins. A lesson is executed again when its code has changed, or a piece of the library that this
code reaches (`pieces`), or a file that its last run read in another way: stored results, weights, a
module whose pieces nobody has seen, or whose source was read as a text. See `Record`.

With `proof=` the same run also proves the exercises and the learner's notebook. At each exercise,
the notebook's own cells are executed: the stub, which the checks must refuse, and the solution,
which they must accept; all variants are tried in a copy of the kernel (`variants`); and then the
page's cells. What comes after finds the exercise empty, as it is in a notebook where *Run all* was
pressed. So one run, in whatever Python `proof` names, is that of the book and that of the learner.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from tfviz_lessons import variants
from tfviz_lessons.kept import Kept, digest
from tfviz_lessons.lesson import Exercise, Lesson, Written, assigned, read, unmark
from tfviz_lessons.notebook import INSTALL
from tfviz_lessons.page import page_text
from tfviz_lessons.pieces import LIBRARY, Pieces, Shelf

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 1800  # for one cell; so that what hangs ends some day, not a measurement
INSIDE = "__import__('sys').modules['_lesson']"
BEGIN = f"""
import sys, types
_lesson = types.ModuleType("_lesson")
_lesson.__file__ = {variants.__file__!r}
with open(_lesson.__file__, encoding="utf8") as _file:
    exec(compile(_file.read(), _lesson.__file__, "exec"), vars(_lesson))
sys.modules["_lesson"] = _lesson
_lesson.reads = _lesson.Reads()
_lesson.line = _lesson.Line(get_ipython())
_lesson.for_pages(get_ipython())
del sys, types, _lesson, _file
"""
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Record:
    """What is kept of the last run of a lesson, beside its outputs."""

    code: str = ""  # hash of the page's cells and of what all lessons depend on
    library: str = ""  # hash of all files of the library: while it is the same, so is all below
    pieces: dict[str, str] = field(default_factory=dict)  # that the code reaches -> hash of each
    files: dict[str, str] = field(default_factory=dict)  # read as a whole: path -> hash
    outputs: str = ""  # hash of what the cells displayed
    loaded: list[str] = field(default_factory=list)  # modules, and files read as a text or as data:
    opened: list[str] = field(default_factory=list)  # from the run, until `rests` has read them
    seconds: float = 0  # of processor time, of the kernel and of its copies
    problems: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # mime types that the cells displayed

    # with a proof only
    lesson: str = ""  # hash of the whole source, and of the proof itself
    install: str = ""  # what the install cell says where nothing is to be installed
    empty: dict[str, str] = field(default_factory=dict)  # what the checks say of the stub
    solved: dict[str, str] = field(default_factory=dict)  # and of the solution
    exercises: dict[str, list[dict[str, str]]] = field(default_factory=dict)


def group(path: Path) -> str:
    """What the last run of a lesson is called in the store."""
    return f"lesson {'-'.join(path.with_suffix('').parts[-2:])}"


def page(path: Path) -> NotebookNode:
    """The notebook that the builder makes of a lesson's page; only its code counts here."""
    return read_myst_markdown_notebook(page_text(read(path)), path=path)


def sources(path: Path, notebook: NotebookNode) -> list[str]:
    """The Python of a lesson: the cells of its page, and all that is tried in its exercises."""
    found = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for block in read(path).blocks:
        if isinstance(block, Exercise):
            each = told(block)
            found += [each[name] for name in ("right", "stub", "hidden")]
            found += [*each["draws"], *(source for _, source in each["wrong"])]
    return found


@dataclass
class Code:
    """The Python of a lesson as its text gives it."""

    notebook: NotebookNode  # of the page, without its prose
    sources: list[str]


MAKERS = sorted(Path(__file__).parent.rglob("*.py"))


def code(path: Path, kept: Kept) -> Code:
    """The Python of a lesson, from what is kept if its text is the same.

    Raises LessonError where the lesson cannot be read.
    """
    text = digest(path, ROOT / "requirements.txt", *MAKERS)
    about = f"code of {group(path)}"
    if kept.holds(about, text) and (record := kept.record(about)):
        return Code(nbformat.from_dict(record["notebook"]), record["sources"])
    notebook = page(path)
    found = sources(path, notebook)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept.keep(about, text, notebook=notebook, sources=found)
    return Code(notebook, found)


class Lessons:
    """The lessons of one build: `folder` is its `_build`, `library` where tfviz and its lab lie."""

    def __init__(self, folder: Path, library: Path = ROOT) -> None:
        self.library, self.kept = library, Kept(folder / "kept")
        self.shelf = Shelf(self.kept)
        self.pieces = Pieces(library, shelf=self.shelf)
        self.cache = get_cache(folder / ".jupyter_cache")
        versions = (ROOT / "requirements.txt").read_bytes()
        self.common = digest(versions, sys.version)

    def record(self, path: Path) -> Record:
        """What is known of the last run, whether it still holds or not."""
        known = self.kept.record(group(path)) or {}
        try:
            return Record(
                **{name: known[name] for name in known if name not in ("group", "digest")}
            )
        except TypeError:
            return Record()

    def code(self, notebook: NotebookNode) -> str:
        cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        return digest(self.common, json.dumps(cells))

    def whole(self, path: Path) -> str:
        prover = [Path(name).read_bytes() for name in (__file__, variants.__file__)]
        return digest(path.read_bytes(), *prover)

    @cached_property
    def version(self) -> str:
        """One number for all files of the library."""
        folders = [self.library / package for package in LIBRARY]
        files = sorted(x for folder in folders for x in folder.rglob("*") if x.is_file())
        there = [x for x in files if x.suffix != ".pyc"]
        return digest(*(part for x in there for part in (str(x.relative_to(self.library)), x)))

    def reached(self, path: Path) -> dict[str, str] | None:
        """The pieces that a lesson reaches, in its page and its exercises; None if none can say."""
        try:
            return self.pieces.of("\n".join(code(path, self.kept).sources))
        except SyntaxError:
            return None

    def rests(self, path: Path, record: Record) -> None:
        """Note what this run rests on: pieces where the source says them, else whole files."""
        pieces = self.reached(path)
        seen = {name.partition(":")[0] for name in pieces or ()}
        modules = {
            x.removesuffix(".py").removesuffix("/__init__").replace("/", "."): x
            for x in record.loaded
        }
        whole = {file for module, file in modules.items() if module not in seen}
        record.pieces = pieces or {}
        record.files = {name: self.file(name) for name in sorted(whole.union(record.opened))}
        record.loaded = record.opened = []

    def file(self, name: str) -> str:
        return digest(self.library / name)

    def holds(self, path: Path, *, proven: bool) -> bool:
        """Whether the last run of a lesson is still what a new one would be."""
        record, notebook = self.record(path), code(path, self.kept).notebook
        if record.code != self.code(notebook) or (proven and record.lesson != self.whole(path)):
            return False
        if record.problems:
            return False
        if record.library != self.version:
            if any(self.file(name) != of for name, of in record.files.items()):
                return False
            if record.pieces != (self.reached(path) or {}):
                return False
            record.library = self.version
            self.keep(path, record)
        try:
            self.cache.match_cache_notebook(notebook)
        except KeyError:
            return False
        return True

    def keep(self, path: Path, record: Record) -> None:
        self.kept.keep(group(path), record.code, **asdict(record))

    def run(
        self,
        paths: Sequence[Path],
        *,
        jobs: int = 0,
        proof: Path | None = None,
        again: bool = False,
    ) -> list[Path]:
        """Execute those of these lessons whose last run does not hold; which they were.

        `jobs` at once, by default one for each processor. `proof` is the Python in which exercises
        and notebooks are proven; without it kernels run in this one, and prove nothing more.
        """
        proven = proof is not None
        stale = [path for path in paths if not self.holds(path, proven=proven)]
        longest = sorted(stale, key=lambda path: (-self.record(path).seconds, -path.stat().st_size))
        asyncio.run(self._all(longest, jobs or os.cpu_count() or 1, proof))
        self.shelf.save()
        return stale

    async def _all(self, paths: Iterable[Path], jobs: int, proof: Path | None) -> None:
        free = asyncio.Semaphore(jobs)

        async def one(path: Path) -> None:
            async with free:
                notebook = page(path)
                record = await _LessonRun(path, notebook, proof).done()
            record.code, record.library = self.code(notebook), self.version
            self.rests(path, record)
            record.lesson = self.whole(path) if proof else ""
            record.outputs = digest(json.dumps(notebook.cells))
            if not record.problems:
                bundle = CacheBundleIn(
                    notebook, str(path), data={"execution_seconds": record.seconds}
                )
                self.cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            self.keep(path, record)

        async with asyncio.TaskGroup() as tasks:
            for path in paths:
                tasks.create_task(one(path))


class Kernel(AsyncKernelManager):
    """Starts ipykernel with a given Python."""

    python = sys.executable

    @property
    def kernel_spec(self) -> KernelSpec:
        launch = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=launch, display_name="Python 3", language="python")


class Session:
    """What is executed in one kernel."""

    def __init__(self, python: Path | str = sys.executable) -> None:
        self.python = os.path.abspath(python)
        self.record = Record()
        self.client: NotebookClient | None = None

    @asynccontextmanager
    async def kernel(self, **environment: str) -> AsyncIterator[None]:
        """A kernel that works in an empty folder of its own."""
        with tempfile.TemporaryDirectory() as place:
            work = Path(place, "content")
            work.mkdir()
            reached: dict[str, Any] = {"connection_file": str(Path(place, "kernel.json"))}
            if os.name == "posix":  # elsewhere there are no sockets in files
                reached |= {"transport": "ipc", "ip": str(Path(place, "kernel"))}
            manager = Kernel(**reached)
            manager.python = self.python
            # a notebook of one place: the client puts there whatever it is given to execute
            desk = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()])
            self.client = NotebookClient(
                desk,
                km=manager,
                timeout=SECONDS,
                allow_errors=True,
                store_widget_state=False,
                shutdown_kernel="immediate",
                record_timing=False,  # the cache counts metadata as part of a cell
                resources={"metadata": {"path": str(work)}},
            )
            inherited = {**os.environ, "OMP_NUM_THREADS": "1"}
            inherited.pop("MPLBACKEND", None)
            if self.python != os.path.abspath(sys.executable):
                inherited.pop("PYTHONPATH", None)
            started = {"env": inherited | environment, "cleanup_kc": True}
            async with self.client.async_setup_kernel(**started):
                yield

    async def hidden(self, source: str) -> str:
        """Execute what no page shows; what it printed."""
        cell = nbformat.v4.new_code_cell(source)
        await self.execute(cell, store_history=False)
        return "".join(out.text for out in cell.outputs if out.output_type == "stream")

    async def execute(self, cell: NotebookNode, **options: Any) -> None:
        """Execute a cell, and note what went wrong."""
        assert self.client
        try:
            await self.client.async_execute_cell(cell, 0, **options)
        except (CellExecutionError, DeadKernelError) as error:
            self.record.problems.append(f"{type(error).__name__}: {error}")
        for out in cell.outputs:
            if out.output_type == "error":
                where = ESCAPES.sub("", "\n".join(out.traceback))
                self.record.problems.append(f"{out.ename}: {out.evalue}\n{where[-1500:]}")
            elif out.output_type == "stream" and out.name == "stderr":
                self.record.problems.append(out.text)
            kinds = set(self.record.kinds) | set(out.get("data", {}))
            self.record.kinds = sorted(kinds)


def said_by(python: Path, source: str, **environment: str) -> Record:
    """What became of one cell, executed by this Python."""

    async def alone() -> Record:
        run = Session(python)
        async with run.kernel(**environment):
            await run.hidden(source)
        return run.record

    return asyncio.run(alone())


class _LessonRun(Session):
    """One lesson in one kernel."""

    def __init__(self, path: Path, notebook: NotebookNode, proof: Path | None) -> None:
        super().__init__(proof or sys.executable)
        self.lesson: Lesson = read(path)
        self.notebook, self.proof = notebook, proof

    async def done(self) -> Record:
        async with self.kernel(**({"TFVIZ_OFFLINE": "yes"} if self.proof else {})):
            await self.cells()
        return self.record

    async def cells(self) -> None:
        await self.hidden(BEGIN)
        if self.proof:
            await self.hidden(f"{INSIDE}.strict(get_ipython())")
            installed = INSTALL.format(version=version("tfviz"), package="tfviz[lessons]")
            self.record.install = await self.hidden(installed)
        waiting = [cell for cell in self.notebook.cells if cell.cell_type == "code"]
        for block in self.lesson.blocks:
            if isinstance(block, Exercise):
                if self.proof:
                    await self.prove(block)
                shown = [block.solved, block.visible_tests]
                for source in [block.stub] * (block.answer == "explorer") + shown:
                    await self.shown(waiting.pop(0), source)
                if self.proof:
                    await self.hidden(f"{INSIDE}.line.leave()")
                    await self.hidden(block.stub)
            elif not isinstance(block, Written) and block.kind == "code":
                await self.shown(waiting.pop(0), block.source)
        assert not waiting, "a page has the cells of its lesson and no others"
        asked = _json(f"[{INSIDE}.reads.loaded(), {INSIDE}.reads.files(), {INSIDE}.spent()]")
        last = json.loads(await self.hidden(f"print({asked})") or "[[], [], 0]")
        self.record.loaded, self.record.opened, self.record.seconds = last

    async def prove(self, exercise: Exercise) -> None:
        """Stub and solution as in the learner's notebook, then every variant."""
        label, check = exercise.label, f"%%check {exercise.label}\n{exercise.visible_tests}"
        await self.hidden(f"{INSIDE}.line.enter()")
        await self.hidden(exercise.stub)
        self.record.empty[label] = await self.hidden(check)
        await self.hidden(exercise.solved)
        self.record.solved[label] = await self.hidden(check)
        await self.hidden(f"{INSIDE}.line.again()")
        tried = _json(f"{INSIDE}.line.proof({told(exercise)!r})")
        if said := await self.hidden(f"print({tried})"):
            self.record.exercises[label] = json.loads(said.splitlines()[-1])

    async def shown(self, cell: NotebookNode, source: str) -> None:
        """Execute a cell of the page, which must be this one of the lesson."""
        assert cell.source.strip() == source.strip(), f"the page has another cell:\n{cell.source}"
        await self.execute(cell)


def _json(expression: str) -> str:
    return f"__import__('json').dumps({expression})"


def told(exercise: Exercise) -> dict[str, Any]:
    """An exercise as plain data, for `variants`."""
    return {
        "right": unmark(exercise.solution.source),
        "stub": exercise.stub,
        "visible": exercise.visible_tests,
        "hidden": "\n".join(filter(None, (exercise.hidden_tests, exercise.asked_proof))),
        "numbers": exercise.numbers,
        "draws": [assigned(draw) for draw in exercise.draws()],
        "wrong": [[wrong.why, wrong.source] for wrong in exercise.wrong],
    }
