"""What a reader does after `make build`, with what `make build` has installed and nothing more.

    .venv/bin/python scripts/first_world.py [--out FOLDER]

It looks whether a package of the second environment can be imported here, executes the notebook of
a lesson from the built site, and opens a page in a browser without windows, from its folder: the
explorers that are seen at once must be alive, and the page must not complain.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import chrome
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK, PAGE = "notebooks/chapters/basics/attention.ipynb", "index.html"
SECONDS = 300


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def strangers() -> list[str]:
    """Packages that only the second environment may have, and that are here."""
    files = (ROOT / "requirements-dev.txt", ROOT / "teaching/requirements.txt")
    pins = "".join(file.read_text("utf8") for file in files)
    only_there = {normal(name) for name in re.findall(r"^([\w.-]+)==", pins, re.M)}
    here = {normal(package.metadata["Name"]) for package in distributions()}
    return sorted(only_there & here)


def execute(notebook: Path) -> None:
    """Run a notebook from top to bottom in this Python. Raises CellExecutionError."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(nbformat.read(notebook, 4), timeout=SECONDS, resources=resources).execute()


def opened(page: Path) -> tuple[str, list[str]]:
    """The page as a browser has made it, and what it complained about."""
    browser = chrome.find()
    if not browser:
        sys.exit(chrome.MISSING)
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", *chrome.FLAGS, f"--user-data-dir={profile}"]
        command += ["--window-size=1280,800", "--virtual-time-budget=20000"]
        command += ["--enable-logging=stderr", "--dump-dom", page.resolve().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]


def faults(site: Path) -> Iterator[str]:
    """All that is not as a reader finds it in a whole book, one sentence each."""
    if names := strangers():
        yield f"the first environment has what only the second may have: {', '.join(names)}"
    try:
        execute(site / NOTEBOOK)
    except Exception as error:
        yield f"{NOTEBOOK} does not run:\n{error}"
    dom, complaints = opened(site / PAGE)
    if not re.search(r'class="[^"]*tfviz-explorer[^>]*data-ready', dom):
        yield f"no explorer of {PAGE} comes to life"
    yield from (f"{PAGE} complains: {line}" for line in complaints)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT, help="the book is in OUT/_build/html")
    found = list(faults(parser.parse_args().out / "_build" / "html"))
    print("\n".join(found) or "The first environment alone: a notebook runs, a page is alive.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
