"""Judges a submission in a forked process, which can be ended whatever happens in it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import psutil

from tfviz_course.inside import LIBC, bound_memory
from tfviz_course.judge import LIMITS, Judged, Prepared, Verdict, failed, judge
from tfviz_course.sandbox import PATIENCE, Limits, Unavailable, end_all


class Child:
    """The process that judges one submission; `line` has something to read when there is news.
    `seconds` on the clock are the last resort (None: many times what the limits add up to)."""

    def __init__(
        self,
        prepared: Prepared,
        answers: Mapping[str, str],
        *,
        limits: Limits = LIMITS,
        seconds: float | None = None,
        **who: Any,
    ) -> None:
        starts = (len(prepared.tasks) + 1) * limits.start_seconds
        seconds = seconds or PATIENCE * (limits.seconds + starts)
        self.graded = prepared.graded()
        self.found: dict[str, Verdict] = {}  # so far
        self.last: Any = None  # what it said last
        self.until = time.monotonic() + seconds
        fork = multiprocessing.get_context("fork")
        self.line, theirs = fork.Pipe(duplex=False)
        given = (theirs, limits, prepared, answers)
        self.process = fork.Process(target=_judge, args=given, kwargs=who, daemon=True)
        try:
            # Python 3.12 warns where threads are around
            quiet = warnings.catch_warnings(action="ignore", category=DeprecationWarning)
            with quiet, _interrupts_later():
                self.process.start()
        except KeyboardInterrupt:
            self.end()
            raise
        theirs.close()

    def done(self) -> bool:
        """Whether it came to its end, or its time did; takes in what it says."""
        try:
            while self.line.poll():
                self.last = self.line.recv()
                if isinstance(self.last, tuple):
                    self.found[self.last[0]] = self.last[1]
        except (EOFError, OSError):
            return True
        return time.monotonic() > self.until

    def result(self) -> Judged:
        """What it found, once it is done. When it died or was ended, the verdicts that it had are
        kept, the others fail, with a remark.

        Raises Unavailable as `judge` does, and RuntimeError for a mistake of the judge's own.
        """
        late = time.monotonic() > self.until
        self.end()
        if isinstance(self.last, Exception):
            raise self.last
        if isinstance(self.last, Judged):
            return self.last
        why = "judging it took too long: the machine was busy"
        why = why if late else "the process that judges it died"
        missing = failed(f"Not judged: {why}.")
        return Judged(dict.fromkeys(self.graded, missing) | self.found, {}, (why,))

    def end(self) -> None:
        """Kill the process and all below it, and collect it."""
        if self.line.closed:
            return
        self.line.close()
        with contextlib.suppress(psutil.NoSuchProcess):
            end_all(psutil.Process(self.process.pid))
        self.process.join()


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits for the end: an exception in a hook of the fork would be printed and lost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets it, and only it may say what is done then
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda *signalled: came.append(signalled))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


def _judge(line: Connection[Any, Any], limits: Limits, *given: Any, **who: Any) -> None:
    """What the forked process does: says each verdict, and all of them or an error at the end."""
    os.setpgrp()  # Ctrl-C is for the parent, which then ends this
    LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: nor without it
    seconds = int(2 * limits.seconds + limits.start_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    bound_memory(limits.memory, for_good=False)  # a student's process sets its own
    try:
        line.send(judge(*given, limits=limits, report=lambda *n: line.send(n), **who))
    except Unavailable as error:
        line.send(error)
    except BaseException:
        said = traceback.format_exc()
        line.send(RuntimeError(f"the judge itself failed, please report this:\n{said}"))
