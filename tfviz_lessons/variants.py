"""Inside of the kernel that runs a lesson: every variant of an exercise, tried apart.

The kernel may have nothing but what a notebook's install cell brings, so this file imports nothing
of the course but `tfviz`; `execute` and the tests hand it exercises as plain data.

An outcome is "passes", "check" (a message for the learner), "empty" (the untouched stub) or the
name of another exception; warnings are errors. Hidden tests are run with several seeds: a solution
must pass with each, and a wrong one must fail with each. Where an exercise has numbers of its own,
its solution is tried with several draws, those after the book's with one seed each in turn.
"""

import io
import json
import os
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

SEEDS = (0, 1, 20261121, 2**31 - 1)
OWN = {"In", "Out", "exit", "quit", "get_ipython", "open"}  # IPython's, besides those with _


def apart(work: Callable[[], Any]) -> Any:
    """What `work()` returns, plain JSON, made in a copy of this process that leaves no trace.

    RuntimeError with what the copy said if it does not get there.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            text = json.dumps([work(), ""])
        except BaseException:
            text = json.dumps([None, traceback.format_exc()])
        with os.fdopen(writing, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    made, problem = json.loads(text or '[null, "the process ended before it answered"]')
    if problem:
        raise RuntimeError(problem)
    return made


def seeds() -> tuple[Any, ...]:
    """The state of all generators of random numbers."""
    import numpy
    import torch

    return torch.get_rng_state(), numpy.random.get_state(), random.getstate()


def seed(state: tuple[Any, ...]) -> None:
    """Put all generators of random numbers into this state."""
    import numpy
    import torch

    torch.set_rng_state(state[0])
    numpy.random.set_state(state[1])
    random.setstate(state[2])


class Line:
    """The lesson as a learner has it who leaves every exercise empty.

    `enter` an exercise, execute its solution and its checks, and `leave`: what follows finds the
    names as they were before, so that nothing after an exercise can rest on its answer. Another
    exercise may: within one, the answers to those before it are there.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.space: dict[str, Any] = shell.user_ns
        self.solved: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        self.seeds: tuple[Any, ...] = ()

    def enter(self) -> None:
        self.before, self.seeds = dict(self.space), seeds()
        self.space.update(self.solved)

    def again(self) -> None:
        """As `enter` left it."""
        self._names(self.before | self.solved)
        seed(self.seeds)

    def leave(self) -> None:
        """Names as they were before the exercise; what its answer gave is kept for later ones."""
        for name, value in self.space.items():
            own = name.startswith("_") or name in OWN
            if not own and self.before.get(name, self) is not value:
                self.solved[name] = value
        self._names(self.before)

    def _names(self, names: dict[str, Any]) -> None:
        self.space.clear()
        self.space.update(names)

    # --- one exercise -----------------------------------------------------------------------------

    def run(self, source: str, name: str, line: int = 1) -> None:
        """Execute a cell that begins at this line; its last value is not displayed."""
        code = "\n" * (line - 1) + self.shell.transform_cell(source)
        exec(compile(code, name, "exec"), self.space)

    def run_all(self, cells: dict[str, str]) -> tuple[str, str]:
        """Outcome and message of these cells, one after the other."""
        from tfviz.checks import CheckFailed

        try:
            for name, source in cells.items():
                self.run(source, name)
        except CheckFailed as failed:
            return "check", str(failed)
        except NotImplementedError as error:
            return ("empty" if not str(error) else "NotImplementedError"), str(error)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return type(error).__name__, f"{error} ({where.name}, line {where.lineno})"
        return "passes", ""

    @contextmanager
    def restored(self) -> Iterator[None]:
        """What happens inside changes neither names nor generators."""
        space, state = dict(self.space), seeds()
        try:
            yield
        finally:
            self._names(space)
            seed(state)

    def attempt(self, cells: dict[str, str]) -> tuple[str, str]:
        """Outcome and message of these cells, after which all is as it was before."""
        with self.restored():
            return self.run_all(cells)

    def tried(
        self, cells: dict[str, str], hidden: str, numbers: Sequence[int] = SEEDS
    ) -> list[tuple[str, str]]:
        """Outcome of answer and checks in `cells`, and if they pass of the hidden tests, with each
        seed. Only the hidden tests know of a seed."""
        with self.restored():
            found = [self.run_all(cells)]
            if found[0][0] == "passes" and hidden:
                for number in numbers:
                    tests = {"<seed>": f"seed = {number}", "<hidden tests>": hidden}
                    outcome, message = self.attempt(tests)
                    found.append((outcome, f"{message} (seed {number})" if message else ""))
        return found

    def variants(self, exercise: dict[str, Any]) -> list[dict[str, str]]:
        """[{"variant", "tests", "outcome", "message"}, …] of an exercise as `execute` tells it.

        Of all outcomes of a variant the one that proves least: for a solution one where it fails,
        for a wrong one where it passes, or crashes.
        """
        found = []

        def note(variant: str, tests: str, outcomes: list[tuple[str, str]]) -> None:
            wrong = variant.startswith("wrong")
            best = "check" if wrong else "passes"
            last = outcomes[1:] or outcomes
            least = min(last, key=lambda one: (one[0] == best, wrong and one[0] != "passes"))
            words = {"outcome": least[0], "message": least[1]}
            found.append({"variant": variant, "tests": tests, **words})

        shown, hidden = {"<tests>": exercise["visible"]}, exercise["hidden"]
        for place, numbers in enumerate(exercise["draws"]):
            cells = {"<numbers>": numbers, "<answer>": exercise["right"], **shown}
            some = (SEEDS[place % len(SEEDS)],) if place else SEEDS
            outcomes = self.tried(cells, hidden, some)
            if not place:
                note("solution", "visible", outcomes[:1])
            note(f"solution with {numbers}" if place else "solution", "all", outcomes)
        note("stub", "visible", [self.attempt({"<answer>": exercise["stub"], **shown})])
        for why, source in exercise["wrong"]:
            cells = {"<numbers>": exercise["numbers"], "<answer>": source, **shown}
            note(f"wrong: {why}", "all", self.tried(cells, hidden))
        return found

    def proof(self, exercise: dict[str, Any]) -> list[dict[str, str]]:
        """`variants`, in a process of their own that shows nothing to anybody."""

        def work() -> list[dict[str, str]]:
            silent()
            self.space["display"] = lambda *things, **options: None
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
                warnings.simplefilter("error")
                with redirect_stderr(io.StringIO()):
                    return self.variants(exercise)

        return list(apart(work))


def silent() -> None:
    """In a copy of a kernel: no message may leave it, its sockets are those of the kernel."""
    import IPython

    if "comm" in sys.modules:
        import comm
        from comm.base_comm import BaseComm

        class Nobody(BaseComm):
            def publish_msg(self, *things: Any, **options: Any) -> None:
                pass

        comm.create_comm = Nobody
    IPython.get_ipython = lambda: None


# --- what a lesson has read -----------------------------------------------------------------------


class Reads:
    """What of the library a lesson's cells read: modules, stored results, weights."""

    def __init__(self) -> None:
        self.opened: set[str] = set()
        sys.addaudithook(self._heard)

    def _heard(self, event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(values[0], str | os.PathLike):
            by_import = sys._getframe(1).f_code.co_filename.startswith("<frozen importlib")
            if not by_import:
                self.opened.add(os.fspath(values[0]))

    def loaded(self) -> list[str]:
        """The modules of tfviz and its lab."""
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return self._ours(path for path in files if path)

    def files(self) -> list[str]:
        """What was opened of tfviz and its lab in another way than by `import`."""
        return self._ours(self.opened)

    def _ours(self, paths: Iterable[str]) -> list[str]:
        """Paths from the folder where both lie, as in any copy of them."""
        if "tfviz" not in sys.modules:
            return []
        home = os.path.dirname(os.path.dirname(str(sys.modules["tfviz"].__file__))) + os.sep
        packages = tuple(home + name + os.sep for name in ("tfviz", "tfviz_lab"))
        below = {path[len(home) :] for path in map(str, paths) if path.startswith(packages)}
        return sorted(path for path in below if not path.endswith(".pyc"))


def spent() -> float:
    """Seconds of processor time that this process and its copies have taken."""
    return round(sum(os.times()[:4]), 1)


def for_pages(shell: Any) -> None:
    """What cells of this kernel display is for pages, which show no PNG: none is made."""
    show = shell.display_formatter.format

    def without(thing: Any, include: Any = None, exclude: Any = None) -> Any:
        return show(thing, include, {"image/png", *(exclude or ())})

    shell.display_formatter.format = without


def strict(shell: Any) -> None:
    """In the cells of this kernel a warning is an error."""

    def before(info: Any) -> None:
        warnings.simplefilter("error")

    def after(result: Any) -> None:
        warnings.resetwarnings()

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
