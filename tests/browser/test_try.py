"""Exercises tried in the page: Python in a real browser, from a server and from a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import exemplars
import patience
import pytest
from book.test_in_page import answers, in_a_notebook, plain
from browser.explorer_site import ASSETS, served

from tfviz_lessons import in_page
from tfviz_lessons.lesson import Lesson, parse

RESTS_ON = (
    "book/assets/**",
    "tfviz_lessons/**",
    "tests/browser/**",
    "tests/*.py",
    "chapters/**",
)

ROOT = Path(__file__).parents[2]
NPM = ROOT / "node_modules"
PAGE = """\
<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>test</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="_static/tfviz.css">
<script defer src="_static/js/try.js"></script>
</head><body><main class="tf-article"><h1>Page</h1>
{}
</main></body></html>
"""
BEFORE = """
```{exercise-start}
:label: ex-before
```
**Before.** Write `before(i, j)`: whether key j stands before query i, or is it.
```{exercise-end}
```

```{hint} Hint
It is a comparison.
```
"""
MASK = f"""\
---
kernelspec: {{name: python3, display_name: Python 3}}
---
# One
{BEFORE}
```{{code-cell}} ipython3
:role: solution
def before(i, j):
    ### BEGIN SOLUTION
    return j <= i
    ### END SOLUTION
```

```{{code-cell}} ipython3
:role: tests
from tfviz.checks import expect_mask

target = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
expect_mask([[before(i, j) for j in range(3)] for i in range(3)], target, "before")
```

```{{code-cell}} ipython3
:role: wrong
:why: without the query itself
def before(i, j):
    return j < i
```
"""


@pytest.fixture(scope="session")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all exercises that are tried in the page, as the book has them, and one more."""
    folder = tmp_path_factory.mktemp("tried")
    static = folder / "_static"
    (static / "js").mkdir(parents=True)
    for script in ("try.js", "try-here.js"):
        shutil.copy(ASSETS / "js" / script, static / "js")
    styles = (
        ASSETS / "css" / f"{name}.css" for name in ("roles", "page", "article", "boxes", "code")
    )
    (static / "tfviz.css").write_text(
        "\n".join(style.read_text("utf8") for style in styles), "utf8"
    )
    in_page.write_python(NPM, ASSETS / "js" / "try-worker.js", static / "vendor" / "python.js")
    mask = parse(MASK, "mask.md")
    boxes = {"ex-before": in_page.box(mask, mask.exercises[0])}
    boxes |= {label: in_page.box(*task) for label, task in plain().items()}
    page = "\n".join(
        f'<div class="exercise admonition" id="{label}"><p class="admonition-title">{label}</p>'
        f"{box}</div>"
        for label, box in boxes.items()
    )
    (folder / "page.html").write_text(PAGE.format(page), "utf8")
    return folder


@pytest.fixture(scope="session")
def server(tried: Path) -> Iterator[str]:
    with served(tried) as url:
        yield f"{url}page.html"


@pytest.fixture
def visit(page: Any) -> Iterator[Callable[[str], Any]]:
    """visit(address): the page; what it complains about fails the test."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda m: found.append(m.text) if m.type == "error" else None)
    page.set_default_timeout(patience.milliseconds())

    def go(address: str) -> Any:
        page.goto(address)
        return page

    yield go
    assert not found, found


def begun(page: Any, label: str) -> Any:
    box = page.locator(f"#{label}")
    if box.get_by_role("button", name="Try it here").count():
        box.get_by_role("button", name="Try it here").click()
    return box


def judged(page: Any, label: str, answer: str | None) -> tuple[str, str]:
    """Verdict and words of an answer, None for what stands there."""
    box = begun(page, label)
    if answer is not None:
        box.get_by_role("textbox").fill(answer)
    box.get_by_role("button", name="Run the checks").click()
    host = box.locator(".tf-try[data-verdict]")
    host.wait_for()
    return host.get_attribute("data-verdict"), box.get_by_role("status").inner_text()


def name_of(lesson: Lesson) -> str:
    """Of its page: "chapters/basics/attention"."""
    return "/".join(Path(lesson.path).with_suffix("").parts[-3:])


RIGHT = "def before(i, j):\n    return j <= i\n"


def test_nothing_of_python_is_loaded_before_a_reader_asks(
    visit: Any, page: Any, server: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    visit(server)
    page.locator("#ex-best-k").scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    loaded = {url.split("/_static/")[-1] for url in asked}
    assert loaded - {"data:,"} == {server, "js/try.js", "tfviz.css"}
    assert not page.workers
    with page.expect_worker():
        begun(page, "ex-before")
    assert page.locator("#ex-before textarea").evaluate("(area) => area === document.activeElement")


def test_every_answer_is_judged_as_in_a_notebook(visit: Any, page: Any, server: str) -> None:
    """Stubs are empty, solutions pass, wrong answers fail in the same words; all is here."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    visit(server)
    told = {x: both for x, both in plain().items() if exemplars.tries(name_of(both[0]))}
    assert told
    for label, (lesson, exercise) in told.items():
        given = in_page.given(lesson, exercise) or ""
        for name, answer in answers(exercise).items():
            untouched = None if name == "stub" else answer
            verdict, words = judged(page, label, untouched)
            expected = in_a_notebook(given, answer, exercise.visible_tests)
            assert verdict == expected[0], (label, name, words)
            drawn = page.locator(f"#{label}").get_by_role("img").count()
            if verdict == "failed":  # a mask that is drawn is not made of characters too
                wanted = expected[1].split("\n")[0] if drawn else expected[1]
                assert words == wanted, (label, name)
    own = ("data:", "blob:", server.removesuffix("page.html"))
    assert not [url for url in asked if not url.startswith(own)]
    assert any(url.endswith("vendor/python.js") for url in asked)


def test_masks_are_drawn_beside_each_other_from_a_folder_too(visit: Any, tried: Path) -> None:
    page = visit((tried / "page.html").as_uri())
    verdict, words = judged(page, "ex-before", "def before(i, j):\n    return j < i\n")
    assert verdict == "failed"
    assert words == ("✗ before: query 0 should attend key 0. It should have 6 pairs: 3 missing.")
    box = page.locator("#ex-before")
    pictures = [p.get_attribute("aria-label") for p in box.get_by_role("img").all()]
    assert pictures == ["expected: 6 of 9 pairs", "yours: 3 of 9 pairs"]
    assert box.locator(".is-wrong").count() == 3
    assert "Before: first wrong at query 0, key 0; 3 differ, marked ×." in box.inner_text()
    assert judged(page, "ex-before", RIGHT) == ("passed", "✓ all checks of ex-before hold")
    assert box.locator(".is-wrong").count() == 0
    assert "Before: the same." in box.inner_text()


def test_a_loop_without_end_is_stopped_and_python_starts_anew(visit: Any, server: str) -> None:
    page = visit(server)
    endless = "def before(i, j):\n    while True:\n        pass\n"
    assert judged(page, "ex-before", endless) == (
        "error",
        "✗ Stopped after 10 seconds. Is there a loop that never ends?",
    )
    assert judged(page, "ex-before", RIGHT)[0] == "passed"


# calls without end that Python's own limit does not meet, since they go through code written in C
NESTED = {
    "max(key=…)": "def f(x):\n    return max([x], key=f)\ndef before(i, j):\n    return f(1)\n",
    "a list in a list": """\
def before(i, j):
    x = []
    for _ in range(100_000):
        x = [x]
    return repr(x)
""",
    "list(map(…))": "def f(x):\n    return list(map(f, [x]))\ndef before(i, j):\n    return f(1)\n",
}


@pytest.mark.parametrize("how", NESTED)
def test_calls_without_end_are_stopped_and_python_starts_anew(
    how: str, visit: Any, server: str
) -> None:
    page = visit(server)
    assert judged(page, "ex-before", NESTED[how]) == (
        "error",
        "✗ Stopped: calls are nested too deeply. Does something call itself without end?",
    )
    assert judged(page, "ex-before", RIGHT)[0] == "passed"


# what an answer can change outside of its own names; each line would spoil the right answer
LEFT_BEHIND = """\
import builtins, collections, decimal, functools, gc, linecache, math, operator, random, sys
import types, warnings
import tfviz, tfviz.checks
def before(i, j):
    return j < i
def nothing(*given, **named):
    raise RuntimeError("left behind by the answer before")
for module in (math, operator, random, functools, linecache, tfviz.checks):
    for name in [name for name in vars(module) if not name.startswith("__")]:
        setattr(module, name, nothing)
tfviz.checks.CheckFailed = KeyError
collections.OrderedDict.__init__ = nothing
types.SimpleNamespace = decimal.Decimal = None
decimal.setcontext = nothing
sys.modules["math"] = sys.modules["tfviz.checks"] = types.ModuleType("math")
sys.modules["torch"] = types.ModuleType("torch")
sys.path[:] = sys.meta_path[:] = sys.path_hooks[:] = []
sys.setrecursionlimit(100)
sys.settrace(nothing)
warnings.simplefilter("error")
sys.stdout = sys.stderr = sys.displayhook = sys.excepthook = None
sys._getframe(3).f_globals.update(_checks=None, judged=nothing, _run=nothing, _place=nothing)
gc.callbacks.append(nothing)
import js
js.self.postMessage = js.Object.fromEntries = nothing
for name in "len abs range sum print isinstance compile exec list str type __import__".split():
    setattr(builtins, name, nothing)
"""


def test_each_answer_begins_with_a_fresh_python(visit: Any, server: str) -> None:
    """Whatever the answer before has changed, of modules, classes or Python itself."""
    page = visit(server)
    assert judged(page, "ex-before", LEFT_BEHIND)[0] in ("error", "failed")
    passed = ("passed", "✓ all checks of ex-before hold")
    assert judged(page, "ex-before", RIGHT) == passed
    for line in (
        "import math; math.log = lambda x: 0",
        "import builtins; builtins.len = lambda x: 0",
        "import tfviz.checks as c; c._compare = c.passed = None",
        "import sys; sys.modules['tfviz.checks'].CheckFailed = ValueError",
        "import sys; del sys.modules['tfviz']",
    ):
        judged(page, "ex-before", f"{line}\ndef before(i, j):\n    return j < i\n")
        assert judged(page, "ex-before", RIGHT) == passed, line


def test_what_an_answer_cannot_do_is_said(visit: Any, page: Any, server: str) -> None:
    visit(server)
    begun(page, "ex-before")
    page.get_by_text("Python is ready.").wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for answer, words in {
        "def before(i, j):\n    return j <= i)\n": "Line 2 of your answer: SyntaxError: unmatched",
        "def before(i, j):\n    return before(i, j)\n": "RecursionError",
        "def before(i, j):\n    return [0] * 10**9\n": "MemoryError",
        "input()": "EOFError",
        "import sys\nsys.exit()": "SystemExit",
        "import torch": "no torch, NumPy or tfviz",
        "import urllib.request": "No module named 'urllib'",
        "from js import fetch\nfetch('page.html')": "there is no network here",
        "from js import localStorage": "cannot import name 'localStorage'",
    }.items():
        verdict, found = judged(page, "ex-before", answer)
        assert verdict == "error" and words in found, found
        assert judged(page, "ex-before", RIGHT)[0] == "passed", answer
    assert not asked


def test_a_file_that_is_missing_is_said(page: Any, server: str) -> None:
    page.route("**/vendor/python.js", lambda route: route.abort())
    page.goto(server)
    box = begun(page, "ex-before")
    box.get_by_text("✗ Python could not start: its file cannot be loaded.").wait_for()
    page.unroute("**/vendor/python.js")
    page.set_default_timeout(patience.milliseconds())
    assert judged(page, "ex-before", RIGHT)[0] == "passed"


def test_it_is_done_by_the_keyboard_alone(visit: Any, server: str) -> None:
    page = visit(server)
    page.locator("#ex-before button").focus()
    page.keyboard.press("Enter")
    area = page.locator("#ex-before textarea")
    assert area.evaluate("(area) => area === document.activeElement")
    # the gap of the stub is selected; Enter keeps the indentation, and adds to it after a colon
    page.keyboard.type("if j > i:\nreturn False")
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    for _ in range(3):
        page.keyboard.press("Backspace")
    page.keyboard.type("return True")
    assert area.input_value() == (
        "def before(i, j):\n    if j > i:\n        return False\n    return True"
    )
    page.keyboard.press("Control+Enter")
    page.locator("#ex-before .tf-try[data-verdict=passed]").wait_for()
    page.keyboard.press("Tab")  # leaves the box: Tab is no letter here
    assert page.evaluate("document.activeElement.textContent") == "Run the checks"
    page.keyboard.press("Tab")
    page.on("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("Enter")  # start again
    assert "NotImplementedError" in area.input_value()
    assert page.locator("#ex-before").get_by_role("status").inner_text() == ""


def test_axe_finds_nothing(visit: Any, server: str) -> None:
    page = visit(server)
    begun(page, "ex-slopes")
    judged(page, "ex-before", "def before(i, j):\n    return j < i\n")
    page.add_script_tag(path=NPM / "axe-core" / "axe.min.js")
    for theme, width in (("light", 1280), ("dark", 390)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        found = page.evaluate(
            "async () => (await axe.run('main')).violations.map((v) => [v.id, v.nodes[0].html])"
        )
        assert not found
        assert page.evaluate("document.documentElement.scrollWidth") <= width
