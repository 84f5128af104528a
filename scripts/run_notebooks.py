"""Run the learner's notebooks with the newest packages that their install cell accepts.

    python scripts/run_notebooks.py                            all notebooks of the built book
    python scripts/run_notebooks.py sparse/hashing heads/behaviour
    python scripts/run_notebooks.py --python PROGRAM           with a Python that is there already

The notebooks are those of `make build`. A new environment is made in `_build/newest` by what the
install cell asks for; it takes the newest versions in these ranges, not the pins of the book. Each
notebook runs from its first cell to its last, in an empty folder and without a network, as *Run
all* does: the first cell that raises an error ends it. Warnings are shown and fail nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import learner_environment
import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError

from tfviz_lessons.execute import ESCAPES, Session

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ("torch", "numpy", "scipy", "sympy", "matplotlib", "plotly", "anywidget", "ipywidgets")
VERSIONS = f"""
import sys
from importlib.metadata import version
print("Python", sys.version.split()[0], *(f"{{name}} {{version(name)}}" for name in {SHOWN}))
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook: the error that ended it, if one did, and its warnings."""

    error: str
    warnings: list[str]


async def run_all(notebook: nbformat.NotebookNode, python: Path) -> Outcome:
    """The cells one after another in a kernel of this Python, up to the first that fails."""
    session = Session(python)
    warnings: list[str] = []
    async with session.kernel(TFVIZ_OFFLINE="yes"):
        assert session.client
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            try:
                await session.client.async_execute_cell(cell, 0)
            except (CellExecutionError, DeadKernelError) as error:
                return Outcome(f"cell {number}: {type(error).__name__}: {error}", warnings)
            for out in cell.outputs:
                if out.output_type == "error":
                    trace = ESCAPES.sub("", "\n".join(out.traceback))
                    return Outcome(f"cell {number}: {out.ename}: {out.evalue}\n{trace}", warnings)
                if out.output_type == "stream" and out.name == "stderr":
                    warnings.append(f"cell {number}: {out.text.strip()}")
    return Outcome("", warnings)


def outcome(file: Path, python: Path) -> Outcome:
    return asyncio.run(run_all(nbformat.read(file, as_version=4), python))


def notebooks(folder: Path, names: Sequence[str]) -> list[Path]:
    """The files of these lessons, `part/chapter`, or of all. Raises FileNotFoundError."""
    chapters = folder / "chapters"
    files = [chapters / f"{name}.ipynb" for name in names] or sorted(chapters.rglob("*.ipynb"))
    missing = [file for file in files if not file.exists()]
    if missing or not files:
        lost = missing[0] if missing else chapters
        raise FileNotFoundError(f"{lost} is not there; `make build` writes the notebooks")
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="part/chapter", help="by default, all")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "_build/html/notebooks")
    parser.add_argument("--python", type=Path, help="run them with this program")
    given = parser.parse_args(arguments)
    try:
        files = notebooks(given.notebooks.resolve(), given.names)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    python = given.python or learner_environment.make_newest(ROOT / "_build/newest")
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-P", "-c", VERSIONS], check=True, env=environment)
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, result in zip(
            files, pool.map(outcome, files, [python] * len(files)), strict=True
        ):
            name = file.with_suffix("").relative_to(given.notebooks.resolve()).as_posix()
            print(f"{'FAILED' if result.error else 'passed'}  {name}", flush=True)
            for warning in result.warnings:
                print(f"  warning in {warning}")
            if result.error:
                failed += 1
                print(f"  {result.error}")
    print(f"{len(files) - failed} of {len(files)} notebooks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
