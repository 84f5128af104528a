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
    assert set(record.files) == {f"tfviz/{name}.py" for name in ("__init__", "_door", "checks")}
    assert record.seconds > 0 and record.install == ""


def test_a_warning_is_an_error(samples: dict[str, Record]) -> None:
    (problem,) = samples["a-warning"].problems
    assert problem.startswith("UserWarning: old")


def test_nothing_rests_on_the_answer_to_an_exercise(samples: dict[str, Record]) -> None:
    """As in a notebook where all exercises are left empty."""
    (problem,) = samples["rests-on-an-answer"].problems
    assert problem.startswith("NotImplementedError")


def counted(log: Path) -> str:
    """A cell that notes that it was executed, and reads what the library holds."""
    return f"with open({str(log)!r}, 'a') as f:\n    _ = f.write('x')\nimport tfviz.formula"


def test_what_has_not_changed_is_not_executed_again(tmp_path: Path) -> None:
    log, library = tmp_path / "log", tmp_path / "tfviz"
    for name in ("__init__.py", "formula.py", "other.py"):
        source = ROOT / "tfviz" / name
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text(source.read_text("utf8") if source.exists() else "")
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text(HEAD + cell(counted(log)), "utf8")
    two.write_text(HEAD + cell("print('two')"), "utf8")

    def ran() -> list[str]:
        return run(tmp_path / "_build", [one, two], library=tmp_path)[0]

    assert ran() == ["one", "two"]
    assert ran() == [] and log.read_text() == "x"
    one.write_text(one.read_text("utf8") + "\nSome more prose.\n", "utf8")
    (library / "other.py").write_text("changed = True\n")  # which no lesson reads
    assert ran() == []
    (library / "formula.py").write_text("# changed, and `one` has read it\n")
    assert ran() == ["one"] and log.read_text() == "xx"
    two.write_text(HEAD + cell("print('too')"), "utf8")
    assert ran() == ["two"] and log.read_text() == "xx"
    assert ran() == []


def test_what_fails_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "bad.md"
    path.write_text(HEAD + cell("1 / 0") + cell("print('after')"), "utf8")
    for _ in range(2):
        ran, records = run(tmp_path / "_build", [path])
        (problem,) = records["bad"].problems
        assert ran == ["bad"] and problem.startswith("ZeroDivisionError")
