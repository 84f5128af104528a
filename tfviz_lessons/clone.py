"""The lessons of this clone of the course: found, read, and what the book knows of them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from filelock import FileLock

from tfviz_lessons.assignment import Told
from tfviz_lessons.lesson import Lesson, is_lesson, parse

HOME = Path(__file__).resolve().parents[1]
SOURCES = [
    *("_config.yml", "_toc.yml", "*.md", "*.toml", "tfviz/**/*.toml", "tfviz_lessons/**/*.py"),
    *("chapters/**/*.md", "book/**/*.md", "book/**/*.bib", "book/**/*.py"),
]

BUILD = """
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx

root, out = map(Path, sys.argv[1:])
options = {
    "latex_individualpages": False,
    "external_toc_path": str(root / "_toc.yml"),
    "nb_execution_mode": "off",
}
sys.exit(build_sphinx(root, out / "site", noconfig=True, path_config=root / "_config.yml",
    confoverrides=options, doctreedir=out / "doctrees", builder="notebooks", quiet=True))
"""


class LessonsError(Exception):
    """No clone of the course, a name that is not there, or a book that cannot be read."""


def home() -> Path:
    """The folder of this clone; `LessonsError` where the lessons are not there."""
    if not (HOME / "_toc.yml").is_file() or not (HOME / "chapters").is_dir():
        raise LessonsError(
            f"there are no lessons at {HOME}: assignments are made in a clone of the course; run "
            "`make env` there, and then `.venv-dev/bin/tfviz-course`"
        )
    return HOME


_is_lesson, _parse = lru_cache(maxsize=None)(is_lesson), lru_cache(maxsize=None)(parse)


def chapters() -> dict[str, Path]:
    """Every lesson with exercises by its short name, such as basics/attention."""
    folder = home() / "chapters"
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.glob("**/*.md"))
        if _is_lesson(path.read_text("utf8"))
    }


def read(chapter: str) -> Lesson:
    """The lesson with this short name."""
    known = chapters()
    if chapter not in known:
        raise LessonsError(_unknown(chapter, list(known)))
    return _parse(known[chapter].read_text("utf8"), known[chapter])


def choose(items: Sequence[str]) -> dict[str, list[str]]:
    """The exercises that `items` name, chapters (all of theirs) or labels, as labels by chapter, in
    the order of the lessons. Raises `LessonsError` for an unknown one, with the nearest names."""
    if isinstance(items, str):
        raise LessonsError(f"items = {items!r} is one word; give a list, such as [{items!r}]")
    every = {name: [task.label for task in read(name).tasks] for name in chapters()}
    names = {*every, *(label for labels in every.values() for label in labels)}
    if unknown := [item for item in items if item not in names]:
        raise LessonsError(_unknown(unknown[0], sorted(names)))
    if not items:
        raise LessonsError("no exercises are chosen; name chapters, or labels such as ex-sharpness")
    found = {
        name: [label for label in labels if name in items or label in items]
        for name, labels in every.items()
    }
    return {name: labels for name, labels in found.items() if labels}


def _unknown(name: str, known: list[str]) -> str:
    short = {part: full for full in known for part in (full, full.split("/")[-1])}
    near = difflib.get_close_matches(name, short, n=3, cutoff=0.4)
    meant = list(dict.fromkeys(short[part] for part in near))
    hint = f"did you mean {' or '.join(meant)}?" if meant else f"choose from {', '.join(known)}"
    return f"no chapter or exercise is called {name!r}; {hint}"


def told(chapter: str) -> Told:
    """What the book knows of the chapter's exercises: numbers, titles, prose as plain Markdown.

    The book is read for it, without executing anything, where that was not done since the last
    change; it takes some seconds.
    """
    path = read_book() / "site" / "exercises" / "chapters" / f"{chapter}.json"
    if not path.exists():
        raise LessonsError(f"chapter {chapter!r} is not in the book; add it to _toc.yml")
    known: Told = json.loads(path.read_text("utf8"))
    return known


def read_book() -> Path:
    """Let Sphinx read the book, unless it has since the last change; the folder of the outcome.

    In it are site/exercises/chapters/….json, and the notebooks that the site publishes, in
    site/notebooks and site/assignments.
    """
    root = home()
    state = _digest(root)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfviz" / "course"
    for place in (root / "_build" / "course", cache):
        stamp = place / ".read"
        if stamp.exists() and stamp.read_text() == state:
            return place
        try:
            place.mkdir(parents=True, exist_ok=True)
            held = FileLock(place / ".lock").acquire()  # one reads, others wait for what it finds
        except OSError:  # the clone may belong to somebody else, who installed it for all
            continue
        with held:
            if not (stamp.exists() and stamp.read_text() == state):
                stamp.unlink(missing_ok=True)
                command = [sys.executable, "-c", BUILD, str(root), str(place)]
                known = {**os.environ, "MPLBACKEND": "agg"}
                done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=known)
                if done.returncode:
                    said = (done.stdout + done.stderr).strip()
                    raise LessonsError(f"the book cannot be read:\n{said[-4000:]}")
                stamp.write_text(state)
        return place
    raise LessonsError(
        f"nothing can be written below {root} or at {cache}; set XDG_CACHE_HOME to a folder that "
        "is yours"
    )


def _digest(root: Path) -> str:
    """One number for everything that the book's numbers and words are made of."""
    around = [os.environ.get(f"GITHUB_{name}", "") for name in ("REPOSITORY", "REF_NAME")]
    total = hashlib.sha256("@".join(around).encode())
    for file in sorted({file for pattern in SOURCES for file in root.glob(pattern)}):
        total.update(str(file.relative_to(root)).encode())
        total.update(file.read_bytes())
    return total.hexdigest()
