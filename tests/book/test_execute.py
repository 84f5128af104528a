"""Lessons are executed when they must be, and a run says what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from book.conftest import ROOT

from tfviz_lessons.execute import Lessons, Record

RESTS_ON = (
    "tfviz_lessons/**",
    "scripts/*.py",
    "tests/book/*.py",
    "tests/*.py",
)

SAMPLE = Path(__file__).with_name("sample_lesson.md")
HEAD = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A lesson
"""
RESTS = 'print("the sum is", shift(40, 2) + lab.radius)'
INSTEAD = {
    "empty": "assert lab.radius == 0 and float(base.sum()) == 2",  # as the stub leaves it
    "a-warning": "import warnings\nwarnings.warn('old')",
    "rests-on-an-answer": RESTS,
}


def cell(source: str) -> str:
    return f"\n```{{code-cell}} ipython3\n{source}\n```\n"


def elsewhere(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """work(…) in a thread of its own: here, a browser's event loop may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *args, **named).result()


def run(folder: Path, paths: list[Path], **options: Any) -> tuple[list[str], dict[str, Record]]:
    """Names of those that were executed, and the record of each."""

    def work() -> tuple[list[str], dict[str, Record]]:
        lessons = Lessons(folder, options.pop("library", ROOT))
        ran = lessons.run(paths, **options)
        return [path.stem for path in ran], {path.stem: lessons.record(path) for path in paths}

    return elsewhere(work)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The sample with another cell after its exercises, executed with its proof."""
    folder = tmp_path_factory.mktemp("samples")
    text = SAMPLE.read_text("utf8")
    assert RESTS in text
    paths = [folder / f"{name}.md" for name in INSTEAD]
    for path in paths:
        path.write_text(text.replace(RESTS, INSTEAD[path.stem]), "utf8")
    ran, records = run(folder / "_build", paths, proof=Path(sys.executable))
    assert set(ran) == set(INSTEAD)
    return records


def test_a_run_proves_the_exercises_and_the_notebook(samples: dict[str, Record]) -> None:
    record = samples["empty"]
    assert record.problems == []
    assert set(record.exercises) == {"ex-shift", "ex-state", "ex-far"}
    assert record.empty["ex-shift"].startswith("○") and "✓" in record.solved["ex-shift"]
    assert set(record.files) <= {"tfviz/__init__.py", "tfviz/checks.py"}  # where messages come from
    assert any(piece.startswith("tfviz.checks:") for piece in record.pieces)
    assert record.seconds > 0 and record.install == ""


def test_a_warning_is_an_error(samples: dict[str, Record]) -> None:
    (problem,) = samples["a-warning"].problems
    assert problem.startswith("UserWarning: old")


def test_nothing_rests_on_the_answer_to_an_exercise(samples: dict[str, Record]) -> None:
    """As in a notebook where all exercises are left empty."""
    (problem,) = samples["rests-on-an-answer"].problems
    assert problem.startswith("NotImplementedError")


ROOM = '''"""A room."""
def seen(x):
    """What a reader calls."""
    if x < 0:
        raise ValueError("x is at least 0")
    return x + helped()
def helped():
    return 1
def unseen():
    return 2
'''


def small(root: Path) -> Path:
    """A library of one room, with a result that is found by a name put together, and a kernel
    that loads this library."""
    for package in ("tfviz", "tfviz_lab"):
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").write_text("")
    (root / "tfviz/room.py").write_text(ROOM)
    (root / "tfviz/strange.py").write_text("value = 3\n")
    (root / "tfviz/found.json").write_text("[1]")
    return root


READS = """from pathlib import Path
import importlib, inspect, sys
sys.path.insert(0, {root!r})
for name in [x for x in sys.modules if x.partition(".")[0] == "tfviz"]:
    del sys.modules[name]
from tfviz import room
importlib.import_module("tfviz." + "strang" + "e")
Path(room.__file__).with_name("fou" + "nd.json").read_text()
_ = room.seen(1)
"""
CHANGES = {
    # what is changed -> (file, what stands there, what shall), and whether the lesson runs again
    "the code of a function": ("tfviz/room.py", "x + helped()", "2 * x + helped()", True),
    "that of one which it calls": ("tfviz/room.py", "return 1", "return 3", True),
    "a docstring": ("tfviz/room.py", "What a reader calls", "What readers call", True),
    "a refusal": ("tfviz/room.py", "x is at least 0", "x is too small", True),
    "a result": ("tfviz/found.json", "1", "2", True),
    "a module that no name says": ("tfviz/strange.py", "3", "4", True),
    "a function that it does not reach": ("tfviz/room.py", "return 2", "return 5", False),
    "a docstring of the room": ("tfviz/room.py", "A room.", "Another room.", True),
    "a cell": ("lesson.md", "seen(1)", "seen(2)", True),
    "a sentence": ("lesson.md", "# A lesson", "# This lesson", False),
}


def test_a_lesson_is_executed_again_when_what_it_rests_on_has_changed(tmp_path: Path) -> None:
    """For every kind of thing that may change, told by what decides, from one real run."""
    root = small(tmp_path / "library")
    path = root / "lesson.md"
    path.write_text(HEAD + cell(READS.format(root=str(root))), "utf8")
    ran, records = run(tmp_path / "_build", [path], library=root)
    assert ran == ["lesson"] and records["lesson"].problems == []

    def holds() -> bool:
        return elsewhere(lambda: Lessons(tmp_path / "_build", root).holds(path, proven=False))

    assert holds()
    told = {}
    for what, (name, before, after, _) in CHANGES.items():
        text = (root / name).read_text("utf8")
        assert before in text, what
        (root / name).write_text(text.replace(before, after), "utf8")
        told[what] = not holds()
        (root / name).write_text(text, "utf8")
    assert told == {what: again for what, (*_, again) in CHANGES.items()}
    assert holds()


def test_whoever_reads_a_source_as_a_text_rests_on_all_of_it(tmp_path: Path) -> None:
    root = small(tmp_path / "library")
    path = root / "lesson.md"
    shows = READS.format(root=str(root)) + "_ = inspect.getsource(room.helped)\n"
    path.write_text(HEAD + cell(shows), "utf8")
    record = run(tmp_path / "_build", [path], library=root)[1]["lesson"]
    assert "tfviz/room.py" in record.files and "tfviz/found.json" in record.files


def test_what_fails_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "bad.md"
    path.write_text(HEAD + cell("1 / 0") + cell("print('after')"), "utf8")
    for _ in range(2):
        ran, records = run(tmp_path / "_build", [path])
        (problem,) = records["bad"].problems
        assert ran == ["bad"] and problem.startswith("ZeroDivisionError")
