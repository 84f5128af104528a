"""The library without what only pictures and explorers need: the rest works, and these say why not.

Each runs in a Python in which the packages of the extras cannot be imported.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import learner_environment
import pytest
from packaging.requirements import Requirement
from pins import FILES, installed, pinned

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
        ("from tfviz import plots", 'pip install "matplotlib>=3.8" "plotly>=5.24" "pillow>=10.3"'),
        ("import tfviz; tfviz.explorers", "tfviz needs anywidget and ipywidgets for this"),
        ("from tfviz.explorers import SparseLab", '"anywidget>=0.9.13" "ipywidgets>=8.1"'),
        ("from tfviz import patterns; patterns.strided(4).explore(8)", '"anywidget>=0.9.13"'),
    ],
)
def test_what_is_missing_names_its_extra(code: str, said: str) -> None:
    done = without_extras(code)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode and last.startswith("ModuleNotFoundError: ") and said in last


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"][
    "optional-dependencies"
]
PACKAGES = (
    "tfviz",
    "tfviz_lab",
    "tfviz_lessons",
    "teaching/tfviz_course",
    "teaching/hub",
    "scripts",
)
OPTION = {"-q", "-e", "--upgrade", "--quiet"}
COMMAND = re.compile(r"pip install ((?:\"[^\"]*\"|'[^']*'|[\w.<>=\[\]@-]+| )+)")
PLACE = re.compile(
    r"[A-Z]+(-[A-Z]+)+(/teaching)?(\[\w+\])?$|\.$|tfviz(\[\w+\])? ?@ "
)  # a clone, or an address


def pinned_names() -> set[str]:
    """The packages that the project itself installs from a registry."""
    lines = [line for name in FILES for line in (ROOT / name).read_text("utf8").splitlines()]
    return {re.sub(r"[_.]", "-", line.partition("==")[0].lower()) for line in lines if "==" in line}


def unknown(command: str) -> list[str]:
    """What `pip install …` asks for that no registry has, as far as this project knows."""
    words = [word for word in shlex.split(command)[2:] if word not in OPTION]
    assert words, command
    words = [word for word in words if not PLACE.match(word)]
    return [word for word in words if re.split("[<>=~]", word)[0].lower() not in pinned_names()]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_of_an_extra_installs_what_it_asks_for(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = [f'{text}; extra == "{name}"' for name, all_ in EXTRAS.items() for text in all_]
    monkeypatch.setattr(_extras, "requires", lambda name: ["torch>=2.6", *stated])
    command = _extras.command(extra)
    assert command.startswith('pip install "') and not unknown(command)
    asked = {Requirement(word).name for word in shlex.split(command)[2:]}
    base = {*learner_environment.of_the_library()}
    wanted = {*learner_environment.of_the_library(extra)} - base
    assert asked == {Requirement(text).name for text in wanted}


def test_what_is_missing_is_named_with_a_command() -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r"needs no_such_thing for this, which is"
    ) as error:
        _extras.need("plots", "torch", "no_such_thing")
    assert error.value.name == "no_such_thing"
    _extras.need("plots", "torch")


def test_a_folder_that_nobody_installed_names_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_extras, "requires", nowhere)
    assert _extras.command("plots") == 'pip install "PATH-OF-YOUR-CLONE[plots]"'


def remedies() -> Iterator[tuple[str, str]]:
    """Every `pip install …` in a text of the code, comments aside, and where it stands."""
    for file in (file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text("utf8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "X" for p in node.values]
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            for words in COMMAND.findall(text):
                yield f"{file.relative_to(ROOT)}:{node.lineno}", words.strip()


def test_no_remedy_names_a_package_that_is_nowhere() -> None:
    """`pip install tfviz[plots]` finds nothing: tfviz is installed from a clone or an address."""
    found = dict(remedies())
    assert len(found) > 3
    assert not {where: words for where, words in found.items() if lost(words)}


@pytest.mark.parametrize("words", ["'tfviz[plots]'", '"tfviz[plots]"', "tfviz", "PIL", "-q faiss"])
def test_such_a_remedy_would_be_noticed(words: str) -> None:
    assert lost(words)


def lost(words: str) -> list[str]:
    """The first thing that a command installs, if it is nowhere; a sentence may go on after it."""
    words = words.removesuffix("X").strip()  # a value that is worked out stands for the rest
    asked = [word for word in shlex.split(words) if word not in OPTION]
    # a name in braces or after a dollar sign is worked out, and the word after --constraint a file
    fixed = [word for word in asked[:1] if not re.match(r"[{$]|--", word)]
    return unknown(f"pip install '{fixed[0]}'") if fixed else []


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
    book, hub, dev = map(installed, ("tfviz[book]", "tfviz-course[hub]", "tfviz[dev]"))
    assert book.keys() < dev.keys()
    only_tests = {"pytest", "playwright", "transformers", "nbgrader", "jupyterhub", "mypy"}
    assert only_tests <= (hub.keys() | dev.keys()) - book.keys()


def test_a_pin_keeps_its_comment_and_its_place() -> None:
    (numpy,) = (one for name, one in installed("tfviz[book]").items() if name == "numpy")
    text = "# head\nnumpy==0.1  # because\nother==1\n"
    assert pinned(text, [numpy]) == f"# head\nnumpy=={numpy.version}  # because\n"
