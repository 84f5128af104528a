"""The student's side of the line: runs cells and calls functions as the grader asks.

It runs in the sandbox, with nothing of the grader's in reach: the tests, the hidden inputs before
they are used and the solutions never come here. Whoever takes it over gains a process that can
only answer wrongly. `tfviz_course.line` is the other end, and describes the messages.

What all submissions begin with is loaded once (`main`), by a process that never runs a line of a
student's. Copies of it move into a sandbox for good (`_enter`, `_confine`) before they serve.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import gc
import importlib
import io
import json
import linecache
import os
import random
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FunctionType, ModuleType, TracebackType
from typing import Any, NoReturn

import torch

import tfviz
from tfviz_course import codec

MESSAGE = 2_000  # characters of an error's message
LINES = 6  # of a traceback
SPACES = ("cgroup", "ipc", "uts", "net", "pid", "mnt")
HOME = os.path.dirname(os.path.dirname(tfviz.__file__))
LIBRARY = tuple(os.path.join(HOME, package, "") for package in ("tfviz", "tfviz_lab"))
OWNER = 0xB701  # what to ask of a namespace: the user namespace that it belongs to
LIBC = ctypes.CDLL(None, use_errno=True)


def _must(done: int) -> None:
    if done != 0:
        raise OSError(ctypes.get_errno(), "the sandbox cannot be entered")


def _enter(pid: int) -> int:
    """Move into all namespaces of this process, and go on as a fork; gives its number outside."""
    there, here = f"/proc/{pid}/ns", "/proc/self/ns"
    names = [name for name in SPACES if not os.path.samefile(f"{there}/{name}", f"{here}/{name}")]
    opened = [os.open(f"{there}/{name}", os.O_RDONLY) for name in names]
    if not os.path.samefile(f"{there}/user", f"{here}/user"):
        user, owner = os.open(f"{there}/user", os.O_RDONLY), fcntl.ioctl(opened[-1], OWNER)
        opened.insert(0, owner)  # who owns them may enter them
        opened += [] if os.path.sameopenfile(user, owner) else [user]
    outside = os.open("/proc", os.O_RDONLY)
    for space in opened:
        _must(LIBC.setns(space, 0))
    if os.fork():
        os._exit(0)
    return int(os.readlink("self", dir_fd=outside))


def _confine(limits: dict[str, Any], uid: int | None, calls: bytes) -> None:
    """Give up all rights, set the limits that hold for each process, refuse calls of the kernel."""
    os.setsid()
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    # version 3, this process; effective, permitted and inheritable capabilities, in two halves
    _must(LIBC.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()))
    _must(LIBC.prctl(38, 1, 0, 0, 0))  # PR_SET_NO_NEW_PRIVS
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, int(limits["seconds"] + limits["start_seconds"]))
    _limit(resource.RLIMIT_FSIZE, limits["file_size"])
    _limit(resource.RLIMIT_NOFILE, limits["files"])
    _limit(resource.RLIMIT_NPROC, limits["processes"])
    if calls:
        program = ctypes.create_string_buffer(calls, len(calls))
        filtering = struct.pack("@HP", len(calls) // 8, ctypes.addressof(program))
        _must(LIBC.prctl(22, 2, filtering, 0, 0))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _limit(kind: int, most: int, *, for_good: bool = True) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most if for_good else hard))


def bound_memory(more: int, *, for_good: bool = True) -> None:
    """From here this process may map this much more."""
    with suppress(OSError), open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, mapped + more, for_good=for_good)


class Lock:
    """Makes functions raise, except for the library and the cells of the lesson, which need them.
    It changes the code of the function itself, so no matter by which name it is reached."""

    def __init__(self) -> None:
        self.cells: set[str] = set()  # files of the lesson's cells, as IPython calls them

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
            if caller.startswith(LIBRARY) or caller in self.cells:
                return open_(*arguments, **named)
            raise RuntimeError(f"{name} is what this exercise asks for: it cannot be called here")

        return door


def _PLACE(*arguments: Any, **named: Any) -> Any:
    return "door".__call__(*arguments, **named)  # type: ignore[operator]


class Shown(io.TextIOBase):
    """What a cell prints and shows: sys.stdout and sys.stderr in one. `outputs` are [kind, text],
    of text, picture (PNG in base64) or error; the grader cuts them to size."""

    encoding, errors = "utf-8", "replace"

    def __init__(self) -> None:
        self.outputs: list[tuple[str, list[str]]] = []
        self.take()

    def take(self) -> list[list[str]]:
        """The outputs so far; begins anew."""
        found = [[kind, "".join(texts)] for kind, texts in self.outputs]
        self.outputs, self.left = [], 1 << 20  # so much a message holds, however it is written
        return found

    def add(self, kind: str, text: str) -> None:
        self.left -= len(text) + 1
        last, texts = (self.outputs or [("", [])])[-1]  # another thread may add, or take them
        if kind == "text" == last:
            texts.append(text)
        else:
            self.outputs.append((kind, [text]))

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
    try:
        message = codec.short(error, MESSAGE)
    except BaseException as failed:  # the student's own __str__
        message = f"(its message cannot be read: {type(failed).__name__})"
    return {
        "types": [codec.short(kind.__name__, 80) for kind in type(error).__mro__[:12]],
        "message": message,
        "lines": _frames(trace),
        # it was raised by the call itself, not by a line of the function
        "signature": call and isinstance(error, TypeError) and not getattr(trace, "tb_next", 0),
        "given": getattr(error, "_of_the_grader", None),
    }


class Line(codec.End):
    """Serves the grader: one request after the other, with questions of ours in between."""

    dice: Any = None  # Python's random state after the set-up
    failed = ""  # the set-up, and how

    def __init__(self) -> None:
        super().__init__()
        self.spaces: dict[int, dict[str, Any]] = {}
        self.locked: dict[int, list[FunctionType]] = {}  # by the step of the answer
        self.at = self.calls = 0  # where we are; calls of the student's functions that go on
        self.turn = threading.RLock()
        self.shown = Shown()
        import matplotlib.font_manager  # noqa: F401  what it makes once serves all

        torch.set_num_threads(1)
        compile_later()
        self.shell = _shell(self.shown)
        self.lock = Lock()
        sys.argv = [""]

    def set_up(self, cells: list[list[str]]) -> None:
        for name, source in cells:
            if (error := self.execute(source, [], ours=True)) and not self.failed:
                said = f"{type(error).__name__}: {error}"
                self.failed = f"cell {name!r} of the assignment fails for a submission: {said}"
        self.dice = random.getstate()

    def serve_one(self, order: dict[str, Any], lines: list[int]) -> NoReturn:
        """Go into the sandbox and do what is asked from there, until its end."""
        null = os.open(os.devnull, os.O_RDWR)
        null, *lines = (fcntl.fcntl(number, fcntl.F_DUPFD, 16) for number in (null, *lines))
        for place, number in enumerate((null, null, null, *lines)):
            os.dup2(number, place, inheritable=place < 3)
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        outside = _enter(order["pid"])
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))  # nothing of the machine's stays open
        if self.dice:
            random.setstate(self.dice)  # Python draws another one in each fork
        limits = order["limits"]
        _confine(limits, order["uid"], bytes.fromhex(order["calls"]))
        os.umask(0o077)
        os.environ["HOME"] = order["home"]
        os.makedirs(order["home"], exist_ok=True)
        os.chdir(order["home"])
        self.reading, self.writing = os.fdopen(3, "rb"), os.fdopen(4, "wb")
        self.process = os.getpid()
        bound_memory(limits["memory"])
        self.send(["failed", self.failed] if self.failed else ["ready", outside], [])
        while True:
            self.serve(*self.receive())

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

    def answer(self, *message: Any, **value: Any) -> None:
        """Send this, and the `value` behind it; or why it cannot be sent."""
        writer = codec.Writer(self.handle)
        try:
            packed = [*message, *map(writer.put, value.values())]
            codec.pack(packed, [])
        except BaseException as error:
            packed, writer.raw = ["failed", _error(error)], []
        self.send(packed, writer.raw)

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
                    _, types, said, number = message
                    made = (codec.exception(types) or Exception)(said)
                    made._of_the_grader = number  # type: ignore[attr-defined]
                    raise made
                self.serve(message, reader)

    def execute(self, source: str, locked: list[FunctionType], ours: bool) -> BaseException | None:
        """Run a cell while these functions raise; gives what it raised."""
        files = set(linecache.cache)
        try:
            with self.lock.on(locked):
                result = self.shell.run_cell(source, store_history=False)
            error: BaseException | None = result.error_before_exec or result.error_in_exec
        except BaseException as failed:
            error = failed
        if ours:
            self.lock.cells |= {f for f in linecache.cache if f not in files and "<ipython" in f}
        return error

    def serve(self, message: Any, reader: codec.Reader) -> None:
        kind, *rest = message
        # Each time: code that replaced them must not spoil the student's other answers.
        sys.stdout = sys.stderr = self.shown
        self.run(*rest) if kind == "run" else self.call(reader, *rest)

    def run(self, step: int, source: str, names: list[str], locked: list[list[str]] | None) -> None:
        """A cell; answers with its error, what it showed, and the values of `names`."""
        self.shown.take()
        self.locked[step] = []
        for module, name in locked or ():
            home = self.shell.user_ns if module == "__main__" else vars(sys.modules[module])
            if isinstance(home.get(name), FunctionType):
                self.locked[step].append(home[name])
        error = self.execute(source, self.locked[step], ours=locked is None)
        space, outputs = self.shell.user_ns, self.shown.take()
        self.spaces[step], self.at = dict(space), step
        self.answer("ran", None if error is None else _error(error), outputs)
        for name in names:
            if name in space:
                self.answer("name", name, value=space[name])
        self.send(["end"], [])

    def call(
        self, reader: codec.Reader, step: int, number: int, arguments: Any, named: Any, dice: Any
    ) -> None:
        """A function of the student's, with the names as they were after its cell."""
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
            self.send(["raised", _error(error, call=True)], [])
            error.__traceback__ = None
        else:
            self.answer("value", value=result)
        finally:
            self.calls -= 1


def compile_later() -> None:
    """No compiler of torch's until somebody compiles: an optimizer needs a second to import it."""
    name = "torch._dynamo"
    later = ModuleType(name)

    def real(attribute: str) -> Any:
        if attribute == "__file__":  # who looks through all modules asks for it
            raise AttributeError(attribute)
        if sys.modules[name] is later:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    vars(later).update(__getattr__=real, graph_break=lambda *_: None, disable=lambda f, *_, **__: f)
    if name not in sys.modules:
        torch._dynamo = sys.modules[name] = later


@contextmanager
def _home(fonts: list[str]) -> Iterator[None]:
    """A home for a while; in it is matplotlib's list of fonts, which takes seconds to make."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "MPLCONFIGDIR": f"{home}/matplotlib"}
        os.makedirs(f"{home}/matplotlib")
        for file in fonts:
            shutil.copy(file, f"{home}/matplotlib")
        yield
    os.environ |= before


def main(control: socket.socket, fonts: list[str]) -> None:
    """Load what all submissions need. Then, for each order that comes, start a copy: one that runs
    a lesson's set-up and is itself to be copied, or the process of a submission."""
    gc.disable()  # what is imported stays: nobody need look through it, now or later
    with _home(fonts):
        line = Line()
    while True:
        LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: not without the grader
        LIBC.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: who loses its parent is ours,
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # and nobody need be collected
        gc.freeze()
        gc.enable()
        while True:
            order, given, *_ = socket.recv_fds(control, 1 << 16, 2)
            if not order:
                return
            if os.fork() == 0:
                break
            for number in given:
                os.close(number)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if order != b"set-up":
            line.serve_one(json.loads(order), given)
        control = socket.socket(fileno=given[0])
        with open(given[1]) as cells, _home([]):
            line.set_up(json.load(cells))


if __name__ == "__main__":
    _here = sys.modules["__main__"]  # the shell puts the student's module in its place
    try:
        main(socket.socket(fileno=int(sys.argv[1])), json.load(sys.stdin))
    finally:
        os._exit(1)  # also each copy
