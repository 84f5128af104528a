"""The library without what only pictures and explorers need: the rest works, and these say why not.

Each runs in a Python in which the packages of the extras cannot be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pins import installed, pinned

from tfviz import _extras

ROOT = Path(__file__).parents[1]
EXTRA = (
    "matplotlib plotly PIL anywidget ipywidgets traitlets IPython sklearn faiss distributed rich"
)
BLOCKED = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRA.split()}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
EVERYTHING = """
from importlib import import_module
from pkgutil import walk_packages
import tfviz
names = [one.name for one in walk_packages(tfviz.__path__, "tfviz.", onerror=lambda name: None)]
for name in names:
    if not name.startswith(("tfviz.plots", "tfviz.explorers")):
        import_module(name)
print(len(names))
import torch
from tfviz import patterns, sparse_attention
q = torch.ones(1, 1, 8, 4)
print(sparse_attention(q, q, q, patterns.strided(4)).shape)
print(patterns.strided(4).mask(8).sum())
"""


def without_extras(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", BLOCKED + code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_patterns_masks_and_mechanisms_need_no_extra() -> None:
    done = without_extras(EVERYTHING)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 100


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import tfviz; tfviz.plots", "tfviz needs matplotlib and PIL and plotly for this"),
        ("from tfviz import plots", "pip install 'tfviz[plots]'"),
        ("import tfviz; tfviz.explorers", "tfviz needs anywidget and ipywidgets for this"),
        ("from tfviz.explorers import SparseLab", "pip install 'tfviz[explorers]'"),
    ],
)
def test_what_is_missing_names_its_extra(code: str, said: str) -> None:
    done = without_extras(code)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode and last.startswith("ModuleNotFoundError: ") and said in last


def test_an_extra_that_an_error_names_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    with pytest.raises(ModuleNotFoundError, match=r"needs no_such_thing for this") as error:
        _extras.need("plots", "torch", "no_such_thing")
    assert error.value.name == "no_such_thing"
    _extras.need("plots", "torch")
    assert {"plots", "explorers", "course"} <= extras["optional-dependencies"].keys()


def test_the_module_is_the_script() -> None:
    """`python -m tfviz_course` and `tfviz-course` say the same and end alike."""
    script = Path(sys.executable).with_name("tfviz-course")
    for words in (["--help"], ["report"], ["report", "hw1", "--course", "/nowhere"]):
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "100"}
        runs = [
            subprocess.run([*command, *words], capture_output=True, text=True, env=environment)
            for command in ([sys.executable, "-m", "tfviz_course"], [str(script)])
        ]
        module, own = ((run.returncode, run.stdout, run.stderr) for run in runs)
        assert module == own


# --- the pins of the book's environment -----------------------------------------------------------


def test_every_package_is_pinned_once_and_as_it_is_installed() -> None:
    """What `make pins` would write is what stands there."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "pins.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"run `make pins`: {done.stdout}{done.stderr}"


def test_the_book_needs_nothing_of_what_only_tests_need() -> None:
    book, dev = installed("book"), installed("dev")
    assert book.keys() < dev.keys()
    only_tests = {"pytest", "playwright", "transformers", "nbgrader", "jupyterhub", "mypy"}
    assert only_tests <= dev.keys() - book.keys()


def test_a_pin_keeps_its_comment_and_its_place() -> None:
    (numpy,) = (one for name, one in installed("book").items() if name == "numpy")
    text = "# head\nnumpy==0.1  # because\nother==1\n"
    assert pinned(text, [numpy]) == f"# head\nnumpy=={numpy.version}  # because\n"
