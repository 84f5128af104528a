"""Answers that call the very function with which the tests compare them.

They get their points, because a returned value does not tell where it comes from; the instructor
gets a remark. It is found by reading the answer, and whoever wants to can hide it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfviz_course.judge import Prepared


def borrowed(prepared: Prepared, answers: Mapping[str, str]) -> Iterator[str]:
    """Answers that name a function which the tests compare with, and the solution does not."""
    for task in prepared.tasks.values():
        try:
            mine = _named(answers.get(task.answer.name, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        tests = "\n".join(cell.source for cell in (task.checks, task.hidden) if cell)
        state = task.after.names if task.after else {}
        compared = {name for name in _compared(tests, state) if name not in task.names}
        for name in sorted((compared & mine) - _named(task.answer.source)):
            yield f"{task.label}: uses {name}, which the checks compare with"


def _named(source: str) -> set[str]:
    """Names, attributes and imports that a cell takes from elsewhere."""
    nodes = list(ast.walk(ast.parse(source)))
    own = {n.arg for n in nodes if isinstance(n, ast.arg)} | {
        n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    found = {n.id for n in nodes if isinstance(n, ast.Name)} - own
    found |= {  # of a module, not the methods of the answer's own values
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id not in own
    }
    return found | {
        alias.name.split(".")[-1]
        for n in nodes
        if isinstance(n, ast.Import | ast.ImportFrom)
        for alias in n.names
    }


def _compared(tests: str, state: Mapping[str, Any]) -> Iterator[str]:
    """Functions of tfviz or of the set-up that the tests name."""
    for node in ast.walk(ast.parse(tests)):
        value: Any = None
        name = ""
        if isinstance(node, ast.Name):
            name, value = node.id, state.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = state.get(node.value.id)
            if isinstance(holder, ModuleType):
                name, value = node.attr, getattr(holder, node.attr, None)
        home = str(getattr(value, "__module__", ""))
        library = home.startswith("tfviz") and not home.startswith("tfviz.checks")
        if callable(value) and (
            library or (isinstance(value, FunctionType) and home == "__main__")
        ):
            yield name
