"""`scripts/run_notebooks.py`, which runs the notebooks every week with the newest packages."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
import run_notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

RESTS_ON = (
    "tfviz_lessons/**",
    "scripts/*.py",
    "tests/book/*.py",
    "tests/*.py",
    ".github/**",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Notebooks of three lessons: one works, one warns, and one fails in its third cell."""
    cells = {
        "good": ["x = 1", "assert x == 1"],
        "warns": ["import warnings", "warnings.warn('old name')"],
        "fails": ["x = 1", "x.no_such_name", "raise SystemExit('never reached')"],
    }
    place = tmp_path / "chapters/part"
    place.mkdir(parents=True)
    for name, sources in cells.items():
        text = new_markdown_cell("# A lesson")
        book = new_notebook(cells=[text, *map(new_code_cell, sources)])
        nbformat.write(book, place / f"{name}.ipynb")
    return tmp_path


def run(folder: Path, *names: str) -> int:
    return run_notebooks.main(["--notebooks", str(folder), "--python", sys.executable, *names])


def test_what_fails_is_shown_whole_and_counted(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(folder) == 1
    said = capfd.readouterr().out
    assert "torch " in said and "numpy " in said
    assert "passed  chapters/part/good" in said and "passed  chapters/part/warns" in said
    assert "old name" in said
    assert "FAILED  chapters/part/fails\n  cell 2: AttributeError: 'int' object has no" in said
    assert "no_such_name" in said and "never reached" not in said
    assert said.endswith("2 of 3 notebooks passed\n")


def test_those_that_are_named_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "part/good") == 0
    assert capfd.readouterr().out.endswith("1 of 1 notebooks passed\n")


@pytest.mark.parametrize("name", ["part/nowhere", "good"])
def test_one_that_is_not_there_is_named(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, name) == 2
    assert f"{name}.ipynb is not there; `make build` writes" in capsys.readouterr().err


def test_without_a_book_nothing_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 2
    assert "`make build` writes the notebooks" in capsys.readouterr().err
