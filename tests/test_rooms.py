"""Rooms run: the `>>>` examples of the library are right, and every room has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tfviz
from tfviz.catalogue import MECHANISMS

ROOMS = sorted({row.module for row in MECHANISMS if row.module})
MODULES = sorted(found.name for found in pkgutil.walk_packages(tfviz.__path__, "tfviz."))


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_are_right(module: str) -> None:
    for test in examples(module):
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not runner.run(test, out=said.append).failed, "".join(said)


@pytest.mark.parametrize("module", ROOMS)
def test_a_room_has_an_example(module: str) -> None:
    assert examples(module), (
        f"{module} has no example: show in a docstring, after >>>, how it is used"
    )
