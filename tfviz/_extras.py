"""What the library needs for some of its rooms alone: an error names the extra that brings it."""

from __future__ import annotations

from importlib.util import find_spec


def need(extra: str, *packages: str) -> None:
    """Say the command that installs what is missing. Raises ModuleNotFoundError if anything is.

    extra       the extra of tfviz, in pyproject.toml, that brings them
    packages    names of modules at the top, such as "matplotlib"
    """
    missing = [package for package in packages if not _is_there(package)]
    if missing:
        said = f"tfviz needs {' and '.join(missing)} for this, and {extra!r} is not installed"
        raise ModuleNotFoundError(f"{said}: pip install 'tfviz[{extra}]'", name=missing[0])


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # refused by a finder, or half imported
        return False
