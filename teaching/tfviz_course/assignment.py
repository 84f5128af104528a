"""Assignments: the exercises of some lessons as nbgrader wants them, and the course they are in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tfviz_course import CourseError, store
from tfviz_course.rebuild import Version, version
from tfviz_course.settings import read_course
from tfviz_lessons import clone
from tfviz_lessons.assignment import source

NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def source_notebooks(
    items: Sequence[str],
    *,
    name: str,
    course: str,
    seed: int,
    points: Mapping[str, float] | None = None,
) -> dict[str, NotebookNode]:
    """The instructor's notebooks of an assignment, by name: one for each chapter.

    `items` are chapters ("basics/attention", all its exercises) and labels of exercises; `points`,
    by label, are what an exercise is worth in all, in place of what the lesson says.
    """
    chosen = clone.choose(items)
    labels = [label for found in chosen.values() for label in found]
    for label, worth in (points or {}).items():
        if label not in labels:
            said = f"points for {label!r}, which is not in the assignment"
            raise CourseError(f"{said}; choose from {', '.join(labels)}")
        if type(worth) not in (int, float) or not 0 < worth < float("inf"):
            raise CourseError(f"points for {label!r} = {worth!r}; give a number above 0")
    made: dict[str, NotebookNode] = {}
    for chapter, found in chosen.items():
        stem = chapter.split("/")[-1]
        if stem in made:
            raise CourseError(f"two chapters are called {stem!r}; put them into two assignments")
        known = clone.read(chapter), found, clone.told(chapter)
        made[stem] = source(*known, name=name, course=course, seed=seed, points=points)
    return made


def create_course(
    folder: str | Path, name: str, *, seed: int | None = None, secret: str | None = None
) -> Path:
    """Make `folder` a course: nbgrader's configuration, and `course.toml`, which only you can read.

    `seed` and `secret` are random unless given. `CourseError` for a name or folder that cannot be.
    """
    from tfviz_course.plugin import config_text

    course = Path(folder).resolve()
    if not name.strip() or not name.isprintable():
        raise CourseError(f"name = {name!r}; give the course a name on one line")
    if not (identifier := re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")):
        raise CourseError(f"name = {name!r} has no letter a to z and no digit; add one")
    for taken in ("course.toml", "nbgrader_config.py"):
        if (course / taken).exists():
            raise CourseError(f"{course} has a {taken} already; choose another folder")
    for part in ("source", "release", "submitted"):
        (course / part).mkdir(parents=True, exist_ok=True)
    course.chmod(0o700)  # solutions, submissions and grades are in it
    (course / "nbgrader_config.py").write_text(config_text(identifier), "utf8")
    seed = secrets.randbelow(10**8) if seed is None else seed
    text = (
        f"name = {json.dumps(name, ensure_ascii=False)}\n"  # a text of JSON is one of TOML, too
        f"seed = {seed}  # with a student's id it draws that student's own numbers\n"
        "# Whoever reads this can compute the inputs of hidden tests. Do not share this file.\n"
        f'secret = "{secret or secrets.token_hex(32)}"\n'
    )
    (course / "course.toml").touch(0o600, exist_ok=False)
    (course / "course.toml").write_text(text, "utf8")
    return course


def create_assignment(
    course: str | Path,
    name: str,
    items: Sequence[str],
    *,
    points: Mapping[str, float] | None = None,
    due: datetime | None = None,
    again: bool = False,
    progress: bool = False,
) -> Path:
    """Write source/<name>, and let nbgrader make release/<name> and enter it in the gradebook.

    Returns the release folder. `due` is in UTC. `again` makes an assignment anew that is there
    already. `progress` says on stderr what is being done. If anything goes wrong the old source and
    release stay as they were.
    """
    folder = Path(course).resolve()
    known = read_course(folder)
    if not NAME.fullmatch(name):
        rule = (
            "begins with a letter or digit and has only letters, digits and . _ -, without spaces"
        )
        raise CourseError(f"name = {name!r}; an assignment's name {rule}")
    source, release = folder / "source" / name, folder / "release" / name
    if source.exists() and not again:
        raise CourseError(f"{source} already exists; give --again to replace it")

    def tell(step: str) -> None:
        if progress:
            print(step, file=sys.stderr, flush=True)

    tell("Reading the lessons … (a minute, if the book has changed)")
    made = source_notebooks(items, name=name, course=known.name, seed=known.seed, points=points)
    tell("Writing the notebooks …")
    with kept(source), kept(release):
        source.mkdir(parents=True)
        for notebook, cells in made.items():
            nbformat.write(cells, source / f"{notebook}.ipynb")
        _generate(folder, name, due)
    released(folder, name)
    return release


def released(course: Path, name: str) -> dict[str, list[Version]]:
    """What students were given under this name, each version of each notebook. What lies in
    release/ now is kept for later: nbgrader writes over it when a test is corrected."""
    paths = sorted((course / "release" / name).glob("*.ipynb"))
    now = {path.stem: version(nbformat.read(path, as_version=4))._asdict() for path in paths}
    found: dict[str, list[Version]] = {}
    for books in store.remember(course, name, now):
        for notebook, book in books.items():
            found.setdefault(notebook, []).append(Version(**book))
    return found


@contextlib.contextmanager
def kept(place: Path) -> Iterator[None]:
    """Put a folder aside, and back if anything goes wrong."""
    before = place.with_name(f".{place.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if place.exists():
        place.rename(before)
    try:
        yield
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        if before.exists():
            before.rename(place)
        raise
    shutil.rmtree(before, ignore_errors=True)


def find_tools() -> None:
    """Let nbgrader find `alembic`, which it starts for gradebooks: the one beside this Python."""
    beside, path = str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)
    if path.split(os.pathsep)[0] != beside:
        os.environ["PATH"] = os.pathsep.join([beside, path])


def api(course: Path) -> Any:
    """nbgrader's API for a course folder, with the configuration that stands in it."""
    find_tools()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # at import
        from nbgrader.apps import NbGraderAPI
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config.loader import PyFileConfigLoader

        config = PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()
        config.CourseDirectory.root = str(course)
        return NbGraderAPI(CourseDirectory(config=config), config=config)


FULL = re.compile("No space left on device|database or disk is full|Disk quota exceeded")
NO_ROOM = "the disk is full: make room, then run this again; finished work is kept"
# what nbgrader says of every error: to look at a traceback that is not shown, to upgrade a database
VAGUE = re.compile("NbGraderException: (Please see the |There was an error accessing )")


def failure(result: Mapping[str, Any]) -> str:
    """Why something that nbgrader's API did came to nothing: the last error that it tells of."""
    said = f"{result.get('log') or ''}\n{result.get('error') or ''}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if FULL.search(said):
        return NO_ROOM
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    errors = [line for line in errors if not VAGUE.search(line)] or errors
    return (errors or lines or ["nbgrader does not say why"])[-1]


def _generate(course: Path, name: str, due: datetime | None) -> None:
    with warnings.catch_warnings(action="ignore"):  # of nbgrader and what it stands on
        handle = api(course)
        result = handle.generate_assignment(name)
        if due and result["success"]:
            with handle.gradebook as gradebook:
                gradebook.update_or_create_assignment(name, duedate=due)
    if not handle.coursedir.groupshared:  # else other instructors need them
        for path, mode in ((course / "source", 0o700), (course / "gradebook.db", 0o600)):
            if path.exists():
                path.chmod(mode)
    if not result["success"]:
        said = "\n".join(filter(None, [result.get("log"), result.get("error")]))
        said = failure(result) if FULL.search(said) else said
        raise CourseError(f"nbgrader could not make the assignment {name!r}:\n{said}")
