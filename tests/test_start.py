"""The door: two environments of which the first knows nothing of the second, and what is said."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import first_world
import pytest

import start

ROOT = Path(__file__).parents[1]
FIRST = start.python(start.FIRST)
STRANGERS = (
    "import sys; sys.path.insert(0, 'scripts'); from first_world import *; print(strangers())"
)


def by_the_first(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the first environment's Python, with nothing of this one around it."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(FIRST), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=kept)


def packages(environment: Path) -> set[str]:
    """The names of what an environment itself holds."""
    folders = start._packages(environment).glob("*.dist-info")
    return {folder.name.partition("-")[0].lower() for folder in folders}


def test_the_first_environment_has_nothing_of_the_second() -> None:
    assert by_the_first("-c", STRANGERS).stdout.strip() == "[]"
    assert {"nbgrader", "pytest", "playwright"} <= set(first_world.strangers())  # here they are


def test_the_second_environment_holds_only_its_own_and_sees_the_first() -> None:
    assert Path(sys.prefix) == start.SECOND
    both = packages(start.FIRST) & packages(start.SECOND)
    assert not both, f"installed twice: {both}"
    import torch

    assert Path(torch.__file__).is_relative_to(start.FIRST)
    kernels = subprocess.run(
        [sys.executable, "-m", "jupyter", "--paths"], capture_output=True, text=True
    ).stdout
    assert str(start.SECOND / "share/jupyter") in kernels
    assert (start.SECOND / "share/jupyter/lab/static/index.html").is_file()


def test_programs_of_the_second_environment_run_in_it() -> None:
    for name in ("jupyter", "jupyter-lab", "nbgrader", "tfviz-course", "pytest"):
        program = start.python(start.SECOND).with_name(name)
        assert program.read_text().startswith(f"#!{start.python(start.SECOND)}"), name


def test_an_old_python_is_told_so() -> None:
    """What stands before the check is read by any Python 3, and the check comes first."""
    lines = (ROOT / "start.py").read_text("utf8")
    tree = ast.parse(lines)
    check = next(n for n, node in enumerate(tree.body) if isinstance(node, ast.If))
    old = ast.Module(tree.body[: check + 1], [])
    ast.parse(ast.unparse(old), feature_version=(3, 6))
    said = "import sys; sys.version_info = (3, 9, 0); exec(open('start.py').read())"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "Python 3.11 or newer is needed; this is 3.9." in done.stderr


def test_a_python_that_cannot_make_environments_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="sudo apt install python3-venv"):
        start._create(tmp_path / "environment")
    assert not (tmp_path / "environment").exists()


def test_what_pip_could_not_install_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "pins.txt").write_text("no-such-package==1\n")
    with pytest.raises(SystemExit, match="the same command goes on from there"):
        start._pip(start.SECOND, "-r", tmp_path / "pins.txt")
    assert "no-such-package" in capfd.readouterr().err


def test_a_folder_is_filled_once_and_again_when_its_pins_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, number = list[str](), {tmp_path: "1"}
    monkeypatch.setattr(start, "wanted", lambda: number)

    def fill() -> None:
        made.append(number[tmp_path])
        if number[tmp_path] == "broken":
            raise SystemExit("no network")

    start._once(tmp_path, fill)
    start._once(tmp_path, fill)
    number[tmp_path] = "broken"
    with pytest.raises(SystemExit):
        start._once(tmp_path, fill)
    number[tmp_path] = "1"  # what was left half done is not taken for whole
    start._once(tmp_path, fill)
    assert made == ["1", "broken", "1"]


def test_a_link_to_the_environment_of_another_copy_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, link = tmp_path / "other", tmp_path / ".venv"
    other.mkdir()
    (other / "torch").touch()
    link.symlink_to(other, target_is_directory=True)
    monkeypatch.setattr(start, "wanted", lambda: {link: "another"})
    with pytest.raises(SystemExit, match=r"\.venv is a link to .*; remove the link"):
        start._once(link, lambda: pytest.fail("it fills what is not its own"))
    assert (other / "torch").exists()


def test_each_pin_and_the_place_of_the_project_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stale_by_file = {
        "requirements.txt": {start.FIRST, start.SECOND},
        "pyproject.toml": {start.FIRST, start.SECOND},
        "requirements-dev.txt": {start.SECOND},
        "teaching/requirements.txt": {start.SECOND},
        "teaching/pyproject.toml": {start.SECOND},
        "package.json": {start.MODULES},
        "package-lock.json": {start.MODULES},
    }
    for folder in ("teaching", "moved"):
        (tmp_path / folder).mkdir()
    for name in stale_by_file:
        (tmp_path / name).write_text("name = 'one'")
    monkeypatch.setattr(start, "ROOT", tmp_path)
    before = start.wanted()
    for name, stale in stale_by_file.items():
        (tmp_path / name).write_text("name = 'two'")
        now = start.wanted()
        assert {folder for folder in now if now[folder] != before[folder]} == stale, name
        before = now
    with open(tmp_path / "pyproject.toml", "a") as file:
        file.write("\n[tool.ruff]\nline-length = 80")
    assert start.wanted() == before  # a tool's settings install nothing


def test_an_environment_that_was_moved_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its programs begin with the path of its Python, which is no more."""
    made = list[Path]()
    monkeypatch.setattr(start, "run", lambda *words: made.append(words[-1]))
    place = tmp_path / "environment"
    start.python(place).parent.mkdir(parents=True)
    start.python(place).touch()
    start._create(place)
    start._create(place)
    assert made == [place]
    moved = place.rename(tmp_path / "moved")
    start._create(moved)
    assert made == [place, moved]


def test_make_and_start_do_the_same() -> None:
    makefile = (ROOT / "Makefile").read_text("utf8")
    for command in ("book", "build", "chapter", "lab"):
        recipe = re.search(rf"^{command}:.*\n((?:\t.*\n)+)", makefile, re.M)
        assert recipe and f"$(START) {command}" in recipe[1], command
    for command in ("test", "test-all"):
        line = rf"^{command}:.*\n\t@TFVIZ_OUT=\$\(OUT\) \$\(PYTHON\) start\.py {command} "
        assert re.search(line, makefile, re.M), command
    said = subprocess.run(
        [sys.executable, "start.py", "--help"], capture_output=True, text=True, cwd=ROOT
    )
    for one in start.COMMANDS:
        assert f"  {one.__name__.replace('_', '-')} " in said.stdout


def test_nothing_that_builds_the_book_needs_a_unix() -> None:
    """On Windows the book is built and read; grading and its sandbox are not for it."""
    unix = re.compile(r"^(?:import|from) (?:fcntl|grp|pwd|resource|termios)\b", re.M)
    folders = ("tfviz", "tfviz_lab", "tfviz_lessons", "book/_ext")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    files += [ROOT / "start.py", ROOT / "scripts/build_book.py", ROOT / "scripts/chapter.py"]
    assert not [file for file in files if unix.search(file.read_text("utf8"))]


def test_a_page_that_complains_is_heard(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<script>console.warn('here'); console.log(1); nowhere()</script>")
    dom, complaints = first_world.opened(page)
    assert "<script>" in dom and len(complaints) == 3
