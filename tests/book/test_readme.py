"""What the README promises: where the book is, lines that work to the last, pictures of today."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import learner_environment
import pictures
import pytest
import tfviz_book
import yaml
from book.conftest import ROOT, Site

from tfviz_lessons.outline import outline

README = (ROOT / "README.md").read_text("utf8")
OWN = "https://github.com/Ada-University/nlp-101"


def test_it_says_where_the_book_is_read() -> None:
    """By the one place that names the repository: whoever edits that edits this line too."""
    url = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    assert f"**Read it online.** {tfviz_book.read_online(url)}" in README


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (OWN, "<https://ada-university.github.io/nlp-101/>"),
        (f"{OWN}.git", "<https://ada-university.github.io/nlp-101/>"),
        ("https://github.com/Ada/ada.github.io", "<https://ada.github.io/>"),
        (tfviz_book.ADDRESS, "(../../deployments/github-pages)"),
        ("https://gitlab.com/ada/nlp", "(../../deployments/github-pages)"),
    ],
)
def test_the_address_comes_from_the_repository(url: str, said: str) -> None:
    assert said in tfviz_book.read_online(url)


def snippet() -> tuple[str, str]:
    """The command that installs the library, and the lines that follow it."""
    section = outline(README).titled("The library")
    assert section
    command, code = (box.body for box in section.boxes if box.argument in ("bash", "python"))
    return command, code


ONLY = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run_with(extras: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run lines in a Python that can import the library and what it brings with these extras."""
    asked = learner_environment.of_the_library(*extras)
    there = {name.replace("_", "-") for name in learner_environment.closure(asked)} | {"tfviz"}
    absent = {
        module
        for module, owners in packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & there
    }
    command = [sys.executable, "-c", ONLY.format(absent=absent) + code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_its_lines_work_to_the_last_after_the_command_before_them() -> None:
    command, code = snippet()
    (extras,) = re.findall(r'^pip install "\.\[([\w,]+)\]"', command, re.M)
    done = run_with(extras.split(","), code)
    assert done.returncode == 0, done.stderr[-2000:]


def test_without_the_extra_all_but_the_last_line_work_as_it_says() -> None:
    _, code = snippet()
    first, last = code.rstrip().rsplit("\n", 1)
    assert run_with([], first).returncode == 0
    said = run_with([], f"{first}\n{last}").stderr.splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: ") and 'pip install "' in said


@pytest.mark.usefixtures("whole_book")
def test_its_pictures_show_what_is_there_today(browser: Any, site: Site) -> None:
    """`make pictures` makes them again, and notes what they show."""
    named = {Path(name).stem for name in re.findall(r"\(\.github/pictures/([\w.]+)\)", README)}
    kept = json.loads(pictures.SHOWN.read_text("utf8"))
    assert named == kept.keys() == {file.stem for file in pictures.PICTURES.glob("*.png")}
    today = pictures.shown(browser, site.folder)
    old = [name for name in sorted(today) if today[name] != kept[name]]
    assert not old, f"out of date: {', '.join(old)}; run `make pictures` and commit them"
