"""What runs where not everything is proven exists, and the rest is left out."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from course import chosen

TESTS = Path(__file__).resolve().parents[1]


def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / f"{file}.py").read_text("utf8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_each_name_is_that_of_a_test() -> None:
    for table in (chosen.EXEMPLARS, chosen.LEFT_OUT):
        for file, names in table.items():
            assert not {name.partition("[")[0] for name in names} - names_in(file), file


@pytest.mark.parametrize("everything", [False, True])
def test_a_few_run_or_all(monkeypatch: pytest.MonkeyPatch, everything: bool) -> None:
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
    monkeypatch.setattr(chosen, "EVERYTHING", everything)
    chosen.pytest_collection_modifyitems(config, items)
    kept = {one.nodeid.partition("::")[0] for one in items}
    assert kept == {one.partition("::")[0] for one in ids}
    assert len(items) + len(gone) == len(ids)
    assert bool(gone) is not everything
    out = {one.nodeid.partition("::")[2] for one in gone}
    assert everything or {"test_the_guide", "test_late_days"} <= out
