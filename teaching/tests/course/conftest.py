"""A small assignment and a course that has it, for all tests of teaching."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from course.chosen import pytest_collection_modifyitems as pytest_collection_modifyitems
from nbformat import NotebookNode

from tfviz_course import assignment

NAME = "week1"
ITEMS = ("ex-sharpness", "ex-attention-loops", "ex-best-stride", "ex-two-hops")
SEED = 20261121
SECRET = "5eed" * 16


@pytest.fixture(scope="session")
def sources() -> dict[str, NotebookNode]:
    """Source notebooks of a small assignment from two chapters: code, an explorer's state."""
    return assignment.source_notebooks(ITEMS, name=NAME, course="A course", seed=SEED)


@pytest.fixture(scope="session")
def course_made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with the assignment of `sources`, released; not to be changed."""
    folder = tmp_path_factory.mktemp("course") / "made"
    assignment.create_course(folder, "A course", seed=SEED, secret=SECRET)
    assignment.create_assignment(folder, NAME, ITEMS)
    return folder


@pytest.fixture
def course(course_made_once: Path, tmp_path: Path) -> Path:
    """A course folder of the test's own, with the assignment week1 released."""
    return Path(shutil.copytree(course_made_once, tmp_path / "course"))
