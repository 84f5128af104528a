"""Small real experiments whose results are stored, with where they come from.

    python -m tfviz.experiments               whatever is not up to date, on all processors
    python -m tfviz.experiments digits        only this one, → results/digits.json
    load("digits")                            what a lesson plots

`runner` does the work and says what the module of an experiment must hold. A result is JSON: what
was measured, the settings, and a provenance with seeds, steps, versions and seconds, so that a
reader can tell a number from a wish and make it again.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tfviz._files import written_whole

RESULTS = Path(__file__).parent / "results"


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
        "commit": _commit(),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in packages},
    }


def store(name: str, result: dict[str, Any]) -> Path:
    """Write results/<name>.json. Raises ValueError without a provenance."""
    if not {"seeds", "steps", "seconds", "versions"} <= set(result.get("provenance", {})):
        raise ValueError(f"result {name!r} has no full provenance; add provenance(…)")
    path = RESULTS / f"{name}.json"
    write(path, result)
    return path


def write(path: Path, result: dict[str, Any]) -> None:
    """As JSON, whole or not at all. Raises ValueError for NaN and infinity, which JSON has not."""
    text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
    with written_whole(path) as file:
        file.write(f"{text}\n".encode())


def load(name: str) -> dict[str, Any]:
    """The stored result. Raises FileNotFoundError that names the command which makes it."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in RESULTS.glob("*.json"))) or "none"
        raise FileNotFoundError(
            f"no stored result {name!r} (stored: {known}); make it with "
            f"python -m tfviz.experiments {name}"
        )
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    """The commit of the source tree, with a + if files were changed; None outside a clone."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
        state = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
    except OSError:
        return None
    if head.returncode:
        return None
    return head.stdout.strip() + ("+" if state.stdout else "")
