"""Assignments: the exercises of some lessons as nbgrader wants them, and the course they are in."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tfviz_course import lessons
from tfviz_lessons.assignment import release, source

NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class CourseError(Exception):
    """A course or assignment that cannot be made or read, with the remedy."""


def source_notebooks(
    items: Sequence[str],
    *,
    name: str,
    course: str,
    seed: int,
    points: Mapping[str, float] | None = None,
) -> dict[str, NotebookNode]:
    """The instructor's notebooks of an assignment, by name: one for each chapter.

    items     chapters ("basics/attention", all its exercises) and labels of exercises
    seed      the course's variant seed: with the student's name it draws a student's numbers
    points    what an exercise is worth in all, by label, in place of what the lesson says
    """
    lessons.home()
    chosen = lessons.choose(items)
    labels = [label for found in chosen.values() for label in found]
    for label, worth in (points or {}).items():
        if label not in labels:
            raise CourseError(f"points for {label!r}, but the assignment has {', '.join(labels)}")
        number = isinstance(worth, int | float) and not isinstance(worth, bool)
        if not number or not 0 < worth < float("inf"):
            raise CourseError(f"points for {label!r} = {worth!r}; give a number above 0")
    made: dict[str, NotebookNode] = {}
    for chapter, found in chosen.items():
        stem = chapter.split("/")[-1]
        if stem in made:
            raise CourseError(f"two chapters are called {stem!r}; put them into two assignments")
        made[stem] = source(
            lessons.read(chapter),
            found,
            lessons.told(chapter),
            name=name,
            course=course,
            seed=seed,
            points=points,
        )
    return made


def release_notebook(source: NotebookNode) -> NotebookNode:
    """What students get of one of `source_notebooks`; the same that nbgrader makes of it."""
    return release(source)


# --- on the disk ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """What `course.toml` says: the course's name, its public variant seed, its secret."""

    name: str
    seed: int
    secret: str  # 64 hexadecimal digits; the seeds of hidden tests are made with it


def create_course(
    folder: str | Path, name: str, *, seed: int | None = None, secret: str | None = None
) -> Path:
    """Make `folder` a course: nbgrader's configuration, and `course.toml`, which only you can read.

    seed     draws students' own numbers; a random one unless given
    secret   64 hexadecimal digits; random unless given

    Raises `CourseError` where there is a course already, and for a name or secret that cannot be.
    """
    from tfviz_course.plugin import config_text

    course = Path(folder).resolve()
    if not name.strip() or not name.isprintable():
        raise CourseError(f"name = {name!r}; give the course a name of one line")
    for taken in ("course.toml", "nbgrader_config.py"):
        if (course / taken).exists():
            raise CourseError(f"{course} has a {taken} already; choose another folder")
    seed = secrets.randbelow(10**8) if seed is None else seed
    secret = secrets.token_hex(32) if secret is None else secret
    if not re.fullmatch("[0-9a-f]{64}", secret):
        raise CourseError("the secret must have 64 hexadecimal digits; leave it out to draw one")
    try:
        config = config_text(course, name)
    except ValueError as error:
        raise CourseError(str(error)) from None
    course.mkdir(parents=True, exist_ok=True)
    course.chmod(0o700)  # solutions, submissions and grades are in it
    for part in ("source", "release", "submitted"):
        (course / part).mkdir(exist_ok=True)
    (course / "nbgrader_config.py").write_text(config, "utf8")
    quoted = json.dumps(name, ensure_ascii=False)  # a text of JSON is one of TOML, too
    text = (
        f"name = {quoted}\n"
        f"seed = {seed}  # with a student's id it draws that student's own numbers\n"
        "# Whoever reads this can compute the inputs of hidden tests. Do not share this file.\n"
        f'secret = "{secret}"\n'
    )
    private = os.open(course / "course.toml", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(private, "w", encoding="utf8") as file:
        file.write(text)
    return course


def read_course(course: str | Path) -> Course:
    """The `course.toml` of a course folder; `CourseError` where it is missing or not whole."""
    path = Path(course) / "course.toml"
    try:
        found = tomllib.loads(path.read_text("utf8"))
        read = Course(found["name"], found["seed"], found["secret"])
    except FileNotFoundError:
        raise CourseError(
            f"{Path(course).resolve()} is not a course: it has no course.toml. Make one with "
            "`tfviz-course new FOLDER`, or name the folder of your course"
        ) from None
    except (KeyError, ValueError) as error:
        raise CourseError(f"{path} cannot be read: {error!r}") from None
    if not isinstance(read.name, str) or type(read.seed) is not int:
        raise CourseError(f"{path}: name must be a text and seed a whole number")
    if not isinstance(read.secret, str) or not re.fullmatch("[0-9a-f]{64}", read.secret):
        raise CourseError(f"{path}: secret must be a text of 64 hexadecimal digits")
    return read


def create_assignment(
    course: str | Path,
    name: str,
    items: Sequence[str],
    *,
    points: Mapping[str, float] | None = None,
    again: bool = False,
) -> Path:
    """Write source/<name>, and let nbgrader make release/<name> and enter it in the gradebook.

    Returns the release folder. `again` makes an assignment anew that is there already; nbgrader
    refuses to drop a notebook of an assignment for which there are submissions. If anything goes
    wrong the old source and release stay as they were.
    """
    folder = Path(course).resolve()
    known = read_course(folder)
    if not NAME.fullmatch(name):
        raise CourseError(
            f"name = {name!r}; an assignment's name begins with a letter or digit and has only "
            "letters, digits and . _ - in it, without spaces"
        )
    source, release = folder / "source" / name, folder / "release" / name
    if source.exists() and not again:
        raise CourseError(f"{source} is there already; say that it is to be made again")
    made = source_notebooks(items, name=name, course=known.name, seed=known.seed, points=points)
    kept = [(place, place.with_name(f".{name}.before")) for place in (source, release)]
    for place, before in kept:
        shutil.rmtree(before, ignore_errors=True)
        if place.exists():
            place.rename(before)
    try:
        source.mkdir(parents=True)
        for notebook, cells in made.items():
            nbformat.write(cells, source / f"{notebook}.ipynb")
        _generate(folder, name)
    except BaseException:
        for place, before in kept:
            shutil.rmtree(place, ignore_errors=True)
            if before.exists():
                before.rename(place)
        raise
    for _, before in kept:
        shutil.rmtree(before, ignore_errors=True)
    return release


def find_tools() -> None:
    """Let nbgrader find `alembic`, which it starts for every gradebook that it opens.

    It is beside this Python, which need not be on the PATH of who calls us.
    """
    if shutil.which("alembic") is None:
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])


def api(course: Path) -> Any:
    """nbgrader's API for a course folder, with the configuration that stands in it."""
    find_tools()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # nbgrader's own, at import
        from nbgrader.apps import NbGraderAPI
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config.loader import PyFileConfigLoader

        config = PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()
        config.CourseDirectory.root = str(course)
        return NbGraderAPI(CourseDirectory(config=config), config=config)


def failure(result: Mapping[str, Any]) -> str:
    """Why something that nbgrader's API did came to nothing: the last error that it tells of."""
    said = f"{result.get('log') or ''}\n{result.get('error') or ''}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["nbgrader does not say why"])[-1]


def _generate(course: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader and what it stands on, about themselves
        handle = api(course)
        result = handle.generate_assignment(name)
    if not handle.coursedir.groupshared:  # else other instructors need them
        for path, mode in ((course / "source", 0o700), (course / "gradebook.db", 0o600)):
            if path.exists():
                path.chmod(mode)
    if not result["success"]:
        said = "\n".join(filter(None, [result.get("log"), result.get("error")]))
        raise CourseError(f"nbgrader could not make the assignment {name!r}:\n{said}")
