"""The parts of the course import each other one way."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import tfviz_course

HOME = Path(tfviz_course.__file__).parent
CONFIGURED = {"assignment": {"plugin", "collect"}}  # nbgrader reads a course's settings


def imported(source: str, modules: set[str]) -> set[str]:
    """Which of the modules a source imports, also inside of functions; not those for types."""
    found = set()
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.module == "tfviz_course":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfviz_course."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.rsplit(".")[-1] for name in node.names}
    return found & modules


def test_imports_run_one_way() -> None:
    sources = {path.stem: path.read_text("utf8") for path in HOME.glob("*.py")}
    graph = {
        name: imported(source, set(sources)) | CONFIGURED.get(name, set())
        for name, source in sources.items()
    }
    assert graph["autograde"] >= {"assignment", "store", "judge"}
    list(TopologicalSorter(graph).static_order())  # raises CycleError
