"""Names that a package offers without importing their modules (PEP 562).

The names stand in the package once, as imports that type checkers and editors read:

    if TYPE_CHECKING:
        from tfviz.position.rope import Rope
    else:
        __getattr__, __dir__, __all__ = lazy(__name__)

`lazy` reads the same lines, so that `tfviz.position.Rope` imports its module when it is first used.
The package's public modules are offered in the same way.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

BESIDE = {"compare": "tfviz_lab.compare"}
"""What people look for here and find in the package beside this one."""

NameGetter = Callable[[str], Any]


def lazy(package: str) -> tuple[NameGetter, Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names stand under TYPE_CHECKING."""
    module = sys.modules[package]
    homes = names(str(module.__file__))
    rooms = {
        file.name.removesuffix(".py")
        for file in os.scandir(os.path.dirname(str(module.__file__)))
        if file.name[0] not in "._" and (file.is_dir() or file.name.endswith(".py"))
    }
    offered = sorted({*homes, *rooms})

    def get(name: str) -> Any:
        if name in rooms:
            value = import_module(f"{package}.{name}")
        elif name in homes:
            value = getattr(import_module(homes[name]), name)
        else:
            raise AttributeError(_remedy(package, name), name=name, obj=module)
        setattr(module, name, value)
        return value

    return get, lambda: offered, sorted(homes)


def names(file: str) -> dict[str, str]:
    """{name: the module that it comes from}, as the file says under `if TYPE_CHECKING:`."""
    with open(file, encoding="utf-8") as source:
        statements = ast.parse(source.read()).body
    return {
        alias.name: str(line.module)
        for statement in statements
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        for line in statement.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


def home(name: str) -> tuple[str, str] | None:
    """(package, name as it is written there) of what a part of the library offers; None if none.

    Capital letters do not matter, so that people find `Rope` by "rope".
    """
    from importlib.util import find_spec
    from pkgutil import iter_modules

    if name in BESIDE:
        return BESIDE[name], name

    root = __name__.partition(".")[0]
    for info in iter_modules(sys.modules[root].__path__, f"{root}."):
        spec = find_spec(info.name) if info.ispkg else None
        for one in names(spec.origin) if spec and spec.origin else ():
            if one.lower() == name.lower():
                return info.name, one
    return None


def _remedy(package: str, name: str) -> str:
    """That the package has no such name, and which other package of the library has it."""
    said = f"module {package!r} has no attribute {name!r}"
    if name.startswith("_"):
        return said
    if found := home(name):
        return f"{said}; write from {' import '.join(found)}"
    return f"{said}; dir({package}) lists what it has"
