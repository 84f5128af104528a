"""Exercises that plain Python can answer: which they are, and that the page judges as a notebook.

Here `judge` runs as in the page, in a Python without torch. tests/browser/test_try.py runs it in a
browser.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tfviz.checks
from tfviz_lessons import in_page
from tfviz_lessons.lesson import Exercise, Lesson, parse, read

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "tfviz_lessons/**",
)

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tfviz_lessons" / "in_page"


@cache
def lessons() -> list[Lesson]:
    return [read(path) for path in sorted((ROOT / "chapters").glob("*/*.md"))]


@cache
def plain() -> dict[str, tuple[Lesson, Exercise]]:
    """The exercises that are tried in the page, by their labels."""
    return {
        exercise.label: (lesson, exercise)
        for lesson in lessons()
        for exercise in lesson.exercises
        if in_page.given(lesson, exercise) is not None
    }


def answers(exercise: Exercise) -> dict[str, str]:
    """The stub, the solution and all that is wrong."""
    numbers = f"{exercise.numbers}\n\n"
    wrong = {f"wrong {n}": numbers + wrong.source for n, wrong in enumerate(exercise.wrong)}
    return {"stub": exercise.stub, "solution": exercise.solved} | wrong


def in_a_notebook(given: str, answer: str, tests: str) -> tuple[str, str]:
    """Verdict and words of the checks with torch."""
    printed = io.StringIO()
    space: dict[str, Any] = {"__name__": "__main__"}
    try:
        with redirect_stdout(printed):
            for code in (given, answer, tests):
                exec(code, space)
    except tfviz.checks.CheckFailed as failed:
        return "failed", f"{printed.getvalue()}✗ {failed}"
    except NotImplementedError:
        return "empty", ""
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "passed", printed.getvalue().strip()


DRIVER = """
import json, sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
judge, checks, lists, tasks = json.load(sys.stdin)
exec(judge)
start(checks, lists)
print(json.dumps([judged(*task) for task in tasks]))
"""


def in_the_page(tasks: list[tuple[str, str, str, str]]) -> list[dict[str, Any]]:
    """What `judge` says in a Python that has only its standard library."""
    sources = [(HERE / name).read_text("utf8") for name in ("judge.py", "lists.py")]
    told = [sources[0], in_page.CHECKS.read_text("utf8"), sources[1], tasks]
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", DRIVER],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def one(answer: str, tests: str = "f()", given: str = "") -> dict[str, Any]:
    (found,) = in_the_page([(answer, given, tests, "ex-one")])
    return found


# --- which ---------------------------------------------------------------------------------------


def test_a_seventh_of_the_exercises_needs_no_torch() -> None:
    assert len(plain()) >= 28
    every = {exercise.label for lesson in lessons() for exercise in lesson.exercises}
    assert set(plain()) < every


LESSON = """\
---
kernelspec: {{name: python3, display_name: Python 3}}
---
# One

```{{code-cell}} ipython3
{given}
```

```{{exercise-start}}
:label: ex-half
```
**Half.** Write `half(x)`.
```{{exercise-end}}
```

```{{hint}} Hint
Two halves are one.
```

```{{code-cell}} ipython3
:role: solution
def half(x):
    ### BEGIN SOLUTION
    return {solution}
    ### END SOLUTION
```

```{{code-cell}} ipython3
:role: tests
{tests}
### BEGIN HIDDEN TESTS
import torch
### END HIDDEN TESTS
```

```{{code-cell}} ipython3
:role: wrong
:why: it is the double
def half(x):
    return 2 * x
```
"""


@pytest.mark.parametrize(
    ("given", "solution", "tests", "expected"),
    [
        ("import math, torch", "x / 2", "half(2)", "import math"),
        ("import torch\nimport math as m", "m.fsum([x]) / 2", "half(2)", "import math as m"),
        ("import torch", "x / 2", "from tfviz.checks import expect_close, passed", ""),
        ("import torch", "torch.tensor(x) / 2", "half(2)", None),
        ("import torch", "x / 2", "half(torch.tensor(2))", None),
        ("two = 2", "x / two", "half(2)", None),
        ("import math\nmath = None", "math", "half(2)", None),
        ("import urllib.request", "urllib.request", "half(2)", None),
        ("", "x / 2", "from tfviz.checks import expect_rows_sum_to_one", None),
        ("", "x / 2", "from tfviz import patterns", None),
        ("", "x / 2", "import numpy", None),
    ],
)
def test_it_is_found_by_what_solution_and_checks_use(
    given: str, solution: str, tests: str, expected: str | None
) -> None:
    lesson = parse(LESSON.format(given=given, solution=solution, tests=tests), "one.md")
    (exercise,) = lesson.exercises
    assert in_page.given(lesson, exercise) == expected
    box = in_page.box(lesson, exercise)
    assert bool(box) == (expected is not None)
    if box:
        told = json.loads(box.split(">", 2)[2].removesuffix("</script></div>"))
        assert told["given"] == expected
        assert "NotImplementedError" in told["stub"]
        assert "HIDDEN" not in told["tests"] and "import torch" not in told["tests"]


def test_a_text_in_the_page_ends_no_script() -> None:
    lesson = parse(LESSON.format(given="", solution="x", tests="half('</script>')"), "one.md")
    assert in_page.box(lesson, lesson.exercises[0]).count("</script>") == 1


# --- the same verdicts, the same words -----------------------------------------------------------


def test_every_answer_has_the_verdict_and_the_words_of_a_notebook() -> None:
    """Stubs, solutions and known-wrong answers, which the visible checks refuse, all of them."""
    cases = [
        (label, name, answer, in_page.given(lesson, exercise) or "", exercise.visible_tests)
        for label, (lesson, exercise) in plain().items()
        for name, answer in answers(exercise).items()
    ]
    found = in_the_page([(answer, given, tests, label) for label, _, answer, given, tests in cases])
    for (label, name, answer, given, tests), got in zip(cases, found, strict=True):
        where = f"{label}, {name}: {got}"
        verdict, words = in_a_notebook(given, answer, tests)
        assert got["verdict"] == verdict, where
        if verdict == "passed":
            assert got["text"].startswith(words or "✓"), where
        if verdict == "failed":  # a mask that is drawn is not made of characters too
            assert got["text"] == (words.split("\n")[0] if got["masks"] else words), where
        if verdict == "error":
            assert words in got["text"], where
        assert verdict == {"stub": "empty", "solution": "passed"}.get(name, "failed"), where


VALUES = (
    "1", "0.1", "1.00001", "True", "None", "'one'", "[]", "[1, 2]", "[1, 2.5]", "[True, False]",
    "[0.1234565, 7.25]", "[[1, 2], [3, 4]]", "[[1, 3], [2, 4]]", "[[1], [2, 3]]", "(1, 2)",
    "{1, 2}",
    "range(2)", "[float('nan'), 2]", "[float('inf'), 2]", "[-float('inf'), 2]", "float('inf')",
    "[1e60, 2]", "2**70", "[2**70]", "{'a': 1}", "[[[1, 2], [3, 4]]]", "[[]]", "b'ab'",
    "list(range(30))", "[0.5] * 12",
)  # fmt: skip
MASKS = (
    "[[1, 0], [1, 1]]", "[[True, False], [True, True]]", "[[True, True], [False, True]]",
    "[[1.0, 0], [0, 1]]", "[[2, 0], [1, 1]]", "[[1, 0]]", "[1, 0]", "'mask'", "[[[1, 0], [1, 1]]]",
    "[[True] * 25] * 25", "[[i >= j for j in range(25)] for i in range(25)]", "None",
)  # fmt: skip


def said(calls: list[str]) -> list[str]:
    """What each call says with torch, and an empty text if nothing."""
    words = []
    for call in calls:
        try:
            exec(f"from tfviz.checks import *\n{call}", {})
            words.append("")
        except tfviz.checks.CheckFailed as failed:
            words.append(f"✗ {failed}")
    return words


def test_checks_say_the_same_with_lists_and_with_torch() -> None:
    close = [x for x in VALUES if not said([f"expect_close({x}, {x})"])[0]]
    calls = [f"expect_close({x}, {y}, 'it')" for x in VALUES for y in close]
    calls += [f"expect_equal({x}, {y}, 'it')" for x in VALUES for y in VALUES]
    calls += [f"expect_shape({x}, {shape}, 'it')" for x in VALUES for shape in ((2,), (2, 2))]
    found = in_the_page([("", "", f"from tfviz.checks import *\n{c}", "ex") for c in calls])
    for call, got, words in zip(calls, found, said(calls), strict=True):
        assert got["verdict"] in ("passed", "failed"), (call, got)
        assert got["text"] == (words or "✓ all checks of ex hold"), call


def test_masks_are_compared_as_with_torch_and_handed_to_the_page() -> None:
    targets = [x for x in MASKS if not said([f"expect_mask({x}, {x})"])[0]]
    calls = [f"expect_mask({x}, {y}, 'it')" for x in MASKS for y in targets]
    found = in_the_page([("", "", f"from tfviz.checks import *\n{c}", "ex") for c in calls])
    drawn = 0
    for call, got, words in zip(calls, found, said(calls), strict=True):
        if got["masks"]:  # in the page they are drawn, as in a notebook, not made of characters
            words = words.split("\n")[0]
            drawn += 1
        assert got["text"] == (words or "✓ all checks of ex hold"), call
    assert drawn > 20
    target, yours = [[1, 0], [1, 1]], [[1, 1], [0, 1]]
    (mask,) = one("", f"from tfviz.checks import *\nexpect_mask({yours}, {target}, 'it')")["masks"]
    assert mask == {"what": "it", "target": target, "yours": yours}


# --- what else an answer may do ------------------------------------------------------------------


def test_an_error_names_the_line_of_the_answer() -> None:
    found = one("def f():\n    return 1 / 0\n")
    assert found["verdict"] == "error"
    assert (
        found["text"]
        == "✗ Line 2 of your answer: ZeroDivisionError: division by zero\n  return 1 / 0"
    )


def test_a_syntax_error_names_line_and_place() -> None:
    found = one("def f():\n    return (1,\n")
    assert found["verdict"] == "error"
    assert found["text"].startswith("✗ Line 2 of your answer: SyntaxError: '(' was never closed.")
    assert found["text"].split("\n")[1:] == ["      return (1,", "             ^"]
    assert "Line 1 of your answer: IndentationError" in one(" x = 1")["text"]


def test_an_error_of_a_check_names_the_check() -> None:
    found = one("def f(): return 'a'", "f() + 1")
    assert found["text"].startswith("✗ A check stops with TypeError: ")
    assert found["text"].endswith("\n  f() + 1")


@pytest.mark.parametrize(
    "answer",
    [
        "import torch",
        "import numpy as np",
        "from tfviz import patterns",
        "from tfviz.patterns import strided",
        "def f(): return torch.tensor(1)",
    ],
)
def test_what_is_not_in_the_page_is_said(answer: str) -> None:
    found = one(answer)
    assert found["verdict"] == "error"
    assert "Line 1 of your answer: " in found["text"]
    assert "no torch, NumPy or tfviz" in found["text"]


@pytest.mark.parametrize("answer", ["raise SystemExit", "def f(): exit()", "def f(): return f()"])
def test_nothing_that_an_answer_raises_ends_the_judge(answer: str) -> None:
    tasks = [(answer, "", "f()", "ex"), ("def f(): return 1", "", "f()", "ex")]
    assert [got["verdict"] for got in in_the_page(tasks)] == ["error", "passed"]


def test_what_is_printed_is_shown_and_ends_somewhere() -> None:
    found = one("def f(): print('here')")
    assert found["text"] == "here\n✓ all checks of ex-one hold"
    long = one("def f():\n    for n in range(10000): print('many words')")["text"]
    assert len(long) < 10_200
    assert "more than 10,000 letters are not shown" in long


def test_each_try_begins_anew() -> None:
    check = "from tfviz.checks import passed\npassed('so it is')"
    tasks = [("x = 1", "", check, "ex"), ("", "", "x", "ex"), ("", "", "", "ex")]
    first, second, third = in_the_page(tasks)
    assert first["text"] == "✓ so it is"
    assert "NameError" in second["text"]
    assert third["text"] == "✓ all checks of ex hold"


# --- the file that the site has ------------------------------------------------------------------


def test_the_site_has_python_below_six_megabytes(tmp_path: Path) -> None:
    worker = ROOT / "book" / "assets" / "js" / "try-worker.js"
    file = tmp_path / "python.js"
    in_page.write_python(ROOT / "node_modules", worker, file)
    text = file.read_text("utf8")
    assert len(gzip.compress(text.encode(), 6)) < 5_300_000
    assert text.startswith("/*! Python in the page")
    assert "Mozilla Public License 2.0" in text[:600]
    made = file.stat().st_mtime_ns
    in_page.write_python(ROOT / "node_modules", worker, file)
    assert file.stat().st_mtime_ns == made
    other = tmp_path / "worker.js"
    other.write_text("// another")
    in_page.write_python(ROOT / "node_modules", other, file)
    assert "// another" in file.read_text("utf8")
