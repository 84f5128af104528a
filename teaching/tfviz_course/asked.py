"""Which functions an exercise asks for: those with which its tests compare the answer.

`attention` is one where a test says ``expect_close(my_attention(Q, K, V), attention(Q, K, V))``.
It is there in the student's process, because the lesson's set-up imports it; so the grader locks
it while this exercise is judged. What the official solution itself calls is not locked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

PASSED_ON = ("zip", "enumerate", "list", "tuple", "float", "int", "bool", "sorted")


def asked(
    tests: Sequence[str], solution: str, names: Sequence[str], space: Mapping[str, Any]
) -> list[list[str]]:
    """[module, name] of each such function.

    `tests` and `solution` are sources, `names` what the answer binds, `space` the names as they are
    before the tests.
    """
    mine = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(ast.parse(solution))}
    found: dict[tuple[str, str], None] = {}
    for source in tests:
        for node in _compared(ast.parse(source), set(names), space):
            function = _function(node, space)
            if function and node not in names and function.__name__ not in mine:
                found[function.__module__, function.__name__] = None
    return [list(pair) for pair in found]


OURS = ("__main__", "tfviz", "tfviz_lab")
"""Where the functions of the library and of the lesson come from."""


def _function(name: str, space: Mapping[str, Any]) -> FunctionType | None:
    """The function of the library or of the lesson that this name or dotted name stands for."""
    first, *rest = name.split(".")
    value = space.get(first)
    for part in rest:
        value = getattr(value, part, None)
    if not isinstance(value, FunctionType) or "<" in value.__qualname__:
        return None
    return value if (value.__module__ or "").split(".")[0] in OURS else None


def _compared(tree: ast.Module, names: set[str], space: Mapping[str, Any]) -> Iterator[str]:
    """Names of functions that the answer's values are compared with, or that get its arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [_arguments(call) for call in calls if ast.unparse(call.func) in names]
    for call in calls:
        if call.args and _arguments(call) in given:
            yield ast.unparse(call.func)
    flows: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.For):
            value = node.value if isinstance(node, ast.Assign) else node.iter
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                flows.setdefault(target.id, set()).update(_heads(value, flows, space))
    for call in calls:
        if ast.unparse(call.func).startswith("expect_") and len(call.args) > 1:
            measured = _heads(call.args[0], flows, space)  # of the answer's value, by the tests
            yield from sorted(_heads(call.args[1], flows, space) - measured)


def _arguments(call: ast.Call) -> list[str]:
    return [ast.unparse(n) for n in (*call.args, *(keyword.value for keyword in call.keywords))]


def _heads(
    node: ast.AST | None, flows: Mapping[str, set[str]], space: Mapping[str, Any]
) -> set[str]:
    """Names of the functions that a value comes from, such as f in ``f(x)[0].tolist()``."""
    parts: list[Any] = []
    match node:
        case ast.Name(id=name):
            return flows.get(name, set())
        case ast.Call(func=function, args=arguments):
            name = ast.unparse(function)
            if _function(name, space):  # one without arguments only draws the test's own input
                return {name} if arguments or node.keywords else set()
            if isinstance(function, ast.Attribute):
                return _heads(function.value, flows, space)  # a method of the value
            parts = arguments if name in PASSED_ON else []
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            pass
        case ast.Subscript(value=value) | ast.Attribute(value=value) | ast.Starred(value=value):
            parts = [value]
        case ast.UnaryOp(operand=value) | ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            parts = [value]
    return {name for part in parts for name in _heads(part, flows, space)}
