"""Judges a submission in a forked process, which can be ended whatever happens in it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import psutil

from tfviz_course.judge import LIMITS, Judged, Prepared, Verdict, failed, judge
from tfviz_course.sandbox import PATIENCE, Limits, Unavailable, limit_here


def judge_in_child(
    prepared: Prepared,
    answers: Mapping[str, str],
    *,
    student: str,
    secret: str,
    assignment: str,
    limits: Limits = LIMITS,
    sandboxed: bool = True,
    seconds: float | None = None,
) -> Judged:
    """`judge` in a forked process, ended after `seconds` on the clock, the last resort (None: many
    times what the limits add up to).

    When it dies or is ended, the verdicts that it had are kept, the others fail, with a remark.
    Raises Unavailable as `judge` does.
    """
    restarts = len(prepared.tasks) + 1
    if seconds is None:
        seconds = PATIENCE * (limits.seconds + restarts * limits.start_seconds)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(prepared, answers, student, secret, assignment, limits, sandboxed, writing)
    os.close(writing)
    try:
        lines, whole = _collect(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        _end(child)
    kept: dict[str, Verdict] = {}
    for line in lines:
        kind, *rest = line
        if kind == "judged":
            return Judged.from_json(rest[0])
        if kind == "unavailable":
            raise Unavailable(rest[0])
        if kind == "failed":
            raise RuntimeError(f"the judge itself failed, please report this:\n{rest[0]}")
        kept[rest[0]] = Verdict(rest[1]["passed"], rest[1]["message"], tuple(rest[1]["outputs"]))
    why = "the process that judges it died" if whole else "judging it took too long and was ended"
    for name in prepared.graded():
        if name not in kept:
            kept[name] = failed(f"Not judged: {why}.")
    return Judged(kept, {}, (why,))


def _child(
    prepared: Prepared,
    answers: Mapping[str, str],
    student: str,
    secret: str,
    assignment: str,
    limits: Limits,
    sandboxed: bool,
    writing: int,
) -> None:
    """What the forked process does; it never returns."""
    status = 1
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as out:

            def say(*line: Any) -> None:
                out.write(json.dumps(line) + "\n")
                out.flush()

            try:
                limit_here(limits.memory, 2 * limits.seconds + limits.start_seconds)
                judged = judge(
                    prepared,
                    answers,
                    student=student,
                    secret=secret,
                    assignment=assignment,
                    limits=limits,
                    sandboxed=sandboxed,
                    report=lambda name, verdict: say("verdict", name, asdict(verdict)),
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


def _collect(reading: int, end: float) -> tuple[list[Any], bool]:
    """The lines that the child wrote, and whether it came to its end in time."""
    text = b""
    whole = False
    while (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], min(left, 1.0))[0]:
            part = os.read(reading, 1 << 20)
            if not part:
                whole = True
                break
            text += part
    lines = []
    for line in text.split(b"\n"):
        with contextlib.suppress(ValueError):
            lines.append(json.loads(line))
    return lines, whole


def _end(child: int) -> None:
    """Kill the child and all below it, and collect it."""
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(child)
        top.suspend()  # what its children leave behind comes to it, and cannot slip away
        for _ in range(100):
            alive = [p for p in top.children(recursive=True) if _alive(p)]
            if not alive:
                break
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.02)
        top.kill()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
