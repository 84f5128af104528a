"""The line to the process in which a student's code runs, from the grader's side.

Nothing that comes is trusted: it is bounded, and it is data. The grader sends

    run   step source names locked     -> ran error … outputs, name name value …, end
    call  step function arguments …    -> value value | raised error | failed error

and while a call lasts the student's side may ask back (ask function arguments … -> value | error).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from nbformat.v4 import new_output

from tfviz_course import codec
from tfviz_course.codec import Remote
from tfviz_course.rebuild import picture
from tfviz_course.sandbox import Cells, Deadline, Limits, Sandbox, Stopped, Unavailable

TEXT = 4_000  # characters of a message
PICTURES = 1_000_000  # characters of all pictures of a cell, in base64
Locked = list[list[str]] | None  # [module, name] of each function that an answer may not call


class StudentError(Exception):
    """What the student's code raised, where its type has no place in the grader."""


class Session(codec.End):
    """One process of a student's and the line to it."""

    def __init__(self, limits: Limits, cells: Cells = ()) -> None:
        super().__init__()
        self.limits = limits
        self.asked = 0  # calls of functions of ours, in the cell of tests at hand
        self.raised: dict[int, Exception] = {}
        self.cell: Deadline | None = None
        self.line = Sandbox(limits, cells)
        try:
            (word, said), _ = self.line.receive(Deadline(limits.start_seconds, self.line))
        except Stopped as stopped:
            word, said = "", f"The process for a submission does not start: {stopped}"
        if word != "ready":
            self.line.close()
            raise Unavailable(said)
        self.line.started(said)

    def fresh(self, seconds: float) -> None:
        """A new cell of tests begins, whose calls may take this long in all; what an older one
        handed over is out of reach."""
        self.own, self.raised, self.asked = {}, {}, 0
        self.cell = Deadline(seconds, self.line)

    def run(
        self, step: int, source: str, names: tuple[str, ...], seconds: float, locked: Locked = None
    ) -> Ran:
        """Execute a cell there; an answer's has `locked`, what it may not call. Raises Stopped."""
        end, ran = Deadline(seconds, self.line), Ran()
        self.step = step
        self.line.send(["run", step, source, list(names), locked], [], end)
        for _ in range(len(names) + 2):
            message, raw = self.line.receive(end)
            match message:
                case ["end"]:
                    return ran
                case ["ran", None | dict() as error, list(outputs)]:
                    ran.error = None if error is None else self._error(error)
                    ran.outputs = clean(outputs, self.limits.output)
                case ["name", str(name), value] if name in names:
                    ran.values[name] = self._read(value, raw)
                case ["failed", dict(error)]:
                    ran.error = ran.error or self._error(error)
                case _:
                    break
        raise self.line.nonsense("an answer to another question")

    def _read(self, value: Any, raw: memoryview) -> Any:
        """A value of the student's, or the StudentError that it is none."""
        reader = codec.Reader(raw, self.known)
        try:
            found = reader.get(value)
            reader.done()
            return found
        except codec.CodecError as error:
            return StudentError(f"a value that cannot be read: {error}")

    def ask(self, remote: Remote, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a student's function. Raises what it raises, and Stopped."""
        writer = codec.Writer(self.handle)
        # what the test has seeded, is seeded there
        packed = [writer.put(part) for part in (list(arguments), named, torch.get_rng_state())]
        torch.rand(())  # the next call goes on from another state, unless the test seeds again
        self.step = remote._step
        end = Deadline(self.limits.call_seconds, self.line, self.cell)
        self.line.send(["call", remote._step, remote._number, *packed], writer.raw, end)
        while True:
            reply, raw = self.line.receive(end)
            match reply:
                case ["value", value]:
                    found = self._read(value, raw)
                    if isinstance(found, StudentError):
                        raise found
                    return found
                case ["raised" | "failed", dict(error)]:
                    raise self._error(error)
                case ["ask", int(number), _, _]:
                    self._answer(number, reply[2:], raw, end)
                case _:
                    raise self.line.nonsense("an answer to another question")

    def _answer(self, number: int, parts: list[Any], raw: memoryview, end: Deadline) -> None:
        """Call one of our functions for the student's code; only one that the test handed over."""
        self.asked += 1
        if self.asked > self.limits.callbacks:
            said = f"The answer calls back more than {self.limits.callbacks:,} times."
            raise self.line.stop(said, "called back too often")
        writer = codec.Writer(self.handle)
        reader = codec.Reader(raw, self.known)
        try:
            arguments, named = map(reader.get, parts)
            function = self.own.get(number)
            if function is None or type(arguments) is not list or type(named) is not dict:
                raise codec.CodecError("no such function")
            message = ["value", writer.put(function(*arguments, **named))]
        except Exception as error:
            self.raised[self.asked] = error
            writer = codec.Writer(self.handle)
            types = [kind.__name__ for kind in type(error).__mro__]
            message = ["error", types, codec.short(error), self.asked]
        self.line.send(message, writer.raw, end)

    def check_memory(self, error: BaseException | None) -> None:
        """Raises Stopped if the student's code raised MemoryError: whoever has filled the memory
        still holds it, and later answers would have none."""
        if getattr(about(error), "kind", "") == "MemoryError":
            raise self.line.full()

    def _error(self, error: dict[str, Any]) -> Exception:
        """The exception that the student's code raised, as one of Python's own."""
        own = error.get("given")
        if type(own) is int and own in self.raised:
            return self.raised[own]  # ours: it went through the student's code and came back
        message = codec.short(error.get("message", ""), TEXT)
        found = [error.get(name) for name in ("types", "lines")]
        parts = [part[:12] if type(part) is list else [] for part in found]
        types, lines = ([codec.short(p, 200) for p in part if type(p) is str] for part in parts)
        first = types[0] if types else "Exception"
        if kind := codec.exception(types):
            made = kind(message) if message else kind()
        else:
            made = StudentError(f"{first}: {message}" if message else first)
        theirs = Theirs(first, message, tuple(lines), error.get("signature") is True)
        made.tfviz_student = theirs  # type: ignore[attr-defined]
        return made


@dataclass
class Ran:
    """What executing a cell of the student's gave."""

    error: Exception | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


class Theirs(NamedTuple):
    """About an exception of the student's."""

    kind: str
    message: str
    lines: tuple[str, ...]
    signature: bool


def about(error: BaseException | None) -> Theirs | None:
    """What is known of an exception of the student's; None for another."""
    return getattr(error, "tfviz_student", None)


def clean(outputs: list[Any], most: int) -> list[dict[str, Any]]:
    """What a cell showed, as outputs of a notebook, whatever came: text and pictures, nothing that
    a browser executes; `most` characters of text in all. This is the one place that bounds them."""
    found: list[dict[str, Any]] = []
    room = PICTURES
    for output in outputs[:200]:
        match output:
            case ["picture", str(said)] if len(said) <= room and (png := picture(said)):
                room -= len(png)
                found.append(new_output("display_data", {"image/png": png}))
            case ["text" | "error" as kind, str(said)]:
                text = codec.short(said, most)
                most -= len(text)
                error = new_output("error", ename="error", evalue="", traceback=[text])
                found.append(error if kind == "error" else new_output("stream", text=text))
        if most <= 1:
            found.append(new_output("stream", text="… more was shown than is kept\n"))
            break
    return found


def say(error: Exception | None) -> str:
    """An exception of the student's in words, with the lines it came through."""
    theirs = about(error)
    if theirs is None:
        return f"{type(error).__name__}: {error}"
    said = f"{theirs.kind}: {theirs.message}" if theirs.message else theirs.kind
    return "\n".join([said, *(f"  {line}" for line in theirs.lines)])
