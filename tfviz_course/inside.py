"""The student's side of the line: runs cells and calls functions as the grader asks.

It runs in the sandbox, with nothing of the grader's in reach: the tests, the hidden inputs before
they are used and the solutions never come here. Whoever takes it over gains a process that can
only answer wrongly. `tfviz_course.line` is the other end, and describes the messages.
"""

from __future__ import annotations

import base64
import gc
import importlib
import io
import json
import linecache
import os
import resource
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import groupby
from operator import itemgetter
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from tfviz_course import codec

MESSAGE = 2_000  # characters of an error's message
LINES = 6  # of a traceback


def _confine(orders: dict[str, Any]) -> None:
    """Give up the rights of root, set the limits that hold for each process."""
    limits, uid = orders["limits"], orders["uid"]
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, int(limits["seconds"] + limits["start_seconds"]))
    _limit(resource.RLIMIT_FSIZE, limits["file_size"])
    _limit(resource.RLIMIT_NOFILE, limits["files"])
    _limit(resource.RLIMIT_NPROC, limits["processes"])


def _limit(kind: int, most: int, *, for_good: bool = True) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most if for_good else hard))


def bound_memory(more: int, *, for_good: bool = True) -> None:
    """From here this process may map this much more."""
    with suppress(OSError), open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, mapped + more, for_good=for_good)


# --- what an answer may not call -----------------------------------------------------------------


class Lock:
    """Makes functions raise, except for the library and the cells of the lesson, which need them.

    It changes the code of the function itself, so it does not matter by which name it is reached.
    """

    def __init__(self) -> None:
        self.cells: set[str] = set()  # files of the lesson's cells, as IPython calls them
        self.library = ""

    @contextmanager
    def on(self, functions: list[FunctionType]) -> Iterator[None]:
        """Meanwhile these raise."""
        kept = [(function, function.__code__) for function in functions]
        for function, code in kept:
            raising = _PLACE.__code__.replace(co_freevars=code.co_freevars)
            constants = [self._door(function) if c == "door" else c for c in raising.co_consts]
            function.__code__ = raising.replace(co_consts=tuple(constants))
        try:
            yield
        finally:
            for function, code in kept:
                function.__code__ = code

    def _door(self, function: FunctionType) -> Callable[..., Any]:
        name, more = function.__name__, (function.__defaults__, function.__closure__)
        open_ = FunctionType(function.__code__, function.__globals__, name, *more)
        open_.__kwdefaults__ = function.__kwdefaults__

        def door(*arguments: Any, **named: Any) -> Any:
            caller = sys._getframe(2).f_code.co_filename
            if caller.startswith(self.library) or caller in self.cells:
                return open_(*arguments, **named)
            raise RuntimeError(f"{name} is what this exercise asks for: it cannot be called here")

        return door


def _PLACE(*arguments: Any, **named: Any) -> Any:
    return "door".__call__(*arguments, **named)  # type: ignore[operator]


# --- what a cell shows ---------------------------------------------------------------------------


class Shown(io.TextIOBase):
    """What a cell prints and displays: sys.stdout and sys.stderr in one.

    `outputs` are [kind, text], the kind being text, picture (PNG in base64) or error; the grader
    cuts them to size.
    """

    encoding, errors = "utf-8", "replace"

    def __init__(self) -> None:
        self.take()

    def take(self) -> list[list[str]]:
        """The outputs so far; begins anew."""
        found: list[list[str]] = []
        for kind, some in groupby(getattr(self, "outputs", ()), key=itemgetter(0)):
            texts = [text for _, text in some]
            found += [[kind, text] for text in (["".join(texts)] if kind == "text" else texts)]
        self.outputs: list[tuple[str, str]] = []
        self.left = 1 << 20  # so much a message holds, however it is written
        return found

    def add(self, kind: str, text: str) -> None:
        self.left -= len(text) + 1
        self.outputs.append((kind, text))

    def rich(self, data: dict[str, Any]) -> None:
        png = data.get("image/png")
        png = base64.b64encode(png).decode() if isinstance(png, bytes) else png
        if isinstance(png, str) and len(png) < self.left:
            self.add("picture", png)
        elif "text/plain" in data:
            self.write(f"{data['text/plain']}\n")

    def write(self, text: str) -> int:
        if self.left > 0:
            self.add("text", str(text)[: self.left])
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is kept back; and one that was closed goes on."""


def _shell(shown: Shown) -> Any:
    """An IPython shell without a terminal, a kernel or a history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    def show(value: Any) -> None:
        if value is not None:
            shown.rich(shell.display_formatter.format(value)[0])

    def show_error(kind: Any, value: Any, lines: list[str]) -> None:
        shown.add("error", codec.short("\n".join(lines), 10_000))

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autocall = 0
    shell: Any = InteractiveShell.instance(config=config)
    shell.display_trap.hook = show
    shell.display_pub.publish = lambda data, *more, **options: shown.rich(data)
    shell.enable_gui = lambda gui=None: None  # `%matplotlib inline` asks for it
    shell._tee = lambda channel: nullcontext()  # it would keep all that is written once more
    shell._showtraceback = show_error
    return shell


# --- errors --------------------------------------------------------------------------------------


def _message(error: BaseException | None) -> str:
    try:
        return codec.short(error, MESSAGE)
    except BaseException as failed:  # the student's own __str__
        return f"(its message cannot be read: {type(failed).__name__})"


def _frames(trace: TracebackType | None) -> list[str]:
    """The last lines of the student's own code, the innermost last."""
    own = (__file__, codec.__file__)
    try:
        frames = [f for f in traceback.extract_tb(trace) if f.filename not in own]
        cells = [f for f in frames if "ipython-input" in f.filename or "ipykernel" in f.filename]
        said = [f"line {f.lineno}, in {f.name}: {f.line}" for f in (cells or frames)[-LINES:]]
        return [codec.short(line, 160) for line in said]
    except BaseException:
        return []


def _error(error: BaseException, *, call: bool = False) -> dict[str, Any]:
    """An exception as data: types from the most special, message, lines, and what kind it is."""
    trace = error.__traceback__
    return {
        "types": [codec.short(kind.__name__, 80) for kind in type(error).__mro__[:12]],
        "message": _message(error),
        "lines": _frames(trace),
        # it was raised by the call itself, not by a line of the function
        "signature": call and isinstance(error, TypeError) and not getattr(trace, "tb_next", 0),
        "given": getattr(error, "_of_the_grader", None),
    }


# --- the line ------------------------------------------------------------------------------------


class Line(codec.End):
    """Serves the grader: one request after the other, with questions of ours in between."""

    def __init__(self, orders: dict[str, Any]) -> None:
        super().__init__()
        reading, writing = orders["lines"]
        for number in (reading, writing):
            os.set_inheritable(number, False)
        self.reading, self.writing = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self.process = os.getpid()
        self.limits = orders["limits"]
        self.spaces: dict[int, dict[str, Any]] = {}
        self.lock = Lock()
        self.locked: dict[int, list[FunctionType]] = {}  # by the step of the answer
        self.at = 0
        self.turn = threading.RLock()
        self.calls = 0  # of the student's functions that go on
        self.shown = Shown()
        self.shell: Any = None

    def receive(self) -> tuple[Any, codec.Reader]:
        text, raw = codec.lengths(self._read(codec.HEAD.size))
        message = codec.unpack(self._read(text))
        return message, codec.Reader(self._read(raw), self.known)

    def _read(self, size: int) -> bytes:
        data = self.reading.read(size)
        if len(data) < size:
            os._exit(0)  # the grader has gone
        return data

    def send(self, message: Any, raw: list[bytes]) -> None:
        if os.getpid() != self.process:
            os._exit(0)  # a fork of the student's came back here: one voice is enough
        self.writing.write(codec.pack(message, raw))
        self.writing.flush()

    def answer(self, make: Callable[[codec.Writer], list[Any]]) -> None:
        """Send what `make` writes, or why it cannot be sent."""
        writer = codec.Writer(self.handle)
        try:
            message, raw = make(writer), writer.raw
            codec.pack(message, [])
        except BaseException as error:
            message, raw = ["failed", _error(error)], []
        self.send(message, raw)

    def ask(self, remote: codec.Remote, arguments: Any, named: dict[str, Any]) -> Any:
        """Call a function of the grader's. What the student's code does meanwhile has to wait."""
        if not self.calls:  # the grader would not understand a thread that a call has left behind
            raise RuntimeError("the call that this function was given to is over")
        with self.turn:
            writer = codec.Writer(self.handle)
            packed = [writer.put(list(arguments)), writer.put(named)]
            self.send(["ask", remote._number, *packed], writer.raw)
            while True:
                message, reader = self.receive()
                if message[0] == "value":
                    return reader.get(message[1])
                if message[0] == "error":
                    error, known = message[1], codec.EXCEPTIONS
                    kind = next(
                        (known[name] for name in error["types"] if name in known), Exception
                    )
                    made = kind(error["message"])
                    made._of_the_grader = error["number"]  # type: ignore[attr-defined]
                    raise made
                self.serve(message, reader)

    # --- requests ---

    def serve(self, message: Any, reader: codec.Reader) -> None:
        kind, *rest = message
        # Each time: code that replaced them must not spoil the student's other answers.
        sys.stdout = sys.stderr = self.shown
        (self.run if kind == "run" else self.call)(reader, *rest)

    def run(
        self,
        reader: codec.Reader,
        step: int,
        source: str,
        names: list[str],
        locked: list[list[str]] | None,
    ) -> None:
        """A cell; answers with its error, what it showed, and the values of `names`."""
        self.shown.take()
        self.locked[step] = []
        for module, name in locked or ():
            home = self.shell.user_ns if module == "__main__" else vars(sys.modules[module])
            if isinstance(home.get(name), FunctionType):
                self.locked[step].append(home[name])
        files = set(linecache.cache)
        try:
            with self.lock.on(self.locked[step]):
                result = self.shell.run_cell(source, store_history=False)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as failed:
            error = failed
        if locked is None:
            self.lock.cells |= {f for f in linecache.cache if f not in files and "<ipython" in f}
        space = self.shell.user_ns
        self.spaces[step], self.at = dict(space), step
        outputs = self.shown.take()
        found = None if error is None else _error(error)
        self.answer(lambda writer: ["ran", found, [], outputs])
        for name in names:
            if name in space:
                self.answer(lambda writer, name=name: ["name", name, writer.put(space[name])])  # type: ignore[misc]
        self.send(["end"], [])

    def call(
        self, reader: codec.Reader, step: int, number: int, arguments: Any, named: Any, dice: Any
    ) -> None:
        """A function of the student's, with the names as they were after its cell."""
        import torch

        if self.at != step and step in self.spaces:
            self.shell.user_ns.clear()
            self.shell.user_ns.update(self.spaces[step])
            self.at = step
        given, options = reader.get(arguments), reader.get(named)
        torch.set_rng_state(reader.get(dice))
        self.calls += 1
        try:
            with self.shell.builtin_trap, self.lock.on(self.locked.get(self.at, [])):
                result = self.own[number](*given, **options)
        except BaseException as error:
            found = _error(error, call=True)
            error.__traceback__ = None
            self.send(["raised", found], [])
        else:
            self.answer(lambda writer: ["value", writer.put(result)])
        finally:
            self.calls -= 1


class Later(ModuleType):
    """Stands for torch's compiler until somebody compiles: an optimizer imports it, for a second,
    only to say that it is not to be compiled."""

    @staticmethod
    def graph_break(*_: Any) -> None: ...

    @staticmethod
    def disable(function: Any, *_: Any, **options: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        if name == "__file__":  # who looks through all modules asks for it
            raise AttributeError(name)
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def main(orders: dict[str, Any]) -> None:
    _confine(orders)
    os.umask(0o077)
    os.makedirs(os.environ["HOME"], exist_ok=True)
    with suppress(FileNotFoundError):  # matplotlib reads its list of fonts where it can write, only
        shutil.copytree(f"{os.environ['PYTHONPATH']}/matplotlib", os.environ["MPLCONFIGDIR"])
    os.chdir(os.environ["HOME"])
    gc.disable()  # what is imported stays: nobody need look through it, now or later
    import torch

    torch.set_num_threads(1)
    torch._dynamo = sys.modules["torch._dynamo"] = Later("torch._dynamo")
    line = Line(orders)
    line.shell = _shell(line.shown)
    import tfviz

    line.lock.library = os.path.dirname(tfviz.__file__) + os.sep
    sys.argv = [""]
    gc.freeze()
    gc.enable()
    line.send(["ready"], [])
    bound_memory(line.limits["memory"])
    while True:
        line.serve(*line.receive())


if __name__ == "__main__":
    _here = sys.modules["__main__"]  # the shell puts the student's module in its place
    main(json.loads(sys.argv[1]))
