"""Teaching is a package of its own: what pip installs of the clone, and of this folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from course import classroom
from course.classroom import PACKAGES, ROOT

import start
import tfviz
from tfviz_course.command import COMMANDS

TEACHING = ROOT / "teaching"
FIRST = start.python(start.FIRST)
# what git does not track
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "_build", "*.egg-info", "build", "node_modules", ".*"
)


def wheel(tree: Path, folder: Path) -> set[str]:
    """The packages in the wheel that pip makes of a folder, without asking anybody."""
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", *words, "--wheel-dir", str(folder), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    with zipfile.ZipFile(file) as packed:
        tops = {name.split("/")[0] for name in packed.namelist()}
    return {name for name in tops if not name.endswith(".dist-info")}


def test_each_folder_installs_its_own(tmp_path: Path) -> None:
    """`pip install .` does not bring teaching, and `pip install ./teaching` brings it alone."""
    for name, home in (("tfviz", ROOT), ("tfviz-course", TEACHING)):  # pip writes beside the source
        place = tmp_path / name
        kept = [file for file in home.iterdir() if file.suffix in (".toml", ".md")]
        kept += [path.parent for path in home.glob("*/__init__.py")]
        (place / "tree").mkdir(parents=True)
        for one in (*kept, *home.glob("LICENSE")):
            copy = place / "tree" / one.name
            shutil.copytree(one, copy, ignore=LEFT_OUT) if one.is_dir() else shutil.copy(one, copy)
        (place / "wheel").mkdir()
    assert wheel(tmp_path / "tfviz/tree", tmp_path / "tfviz/wheel") == {
        "tfviz",
        "tfviz_lab",
        "tfviz_lessons",
    }
    assert wheel(tmp_path / "tfviz-course/tree", tmp_path / "tfviz-course/wheel") == {
        "tfviz_course"
    }


def test_it_has_the_version_of_the_library() -> None:
    project = tomllib.loads((TEACHING / "pyproject.toml").read_text("utf8"))["project"]
    assert project["version"] == tfviz.__version__


def test_the_module_is_the_script() -> None:
    """`python -m tfviz_course` and `tfviz-course` say the same and end alike."""
    script = Path(sys.executable).with_name("tfviz-course")
    for words in (["--help"], ["report"], ["report", "hw1", "--course", "/nowhere"]):
        environment = {**classroom.environment(), "PYTHONWARNINGS": "ignore", "COLUMNS": "100"}
        runs = [
            subprocess.run([*command, *words], capture_output=True, text=True, env=environment)
            for command in ([sys.executable, "-m", "tfviz_course"], [str(script)])
        ]
        module, own = ((run.returncode, run.stdout, run.stderr) for run in runs)
        assert module == own


def by_the_first(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the first environment's Python, with this clone and nothing else around it."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(FIRST), *map(str, words)]
    kept["PYTHONPATH"] = PACKAGES
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=kept)


@pytest.mark.parametrize("name", COMMANDS)
def test_where_a_package_is_missing_a_command_says_what_to_run(name: str, tmp_path: Path) -> None:
    """In the first environment each command says its help; it works, or one sentence says why."""
    assert by_the_first("-m", "tfviz_course", name, "--help").returncode == 0
    given = {
        "new": ("course", "--name", "x"),
        "list": (),
        "assignment": ("hw1", "basics/attention"),
        "students": ("import", "class.csv"),
        "extension": ("hw1", "ada"),
        "export": ("all", "--to", "anki"),
        "check": (),
    }
    done = by_the_first("-m", "tfviz_course", name, *given.get(name, ("hw1",)))
    if done.returncode:
        (sentence,) = done.stderr.strip().splitlines()
        assert re.fullmatch(
            r"tfviz-course: this needs \w+: run `make env` in .+, and then .+", sentence
        )
        assert sentence.endswith(str(start.python(start.SECOND).with_name("tfviz-course")))
