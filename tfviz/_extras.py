"""What the library needs for some of its rooms alone: an error says the command that brings it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

_REQUIREMENT = re.compile(r'([\w.-]+)(?:\[([\w,-]+)\])?([^;]*);.*\bextra == "([\w-]+)"')


def need(extra: str, *packages: str) -> None:
    """Say the command that installs what is missing. Raises ModuleNotFoundError if anything is.

    extra       the extra of tfviz, in pyproject.toml, that brings them
    packages    names of modules at the top, such as "matplotlib"
    """
    missing = [package for package in packages if not _is_there(package)]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        said = f"tfviz needs {' and '.join(missing)} for this, which {verb} not installed"
        raise ModuleNotFoundError(f"{said}: {command(extra)}", name=missing[0])


def command(extra: str) -> str:
    """A command that installs what an extra of tfviz asks for.

    It names the packages and not `tfviz[…]`: no registry has tfviz, and a clone may be anywhere.
    """
    try:
        stated = requires("tfviz") or []
    except PackageNotFoundError:  # a folder on the path that nobody installed
        return f'pip install "PATH-OF-YOUR-CLONE[{extra}]"'
    return " ".join(["pip install", *(f'"{name}"' for name in _of(extra, stated))])


def _of(extra: str, stated: list[str]) -> Iterator[str]:
    """The requirements of an extra, and of the extras that it names."""
    for text in stated:
        match = _REQUIREMENT.match(text)
        if match and match[4] == extra:
            name, inner, versions = match.group(1, 2, 3)
            if name == "tfviz":
                for one in inner.split(","):
                    yield from _of(one, stated)
            else:
                yield f"{name}{versions.strip()}"


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # refused by a finder, or half imported
        return False
