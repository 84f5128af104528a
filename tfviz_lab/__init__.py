"""Small real experiments whose results are stored, with where they come from.

    python -m tfviz_lab               whatever is not up to date, on all processors
    python -m tfviz_lab digits        only this one, → results/digits.json
    load("digits")                    what a lesson plots

Each module that has `runs` is an experiment, and stands in the folder of its part of the course;
`compare` trains one model with each of several mechanisms. `runner` does the work and says what the
module of an experiment must hold. A result is JSON: what was measured, the settings, and a
provenance with seeds, steps, versions and seconds, so that a reader can tell a number from a wish
and make it again.
"""

from __future__ import annotations

import importlib
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from tfviz import stored
from tfviz._files import written_whole
from tfviz._renamed import EXPERIMENTS
from tfviz.stored import load
from tfviz_lab.records import packed

__all__ = ["PLACES", "commit_of", "load", "module_of", "provenance", "store", "write"]

_FOLDER = Path(__file__).parent
PLACES = {
    file.stem: ".".join((__name__, *file.relative_to(_FOLDER).with_suffix("").parts))
    for file in sorted([*_FOLDER.glob("*.py"), *_FOLDER.glob("*/*.py")])
    if not file.stem.startswith("_")
}
"""Each module by its own name: "rotary" is "tfviz_lab.position.rotary"."""


def module_of(name: str) -> ModuleType:
    """The module of this name, or once of this name, in whatever part it stands.

    Raises KeyError if there is none.
    """
    return importlib.import_module(PLACES[EXPERIMENTS.get(name, name)])


def __getattr__(name: str) -> ModuleType:
    """`from tfviz_lab import rotary`, without its part."""
    if name in PLACES or name in EXPERIMENTS:
        return module_of(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def provenance(
    command: str, seeds: Sequence[int], steps: int, seconds: float, packages: Sequence[str]
) -> dict[str, Any]:
    """Where a result comes from; `packages` are the ones whose version may change it."""
    return {
        "command": command,
        "seeds": list(seeds),
        "steps": steps,
        "seconds": round(seconds, 1),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit_of(),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in packages},
    }


def store(name: str, result: dict[str, Any]) -> Path:
    """Write results/<name>.json. Raises ValueError without a provenance."""
    if not {"seeds", "steps", "seconds", "versions"} <= set(result.get("provenance", {})):
        raise ValueError(f"result {name!r} has no full provenance; add provenance(…)")
    path = stored.RESULTS / f"{name}.json"
    write(path, result)
    return path


def write(path: Path, result: dict[str, Any]) -> None:
    """As JSON, whole or not at all. Raises ValueError for NaN and infinity, which JSON has not."""
    with written_whole(path) as file:
        file.write(f"{packed(result)}\n".encode())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def commit_of() -> str | None:
    """The commit of the source tree, with a + if code was changed; None outside a clone.

    Stored results may change: making them is what changes them.
    """
    git = ["git", "-C", str(Path(__file__).parents[1])]
    code = ["tfviz", "tfviz_lab", ":(exclude)tfviz_lab/results"]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
        state = subprocess.run(
            [*git, "status", "--porcelain", "--", *code], capture_output=True, text=True
        )
    except OSError:
        return None
    if head.returncode:
        return None
    return head.stdout.strip() + ("+" if state.stdout else "")
