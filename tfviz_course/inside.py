"""The student's side of the line: runs cells and calls functions as the grader asks.

It runs in the sandbox, with nothing of the grader's in reach: the tests, the hidden inputs before
they are used and the solutions never come here. Whoever takes it over gains a process that can
only answer wrongly.

The messages are described in `tfviz_course.line`, whose `Session` is the other end.
"""

from __future__ import annotations

import base64
import json
import linecache
import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, TracebackType
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
    seconds = int(limits["seconds"] + limits["start_seconds"])
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _bound_memory(more: int) -> None:
    """From here this process may map this much more."""
    with suppress(OSError), open("/proc/self/statm") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + more
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


# --- what an answer may not call -----------------------------------------------------------------


class Lock:
    """Makes functions raise, except for the library and the cells of the lesson, which need them.

    It changes the code of the function itself, so it does not matter by which name it is reached.
    """

    def __init__(self) -> None:
        self.cells: set[str] = set()  # files of the lesson's cells, as IPython calls them
        self.library = ""

    def find(self, names: list[list[str]], space: dict[str, Any]) -> list[FunctionType]:
        """The functions with these modules and names."""
        homes = [(space if m == "__main__" else vars(sys.modules.get(m, sys)), n) for m, n in names]
        return [found for home, n in homes if isinstance(found := home.get(n), FunctionType)]

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
    return "door"(*arguments, **named)  # type: ignore[operator]


# --- what a cell shows ---------------------------------------------------------------------------


class Shown:
    """What a cell prints and displays, as outputs of a notebook; the grader cuts it to size."""

    def __init__(self, most: int) -> None:
        self.most = 2 * most
        self.take()

    def take(self) -> list[dict[str, Any]]:
        """The outputs so far; begins anew."""
        found = getattr(self, "outputs", [])
        self.outputs: list[dict[str, Any]] = []
        self.left, self.room = self.most, 2 << 20  # of text, of pictures: so much a message holds
        return found

    def text(self, name: str, text: str) -> None:
        text = text[: max(self.left, 0)]
        self.left -= len(text) + 1
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") == "stream" and last.get("name") == name:
            last["text"] += text
        elif text:
            self.outputs.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict[str, Any]) -> None:
        kept: dict[str, str] = {}
        for mime in {"text/plain", "image/png", "image/jpeg"} & data.keys():
            value = data[mime]
            value = base64.b64encode(value).decode() if isinstance(value, bytes) else value
            if isinstance(value, str) and len(value) < self.room:
                self.room -= len(value) + 100
                kept[mime] = value
        if kept:
            self.outputs.append({"output_type": kind, "data": kept, "metadata": {}})


class Stream:
    """sys.stdout or sys.stderr."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, shown: Shown) -> None:
        self.name, self.shown = f"<{name}>", shown
        self._kind = name

    def write(self, text: str) -> int:
        self.shown.text(self._kind, str(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


def _shell(shown: Shown) -> Any:
    """An IPython shell without a terminal, a kernel or a history."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            pass

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            shown.rich("execute_result", format_dict)

        def finish_displayhook(self) -> None:
            self.flush_now = False

        def log_output(self, format_dict: Any) -> None:
            pass

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, metadata: Any = None, *more: Any, **options: Any) -> None:
            shown.rich("display_data", data)

        def clear_output(self, wait: bool = False) -> None:
            pass

    class Shell(InteractiveShell):
        def enable_gui(self, gui: Any = None) -> None:
            """`%matplotlib inline` asks for it; there is no window to enable."""

        def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
            text = [codec.short(line, 4_000) for line in stb[:40]]
            said = _message(evalue)
            shown.left -= min(shown.left, sum(map(len, text)) + len(said))
            shown.outputs.append(
                {
                    "output_type": "error",
                    "ename": codec.short(getattr(etype, "__name__", etype), 80),
                    "evalue": said,
                    "traceback": text,
                }
            )

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autocall = 0
    config.InteractiveShell.cache_size = 0
    shell = Shell.instance(config=config, displayhook_class=Hook, display_pub_class=Publisher)
    shell.displayhook.shell = shell
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
        return [
            codec.short(f"line {f.lineno}, in {f.name}: {f.line}", 160)
            for f in (cells or frames)[-LINES:]
        ]
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
        "signature": call
        and isinstance(error, TypeError)
        and trace is not None
        and trace.tb_next is None,
        "given": getattr(error, "_of_the_grader", None),
    }


# --- the line ------------------------------------------------------------------------------------


class Given:
    """A function of the grader's: calling it asks the grader."""

    def __init__(self, line: Line, number: int, name: str) -> None:
        self._line, self._number = line, number
        self.__name__ = self.__qualname__ = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._line.ask(self._number, arguments, named)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Line:
    """Serves the grader: one request after the other, with questions of ours in between."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.reading, self.writing = orders["lines"]
        self.process = os.getpid()
        for line in orders["lines"]:
            os.set_inheritable(line, False)
        self.limits = orders["limits"]
        self.functions: dict[int, Any] = {}
        self.spaces: dict[int, dict[str, Any]] = {}
        self.lock = Lock()
        self.locked: dict[int, list[FunctionType]] = {}  # by the step of the answer
        self.at = 0
        self.turn = threading.RLock()
        self.calls = 0  # of the student's functions that go on
        self.shown = Shown(self.limits["output"])
        self.streams = Stream("stdout", self.shown), Stream("stderr", self.shown)
        self.shell: Any = None

    def receive(self) -> tuple[Any, codec.Reader]:
        text, raw = codec.lengths(self._read(codec.HEAD.size))
        message = codec.unpack(self._read(text))
        return message, codec.Reader(self._read(raw), self._known)

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self.reading, min(size, 1 << 20))
            if not part:
                os._exit(0)  # the grader has gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(self, message: Any, raw: list[bytes]) -> None:
        if os.getpid() != self.process:
            os._exit(0)  # a fork of the student's came back here: one voice is enough
        rest = memoryview(codec.pack(message, raw))
        while rest:
            rest = rest[os.write(self.writing, rest[: 1 << 20]) :]

    def _known(self, handle: list[Any]) -> Any:
        """What stands for a function: the grader's, or our own on its way back."""
        kind, number, *name = handle
        if kind == "function":
            return self.functions[number]
        return Given(self, number, name[0])

    def _handle(self, value: Any) -> list[Any] | None:
        if isinstance(value, Given):
            return ["given", value._number]
        if not callable(value):
            return None
        known = (n for n, function in self.functions.items() if function is value)
        number = next(known, len(self.functions))
        self.functions[number] = value
        return ["function", number, codec.short(getattr(value, "__name__", type(value).__name__))]

    def answer(self, make: Callable[[codec.Writer], list[Any]]) -> None:
        """Send what `make` writes, or why it cannot be sent."""
        writer = codec.Writer(self._handle)
        try:
            message, raw = make(writer), writer.raw
            codec.pack(message, [])
        except BaseException as error:
            message, raw = ["failed", _error(error)], []
        self.send(message, raw)

    def ask(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a function of the grader's. What the student's code does meanwhile has to wait.

        Raises RuntimeError when nothing of the student's is being called: the grader would not
        understand a thread that a call has left behind.
        """
        if not self.calls:
            raise RuntimeError("the call that this function was given to is over")
        with self.turn:
            writer = codec.Writer(self._handle)
            packed = [writer.put(list(arguments)), writer.put(named)]
            self.send(["ask", number, *packed], writer.raw)
            while True:
                message, reader = self.receive()
                if message[0] == "value":
                    return reader.get(message[1])
                if message[0] == "error":
                    raise self._theirs(message[1])
                self.serve(message, reader)

    def _theirs(self, error: dict[str, Any]) -> Exception:
        import builtins

        found: type[Exception] = Exception
        for name in error["types"]:
            kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                found = kind
                break
        try:
            made = found(error["message"])
        except TypeError:
            made = Exception(error["message"])
        made._of_the_grader = error["number"]  # type: ignore[attr-defined]
        return made

    # --- requests ---

    def serve(self, message: Any, reader: codec.Reader) -> None:
        kind, *rest = message
        # Each time: code that replaced them must not spoil the student's other answers.
        sys.stdout, sys.stderr = self.streams
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
        self.locked[step] = self.lock.find(locked or [], self.shell.user_ns)
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
                self._name(name, space[name])
        self.send(["end"], [])

    def _name(self, name: str, value: Any) -> None:
        self.answer(lambda writer: ["name", name, writer.put(value)])

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
        try:
            result = self._result(self.functions[number], given, options)
        except BaseException as error:
            found = _error(error, call=True)
            error.__traceback__ = None
            self.send(["raised", found], [])
        else:
            self.answer(lambda writer: ["value", writer.put(result)])

    def _result(self, function: Any, given: Any, options: Any) -> Any:
        self.calls += 1
        try:
            with self.shell.builtin_trap, self.lock.on(self.locked.get(self.at, [])):
                return function(*given, **options)
        finally:
            self.calls -= 1


def main(orders: dict[str, Any]) -> None:
    _confine(orders)
    os.umask(0o077)
    os.makedirs(os.environ["HOME"], exist_ok=True)
    os.chdir(os.environ["HOME"])
    import torch

    torch.set_num_threads(1)
    line = Line(orders)
    line.shell = _shell(line.shown)
    import tfviz

    line.lock.library = os.path.dirname(tfviz.__file__) + os.sep
    sys.argv = [""]
    line.send(["ready"], [])
    _bound_memory(line.limits["memory"])
    while True:
        line.serve(*line.receive())


if __name__ == "__main__":
    _here = sys.modules["__main__"]  # the shell puts the student's module in its place
    main(json.loads(sys.argv[1]))
