"""What experiments have left behind: results, and models that were really trained.

Those who show it need not know how it was made; that is `tfviz_lab`, the package above this one in
the same distribution. Its folder of results is read here as data, and nothing of it is imported.

>>> load("rotary")["provenance"]["command"]
'python -m tfviz_lab rotary'
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfviz._renamed import EXPERIMENTS

RESULTS = Path(__file__).parents[2] / "tfviz_lab" / "results"


def load(name: str) -> dict[str, Any]:
    """The stored result. Raises FileNotFoundError that names the command which makes it."""
    name = EXPERIMENTS.get(name, name)
    path = RESULTS / f"{name}.json"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in RESULTS.glob("*.json"))) or "none"
        raise FileNotFoundError(
            f"no stored result {name!r} (stored: {known}); make it with python -m tfviz_lab {name}"
        )
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result
