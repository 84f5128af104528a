"""Judges a submission in a forked process, which can be ended whatever happens in it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from types import FrameType
from typing import Any

import psutil

from tfviz_course.judge import LIMITS, Judged, Prepared, Verdict, failed, judge
from tfviz_course.sandbox import GONE, PATIENCE, Limits, Unavailable, limit_here


class Child:
    """The process that judges one submission. It can be waited for as for a pipe, by its `fileno`.

    `seconds` on the clock are the last resort (None: many times what the limits add up to).
    """

    def __init__(
        self,
        prepared: Prepared,
        answers: Mapping[str, str],
        *,
        limits: Limits = LIMITS,
        seconds: float | None = None,
        **who: Any,
    ) -> None:
        if seconds is None:
            starts = (len(prepared.tasks) + 1) * limits.start_seconds
            seconds = PATIENCE * (limits.seconds + starts)
        self.graded = prepared.graded()
        self.text = b""
        self.until = time.monotonic() + seconds
        self.reading, writing = os.pipe()
        with warnings.catch_warnings():  # Python 3.12 warns where threads are around
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process = os.fork()
        if self.process == 0:
            os.close(self.reading)
            _judge(prepared, answers, limits, writing, who)
        os.close(writing)

    def fileno(self) -> int:
        """Has something to read when there is news."""
        return self.reading

    def done(self, wait: float = 0.0) -> bool:
        """Whether it came to its end, or its time did; takes in what it says, for so long."""
        if self.reading < 0 or time.monotonic() > self.until:
            return True
        if not select.select([self.reading], [], [], wait)[0]:
            return False
        part = os.read(self.reading, 1 << 20)
        self.text += part
        return not part

    def result(self) -> Judged:
        """What it found, once it is done. When it died or was ended, the verdicts that it had are
        kept, the others fail, with a remark.

        Raises Unavailable as `judge` does, and RuntimeError for a mistake of the judge's own.
        """
        whole = time.monotonic() <= self.until
        self.end()
        kept: dict[str, Verdict] = {}
        for line in self.text.split(b"\n"):
            with contextlib.suppress(ValueError):
                kind, *rest = json.loads(line)
                if kind == "judged":
                    return Judged.from_json(rest[0])
                if kind == "unavailable":
                    raise Unavailable(rest[0])
                if kind == "failed":
                    raise RuntimeError(f"the judge itself failed, please report this:\n{rest[0]}")
                found = rest[1]
                kept[rest[0]] = Verdict(found["passed"], found["message"], tuple(found["outputs"]))
        why = "the process that judges it died" if whole else "judging it took too long"
        for name in self.graded:
            kept.setdefault(name, failed(f"Not judged: {why}."))
        return Judged(kept, {}, (why,))

    def end(self) -> None:
        """Kill the process and all below it, and collect it."""
        if self.reading < 0:
            return
        os.close(self.reading)
        self.reading = -1
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self.process)
            top.suspend()  # what its children leave behind comes to it, and cannot slip away
            _kill_below(top)
            top.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.process, 0)


def judge_in_child(prepared: Prepared, answers: Mapping[str, str], **options: Any) -> Judged:
    """`judge` in a process of its own, with the options of `Child` and of `judge`."""
    child = Child(prepared, answers, **options)
    try:
        while not child.done(wait=1.0):
            pass
        return child.result()
    finally:
        child.end()


def _judge(
    prepared: Prepared,
    answers: Mapping[str, str],
    limits: Limits,
    writing: int,
    who: Mapping[str, Any],
) -> None:
    """What the forked process does; it never returns."""
    status = 1
    try:
        os.setpgrp()  # Ctrl-C is for the parent, which then ends this
        signal.signal(signal.SIGTERM, _ended)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG: nor without it
        with os.fdopen(writing, "w", encoding="utf-8") as out:

            def say(*line: Any) -> None:
                out.write(json.dumps(line) + "\n")
                out.flush()

            try:
                limit_here(limits.memory, 2 * limits.seconds + limits.start_seconds)
                judged = judge(
                    prepared,
                    answers,
                    limits=limits,
                    report=lambda name, verdict: say("verdict", name, asdict(verdict)),
                    **who,
                )
            except Unavailable as error:
                say("unavailable", str(error))
            except BaseException:
                say("failed", traceback.format_exc())
            else:
                say("judged", judged.to_json())
        status = 0
    finally:
        os._exit(status)


def _ended(number: int, frame: FrameType | None) -> None:
    _kill_below(psutil.Process())
    os._exit(1)


def _kill_below(top: psutil.Process) -> None:
    """Kill all that this process has started, and wait until it is gone: what is killed first
    leaves its own children to somebody else, so whoever was seen once is looked after."""
    seen: dict[int, psutil.Process] = {}
    end = time.monotonic() + GONE
    while time.monotonic() < end:
        seen |= {process.pid: process for process in top.children(recursive=True)}
        alive = [process for process in seen.values() if _alive(process)]
        if not alive:
            return
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
