"""Imports run one way: the contracts of pyproject.toml hold, inside of functions too. Every name in
the library is defined."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).parent / "lint-imports"
CONTRACT = """
[importlinter]
root_package = house
[importlinter:contract:up]
name = up
type = layers
layers =
    house.above
    house.below
"""


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--no-cache", *options]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "teaching")))}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=here)


def test_imports_run_one_way() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_an_import_inside_of_a_function_counts(tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    for name in ("__init__", "above", "below"):
        (house / f"{name}.py").write_text("")
    (tmp_path / "walls.ini").write_text(CONTRACT)
    assert lint(tmp_path, "--config", "walls.ini").returncode == 0
    (house / "below.py").write_text("def f():\n    from house import above\n    return above\n")
    done = lint(tmp_path, "--config", "walls.ini")
    assert done.returncode == 1 and "house.below -> house.above" in done.stdout


TEACHING = ("tfviz_course", "hub", "course")  # modules of teaching, and of its tests
READERS = ("tfviz", "tfviz_lab", "tfviz_lessons", "book", "scripts", "bench", "tests", "start.py")


def taught(source: str) -> list[str]:
    """What of teaching a source imports, inside of functions too."""
    return re.findall(rf"^\s*(?:from|import) (?:{'|'.join(TEACHING)})\b.*", source, re.M)


def read_by_others() -> Iterator[Path]:
    for name in READERS:
        yield from (ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name]


def test_nothing_imports_teaching() -> None:
    """Library, experiments, lessons, book and scripts do without it, and so do their tests."""
    sources = {file: file.read_text("utf8") for file in read_by_others()}
    assert len(sources) > 500
    assert not {file.relative_to(ROOT): said for file in sources if (said := taught(sources[file]))}


@pytest.mark.parametrize(
    "source", ["def f():\n    from tfviz_course import sandbox\n", "import course.bad"]
)
def test_such_an_import_would_be_noticed(source: str) -> None:
    assert taught(source)


def undefined(*where: str) -> list[str]:
    """Names that nothing defines, but for those in strings, where jaxtyping's shapes stand."""
    command = [str(LINT.with_name("ruff")), "check", "--isolated", "--select", "F821"]
    done = subprocess.run(
        [*command, "--output-format", "json", *where], cwd=ROOT, capture_output=True, text=True
    )
    found = []
    for hit in json.loads(done.stdout):
        at = hit["location"]["row"], hit["location"]["column"] - 1
        tree = ast.parse(Path(hit["filename"]).read_text(encoding="utf-8"))
        names = [(x.lineno, x.col_offset) for x in ast.walk(tree) if isinstance(x, ast.Name)]
        found += [f"{hit['filename']}:{at[0]}: {hit['message']}"] * (at in names)
    return found


def test_every_name_is_defined(tmp_path: Path) -> None:
    assert undefined("tfviz", "tfviz_lab") == []
    bad = tmp_path / "bad.py"
    bad.write_text('from jaxtyping import Float\n\n\ndef f(x: Float[T, "d"]) -> None:\n    y\n')
    assert [said.rpartition(" ")[2] for said in undefined(str(bad))] == ["`T`", "`y`"]


def test_every_package_tells_type_checkers_that_it_has_types() -> None:
    """In the folder and in what is installed from it."""
    found = set()
    for home in (ROOT, ROOT / "teaching"):
        setup = tomllib.loads((home / "pyproject.toml").read_text("utf8"))["tool"]
        data = setup["setuptools"]["package-data"]
        for package in (path.parent.name for path in home.glob("tfviz*/__init__.py")):
            assert (home / package / "py.typed").is_file() and "py.typed" in data[package], package
            found.add(package)
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]
    assert found == set(setup["importlinter"]["root_packages"])
