"""The contributor's hour: whoever follows docs/walk.md in a copy of the project ends with a
mechanism that is proven, that the catalogue knows, and whose section runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfviz_lessons.outline import outline, outline_of

# it copies the project and runs its tests there; of the chapters it reads the one of the walk
RESTS_ON = (
    "tfviz/**",
    "tfviz_lab/**",
    "tfviz_lessons/**",
    "tests/**",
    "scripts/**",
    "book/**",
    "docs/walk.md",
    "chapters/priors/locality.md",
    "_toc.yml",
    "start.py",
    "conftest.py",
)

ROOT = Path(__file__).parents[1]
ID = "gaussian_by_hand"
CODE = ("tfviz", "tfviz_lab", "tfviz_lessons", "teaching", "tests", "scripts", "book", "chapters")
IGNORED = shutil.ignore_patterns("__pycache__", "_build", "node_modules", ".*")
SECTION = """
import sys, torch
from tfviz_lessons.lesson import Exercise, read
from tfviz_lessons.checklist import lacks

lesson = read("chapters/priors/locality.md")
assert not lacks(lesson), lacks(lesson)
known = {"seed": 7}
cells = [b for b in lesson.blocks if getattr(b, "kind", "") == "code"]
opening = next(cell for cell in cells if "import torch" in cell.source)
exec(opening.source, known)
ran = 0
for block in lesson.inside(lesson.page.labelled("gaussian_by_hand")):
    if isinstance(block, Exercise):
        exec(block.solved, known)
        exec(block.all_tests, known)
        for wrong in block.wrong:
            exec(wrong.source, known)
            try:
                exec(block.all_tests, known)
            except Exception:
                ran += 1
            else:
                sys.exit(f"{block.label} takes what is wrong: {wrong.why}")
    else:
        exec(block.source, known)
        ran += 1
assert ran == 4, ran
"""


def followed(text: str, block: str) -> str:
    """A file with a change: the lines of a diff that it has, by those that it gets."""
    old, new = [], []
    for line in block.splitlines():
        if line[:1] in ("-", " ", ""):
            old.append(line[1:])
        if line[:1] in ("+", " ", ""):
            new.append(line[1:])
    before = "\n".join(old) + "\n"
    assert text.count(before) == 1, f"the walk changes what is not there once:\n{before}"
    return text.replace(before, "\n".join(new) + "\n")


def follow(root: Path) -> None:
    """Write every block of the walk that names a file where it belongs."""
    for box in outline_of(root / "docs/walk.md").boxes:
        kind, _, name = box.argument.partition(" ")
        if box.name or not name:
            continue
        file, block = root / name, box.body
        text = file.read_text("utf8")
        if kind == "diff":
            text = followed(text, block)
        elif kind == "python":
            text = block
        else:
            stub = outline(text).labelled(ID)
            assert stub, f"make new has put no section into {name}"
            text = text.replace(f"({ID})=\n{stub.text}", block)
        file.write_text(text, "utf8")


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In the copy: its own packages are found before those of this project."""
    paths = os.pathsep.join([str(root), str(root / "teaching")])
    hidden = ("TFVIZ_PLAN", "TFVIZ_TOUCHED", "PYTEST_ADDOPTS")  # what this run was told
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"PYTHONPATH": paths, "TFVIZ_ALL": "yes", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, *command], cwd=root, env=env, capture_output=True, text=True
    )


def proven(root: Path, *what: str) -> None:
    done = run(root, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *what)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project in which somebody has followed the walk."""
    root = tmp_path_factory.mktemp("copy") / "project"
    root.mkdir()
    for name in (*CODE, "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=IGNORED)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, root / file.name)
    if (ROOT / "node_modules").exists():
        (root / "node_modules").symlink_to(ROOT / "node_modules")
    (command,) = re.findall(
        rf"^make new KIND=mechanism NAME={ID} IN=(\S+ BIBKEY=\S+)$",
        (root / "docs/walk.md").read_text("utf8"),
        re.M,
    )
    chapter, bibkey = command.split(" BIBKEY=")
    done = run(root, "scripts/new.py", "mechanism", ID, "--in", chapter, "--bibkey", bibkey)
    assert done.returncode == 0, done.stderr
    yield root


def test_the_hour_ends_with_a_mechanism_that_is_proven(walked: Path) -> None:
    room, catalogue = f"tests/priors/test_{ID}.py", "tests/test_catalogue.py"
    stubs = run(walked, "-m", "pytest", "-q", "-n0", room, catalogue, "-k", ID)
    assert "work out one small case by hand" in stubs.stdout, "a stub that is green says nothing"
    for said in ("no exercise", "the section has no plot"):
        assert said in stubs.stdout, stubs.stdout[-2000:]
    follow(walked)
    shared = [f"tests/test_{x}.py" for x in ("laws", "refusals", "rooms", "knobs")]
    races = ["tests/test_door.py", "tests/test_family.py"]
    drawn = "tests/browser/test_every_explorer.py"
    proven(walked, room, catalogue, *shared, *races, drawn, "-k", f"{ID} or door or races")
    whole = run(walked, "-c", SECTION)
    assert whole.returncode == 0, whole.stdout[-2000:] + whole.stderr[-4000:]
    known = run(walked, "-c", f"from tfviz import catalogue; print(catalogue.get('{ID}').built)")
    assert known.stdout.strip() == "True", known.stderr
    own = [
        str(file.relative_to(walked)) for file in walked.rglob(f"*{ID}.*") if file.suffix != ".pyc"
    ]
    assert len(own) == 4, own
    python = [*[name for name in own if name.endswith(".py")], "tfviz/exhibits", "tfviz/priors"]
    for command in (("format", "--check"), ("check",)):
        done = run(walked, "-m", "ruff", *command, *python)
        assert done.returncode == 0, done.stdout
    todo = [name for name in own if "TODO" in (walked / name).read_text("utf8")]
    assert not todo, "the walk leaves something unwritten"
