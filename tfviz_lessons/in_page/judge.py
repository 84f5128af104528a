"""Runs an answer and its checks in the page, in a Python that a web worker holds.

Only the standard library is there. `start` makes `tfviz.checks` of its own source, with `lists` in
the place of torch; `judged` says how an answer did, in the words of a notebook.
"""

from __future__ import annotations

import io
import linecache
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

ANSWER, CHECKS = "your answer", "the checks"
ABSENT = {"torch", "numpy", "tfviz", "scipy", "matplotlib", "pandas", "nn", "F", "np", "plt"}
NEED_NOTHING = (
    "In the page there is Python with its standard library, and no torch, NumPy or tfviz. "
    "This exercise needs none of them; in the notebook you have them all."
)
NO_ANSWER = "○ No answer yet: write your lines in the place of `raise NotImplementedError`."
MOST = 10_000  # letters that an answer may print

_checks: Any = None
_masks: list[dict[str, Any]] = []


class _Absent(MetaPathFinder):
    """Says what is not there, in place of Python's own words."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}. {NEED_NOTHING}", name=name)


class _Printed(io.StringIO):
    """What an answer prints, up to MOST letters."""

    def write(self, text: str) -> int:
        left = MOST - self.tell()
        if left <= 0:
            return len(text)
        more = "" if len(text) < left else f"\n… (more than {MOST:,} letters are not shown)\n"
        super().write(text[:left] + more)
        return len(text)


def start(checks: str, lists: str) -> None:
    """Make `tfviz.checks` of these two sources."""
    global _checks
    torch, package = ModuleType("torch"), ModuleType("tfviz")
    exec(compile(lists, "lists.py", "exec"), torch.__dict__)
    package.__path__ = []
    _checks = package.checks = ModuleType("tfviz.checks")  # type: ignore[attr-defined]
    _checks.__file__ = "tfviz/checks.py"
    sys.modules |= {"torch": torch, "tfviz": package, "tfviz.checks": _checks}
    exec(compile(checks, _checks.__file__, "exec"), _checks.__dict__)
    del sys.modules["torch"]
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.append(_Absent())
    _checks.expect_mask = _seen(_checks.expect_mask)
    _checks._compare = lambda *_, pairs=False: pairs and bool(_masks)


def _seen(expect_mask: Callable[..., None]) -> Callable[..., None]:
    """The check of a mask, which also keeps both masks for the page to draw."""

    def expect(yours: Any, expected: Any, what: str = "your mask") -> None:
        _masks.clear()
        try:
            mine, target = map(_checks.torch.as_tensor, (yours, expected))
        except (TypeError, ValueError, RuntimeError):
            mine = target = None  # the check says what it is
        if mine is not None and mine.ndim == 2 and mine.shape == target.shape:
            rows, target_rows = mine.bool().tolist(), target.bool().tolist()
            _masks.append({"what": what, "target": target_rows, "yours": rows})
        expect_mask(yours, expected, what)

    return expect


def judged(answer: str, given: str, tests: str, label: str) -> dict[str, Any]:
    """How the answer did: verdict, text, and the masks to draw.

    The verdict is passed, failed (a check does not hold), empty (the stub) or error.
    """
    _masks.clear()
    _checks._said = False
    printed = _Printed()
    with redirect_stdout(printed), redirect_stderr(printed):
        verdict, text = _run(answer, given, tests, label)
    before = printed.getvalue()
    if before and text and not before.endswith("\n"):
        before += "\n"
    return {"verdict": verdict, "text": (before + text).rstrip("\n"), "masks": list(_masks)}


def _run(answer: str, given: str, tests: str, label: str) -> tuple[str, str]:
    space: dict[str, Any] = {"__name__": "__main__"}
    try:
        for name, code in (("given", given), (ANSWER, answer), (CHECKS, tests)):
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
            exec(compile(code, name, "exec"), space)
    except _checks.CheckFailed as failed:
        return "failed", f"✗ {failed}"
    except NotImplementedError as empty:
        return ("error", _place(empty)) if str(empty) else ("empty", NO_ANSWER)
    except BaseException as error:  # also SystemExit: the worker stays
        return "error", _place(error)
    if not _checks._said:
        _checks.passed(f"all checks of {label} hold")
    return "passed", ""


def _place(error: BaseException) -> str:
    """An error in one line, with the line of the answer that raised it."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == ANSWER:
        code = (error.text or "").strip("\n")
        mark = " " * max(0, (error.offset or 1) - 1) + "^"
        said = f"{type(error).__name__}: {error.msg}"
        return f"✗ Line {error.lineno} of your answer: {said}.\n  {code}\n  {mark}"
    named = error.name if isinstance(error, NameError | ImportError) else None
    if named in ABSENT and NEED_NOTHING not in said:
        said += f". {NEED_NOTHING}"
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename == ANSWER]
    if mine:
        return f"✗ Line {mine[-1].lineno} of your answer: {said}\n  {mine[-1].line}"
    asked = [frame for frame in frames if frame.filename == CHECKS]
    if asked:
        return f"✗ A check stops with {said}\n  {asked[-1].line}"
    return f"✗ {said}"
