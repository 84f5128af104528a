"""Rooms run: the `>>>` examples of the library are right, and every room has one.

Docstrings have one form: the first sentence says what comes back, and errors have sentences of
their own, "Raises ValueError if …".
"""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import tfviz
import tfviz_lab
from tfviz.catalogue import MECHANISMS

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "book/_ext/**", "tests/*.py")  # found by their names

MODULES = sorted(
    found.name
    for package in (tfviz, tfviz_lab)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)
MODELS = [name for name in MODULES if name.startswith("tfviz.models.")]
ROOMS = sorted({row.module for row in MECHANISMS if row.module} | {*MODELS})


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_are_right(module: str) -> None:
    torch.set_printoptions(profile="default")  # lessons run in this process, too
    for test in examples(module):
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not runner.run(test, out=said.append).failed, "".join(said)


@pytest.mark.parametrize("module", ROOMS)
def test_a_room_has_an_example(module: str) -> None:
    assert examples(module), (
        f"{module} has no example: show in a docstring, after >>>, how it is used"
    )


# --- one home -------------------------------------------------------------------------------------

ADAPTERS = Path(tfviz.__path__[0]).parent / "book/_ext"


def formulas(file: Path) -> list[str]:
    """The functions of a file that are given a tensor: they work something out."""
    return [
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if one.annotation and re.search(r"\bTensor\b", ast.unparse(one.annotation))
    ]


@pytest.mark.parametrize("file", sorted(ADAPTERS.glob("*.py")), ids=lambda f: f.name)
def test_a_page_shows_a_formula_and_the_library_holds_it(file: Path) -> None:
    names = sorted({*formulas(file)})
    assert not names, f"{', '.join(names)}: write a room of tfviz for it, and show it from there"


# --- the form of docstrings -----------------------------------------------------------------------


def docstrings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def out_of_form(docstring: str) -> list[str]:
    """Sentences about errors that do not begin with Raises, those that begin with Return(s)."""
    told = [part for part in docstring.split("\n\n") if not part.startswith(">>>")]
    sentences = [
        sentence
        for part in told
        for sentence in re.split(r"(?<=[.!?:;])\s+", re.sub(r"`[^`]*`", "it", part).strip())
    ]
    error = r"\w*(?<!no)(?:Error|Exception)\b"
    return [
        sentence
        for sentence in sentences
        if re.match(r"Returns?\b|Raises?:|Raise\b", sentence)
        or (re.search(error, sentence) and not re.match(rf"Raises {error}", sentence))
    ]


@pytest.mark.parametrize(
    "file",
    sorted(x for p in (tfviz, tfviz_lab) for x in Path(p.__path__[0]).rglob("*.py")),
    ids=lambda f: f.name,
)
def test_errors_are_told_in_one_form(file: Path) -> None:
    assert [x for docstring in docstrings(file) for x in out_of_form(docstring)] == []


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("The sum. ValueError if there is none.", "ValueError if there is none."),
        ("The sum; TypeError for words.", "TypeError for words."),
        ("Raise IndexError beyond the end.", "Raise IndexError beyond the end."),
        ("The sum.\n\nRaises:\n    ValueError: if there is none.", "Raises:"),
        ("Returns the sum.", "Returns the sum."),
    ],
)
def test_another_form_is_found(docstring: str, sentence: str) -> None:
    assert sentence in out_of_form(docstring)


def test_the_form_is_not_refused() -> None:
    assert out_of_form("What is left. Raises ValueError if nothing is.") == []
    assert out_of_form("It.\n\n>>> f(3)\nTraceback (most recent call last):\nValueError: 3") == []
