"""Open JupyterLab on a page that lists the lessons as notebooks.

    python scripts/lab.py [options of `jupyter lab`, such as --no-browser or --port=9000]

The notebooks are written to the folder `notebooks`, which belongs to the reader: one that was
changed there is never overwritten. A chapter itself (`chapters/**/*.md`) opens as a notebook by a
double click, too. What JupyterLab is told for that, and its own notes, stay in `_build/lab`;
nothing is written into the settings of the user.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml
from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyterlab.labapp import LabApp
from jupytext.async_contentsmanager import build_async_jupytext_contents_manager_class
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tfviz_lessons.clone import LessonsError, read_book
from tfviz_lessons.lesson import is_lesson

ROOT = Path(__file__).resolve().parents[1]
PLACE = Path("_build", "lab")
START = "notebooks/lessons.ipynb"
# how JupyterLab begins here; what a user has set goes first
OVERRIDES = {
    "@jupyterlab/docmanager-extension:plugin": {
        "defaultViewers": {"markdown": "Jupytext Notebook"}
    },
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
HEAD = """\
# The lessons as notebooks

Click a lesson to open it. The notebooks are yours to write into: a later `make lab` brings new
versions of lessons that you have not changed, and never touches those that you have. To begin a
lesson again, delete its file from the folder `notebooks` and run `make lab`."""
RAW = """\
# The lessons

Click a lesson to open its source as a notebook. The readers' notebooks, which are free of raw
directives, could not be written; the terminal says why."""
TRY = """\
# An explorer in a notebook is a widget: click into this cell and press Shift and Enter.
from tfviz import patterns

patterns.strided(stride=8).explore(64)"""


@dataclass(frozen=True)
class Entry:
    """A lesson in the table of contents."""

    part: str
    number: int
    title: str
    source: str  # chapters/sparse/hashing.md

    @property
    def generated(self) -> str:
        """Its notebook, from the folder of notebooks that a build writes."""
        return self.source.removesuffix(".md") + ".ipynb"

    @property
    def own(self) -> str:
        """The reader's notebook, from the folder `notebooks`."""
        return self.generated.removeprefix("chapters/")


def contents(root: Path) -> Iterator[Entry]:
    """The lessons in the order of the book."""
    toc, number = yaml.safe_load((root / "_toc.yml").read_text("utf8")), 0
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            source = f"{chapter['file']}.md"
            path = root / source
            text = path.read_text("utf8") if path.exists() else ""
            if is_lesson(text):
                number += 1
                titles = (line[2:].strip() for line in text.splitlines() if line.startswith("# "))
                yield Entry(part["caption"], number, next(titles, path.stem), source)


def generated(root: Path, lessons: list[Entry]) -> Path:
    """The folder with the notebook of each lesson: that of the built book, where none is older than
    its lesson; otherwise the book is read now."""
    built = root / "_build" / "html" / "notebooks"
    if all(
        (built / lesson.generated).exists()
        and (built / lesson.generated).stat().st_mtime >= (root / lesson.source).stat().st_mtime
        for lesson in lessons
    ):
        return built
    print("The lessons are written as notebooks; this takes a minute.", flush=True)
    return read_book() / "site" / "notebooks"


def content(path: Path) -> str | None:
    """One number for what the cells say, whatever they displayed; None for no notebook."""
    try:
        cells = nbformat.read(path, as_version=4).cells
    except Exception:  # nbformat has no error of its own for a file that is no notebook
        return None
    sources = [[cell.cell_type, cell.source] for cell in cells]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def hand_out(root: Path, lessons: list[Entry], source: Path) -> list[str]:
    """Write the reader's notebooks from those in `source`, except those that the reader has
    changed; which of these have a lesson that has changed since."""
    folder = root / "notebooks"
    notes = folder / ".handed_out.json"
    folder.mkdir(exist_ok=True)
    try:
        before = dict(json.loads(notes.read_text("utf8")))
    except (OSError, ValueError):
        before = {}
    kept, now = [], {}
    for lesson in lessons:
        path, new = folder / lesson.own, content(source / lesson.generated)
        there = content(path)
        if path.exists() and (there is None or there not in (before.get(lesson.own), new)):
            now[lesson.own] = before.get(lesson.own)
            if new != before.get(lesson.own):
                kept.append(f"notebooks/{lesson.own}")
            continue
        now[lesson.own] = new
        if there != new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((source / lesson.generated).read_bytes())
    notes.write_text(json.dumps(now, indent=1) + "\n", "utf8")
    return kept


def start_page(lessons: list[Entry], raw: bool) -> nbformat.NotebookNode:
    """The list of all lessons, as a notebook; `raw` for their sources instead of notebooks."""
    lines, part = [RAW if raw else HEAD], ""
    for lesson in lessons:
        if lesson.part != part:
            part = lesson.part
            lines.append(f"\n## {part}\n")
        target = f"../{lesson.source}" if raw else lesson.own
        lines.append(f"{lesson.number}. [{lesson.title}]({target})")
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return new_notebook(
        cells=[
            new_markdown_cell("\n".join(lines), id="lessons"),
            new_code_cell(TRY, id="explorer"),
        ],
        metadata={"kernelspec": kernel},
    )


def prepare(root: Path) -> None:
    """Write the notebooks, the page that lists them, and what JupyterLab is told."""
    lessons = list(contents(root))
    raw = False
    try:
        kept = hand_out(root, lessons, generated(root, lessons))
    except LessonsError as error:
        print(f"{error}\nThe lessons are listed as they are written.", file=sys.stderr)
        kept, raw = [], True
    for path in kept:
        print(f"{path} has your changes and stays; delete or rename it to get the new lesson.")
    (root / START).parent.mkdir(exist_ok=True)
    nbformat.write(start_page(lessons, raw), root / START)
    settings = root / PLACE / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(OVERRIDES, indent=1), "utf8")


# jupytext's classes have no types
_Jupytext: Any = build_async_jupytext_contents_manager_class(AsyncLargeFileManager)


class Contents(_Jupytext):
    """Opens Markdown as notebooks. A save that changes no cell leaves the file as it is: JupyterLab
    saves what was only opened, too, and jupytext would write it in another style."""

    async def save(self, model: Any, path: str = "") -> Any:
        if model["type"] == "notebook" and path.endswith(".md") and await self.file_exists(path):
            on_disk = await self.get(path, type="notebook")
            if cells(on_disk["content"]) == cells(model["content"]):
                return await self.get(path, content=False)
        return await super().save(model, path)


def cells(content: Any) -> str:
    """The cells as they would be written into a file, without the head of the notebook."""
    bare = new_notebook(cells=nbformat.from_dict(content).cells)
    return str(jupytext.writes(bare, fmt="md:myst"))


class Checkpoints(AsyncFileCheckpoints):
    """Copies of saved files, in a folder of their own: beside a chapter they would be chapters."""

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        beside = Path(self.root_dir, path.strip("/")).parent
        beside.mkdir(parents=True, exist_ok=True)
        return str(super().checkpoint_path(checkpoint_id, path))


def options(root: Path) -> list[str]:
    """What JupyterLab is told on its command line."""
    place = root / PLACE
    words = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{START}",
        f"--LabApp.workspaces_dir={place / 'workspaces'}",
        "--ServerApp.contents_manager_class=lab.Contents",
        "--Contents.checkpoints_class=lab.Checkpoints",
        f"--Checkpoints.root_dir={place / 'checkpoints'}",
    ]
    root_user = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container
    return [*words, "--allow-root"] if root_user else words


def main(more: list[str]) -> None:
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
        filter(None, [str(ROOT / PLACE / "config"), os.environ.get("JUPYTER_CONFIG_PATH")])
    )
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    prepare(ROOT)
    LabApp.launch_instance([*options(ROOT), *more])


if __name__ == "__main__":
    main(sys.argv[1:])
