"""Names that a package offers without importing their modules (PEP 562).

Each room of the package says in `__all__` what stands at its door. The package names its rooms
once, as imports that type checkers and editors read:

    if TYPE_CHECKING:
        from tfviz.position.rope import *
    else:
        __getattr__, __dir__, __all__ = lazy(__name__)

`lazy` reads the same lines, so that `tfviz.position.Rope` imports its module when it is first used.
The package's public modules are offered in the same way.
"""

from __future__ import annotations

import ast
import os
import re
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
    """{name: the module that it comes from}, as the file says under `if TYPE_CHECKING:`.

    A `*` stands for the `__all__` of a room beside the file.
    """
    with open(file, encoding="utf-8") as source:
        statements = ast.parse(source.read()).body
    lines = [
        line
        for statement in statements
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        for line in statement.body
        if isinstance(line, ast.ImportFrom)
    ]
    found: dict[str, str] = {}
    for line in lines:
        module = str(line.module)
        for alias in line.names:
            offered = _all_of(file, module) if alias.name == "*" else [alias.name]
            found |= dict.fromkeys(offered, module)
    return found


def _all_of(file: str, module: str) -> list[str]:
    """The `__all__` of a room beside the file, read without importing or parsing the room.

    A room that is not there offers nothing, and the others can be used.
    """
    room = os.path.join(os.path.dirname(file), f"{module.rpartition('.')[2]}.py")
    if not os.path.exists(room):
        return []
    with open(room, encoding="utf-8") as source:
        said = re.search(r"^__all__ = (\[.*?\])", source.read(), re.MULTILINE | re.DOTALL)
    if said is None:
        raise ImportError(f"{module} has no list __all__; say there what its package offers")
    offered: list[str] = ast.literal_eval(said[1])
    return offered


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
