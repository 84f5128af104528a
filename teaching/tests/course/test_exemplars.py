"""What runs where not everything is proven exists, and the rest is left out."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def small() -> ModuleType:
    """The conftest.py that chooses; a copy, of which pytest knows nothing."""
    spec = importlib.util.spec_from_file_location("choosing", TESTS / "conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / f"{file}.py").read_text("utf8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_each_name_is_that_of_a_test(small: ModuleType) -> None:
    for table in (small.EXEMPLARS, small.LEFT_OUT):
        for file, names in table.items():
            assert not {name.partition("[")[0] for name in names} - names_in(file), file


@pytest.mark.parametrize("everything", [False, True])
def test_a_few_run_or_all(
    small: ModuleType, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    names = ("test_autograde", "test_guide", "test_codec")
    ids = [
        f"teaching/tests/course/{file}.py::{test}"
        for file in names
        for test in sorted(names_in(f"course/{file}"))
        if test.startswith("test_")
    ]
    items: list[Any] = [SimpleNamespace(nodeid=one) for one in ids]
    gone: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    config: Any = SimpleNamespace(args=["teaching/tests"], hook=hook)
    monkeypatch.setattr(small, "EVERYTHING", everything)
    small.pytest_collection_modifyitems(config, items)
    kept = {one.nodeid.partition("::")[0] for one in items}
    assert kept == {one.partition("::")[0] for one in ids}
    assert len(items) + len(gone) == len(ids)
    assert bool(gone) is not everything
    out = {one.nodeid.partition("::")[2] for one in gone}
    assert everything or {"test_the_guide", "test_late_days"} <= out
