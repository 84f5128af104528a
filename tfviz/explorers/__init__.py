"""Live explorers: one Python class and one ES module each, with or without a kernel.

An explorer is found by its files, `compressed/low_rank_lens.py` with `low_rank_lens.js` beside it,
in the folder of its part; its class is called alike, `LowRankLens`. It is imported when somebody
asks for it: a lesson rests on its own explorers, not on those of all others. An old name, of
`tfviz/renamed.toml`, finds it too.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tfviz import _extras
from tfviz._renamed import CLASSES, EXPLORERS, class_name

_extras.need("explorers", "anywidget", "ipywidgets")

from tfviz.explorers.base import Explorer as Explorer

BASE = ("ALL", "Explorer", "write_assets")
_FILES = [x for x in Path(__file__).parent.glob("*/*.js") if x.with_suffix(".py").exists()]
_PARTS = {file.stem: file.parent.name for file in sorted(_FILES, key=lambda file: file.stem)}
"""The part of each module."""

HOMES = {class_name(name): name for name in _PARTS}
HOMES["GoalReport"] = "sparse_lab"
"""The module of each class."""

__all__ = sorted([*HOMES, *BASE])


def __getattr__(name: str) -> Any:
    """A class from its module; for what speaks of every explorer, all are imported."""
    name = CLASSES.get(name, name)  # one of before is not listed
    if name in HOMES:
        return getattr(_imported(HOMES[name]), name)
    if name in BASE:
        for module in _PARTS:
            _imported(module)
        return getattr(import_module(f"{__name__}.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _imported(module: str) -> ModuleType:
    return import_module(f"{__name__}.{_PARTS[module]}.{module}")


def explorer(module: str) -> Any:
    """The class of this module, without a look at the others. Raises KeyError if it has none."""
    module = EXPLORERS.get(module, module)
    if module in _PARTS:
        _imported(module)
    return import_module(f"{__name__}.base").ALL[module]


def __dir__() -> list[str]:
    return [*__all__]
