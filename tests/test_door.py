"""The door: `import tfviz` costs nothing, and offers what people ask for by names they guess."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tfviz
from tfviz import _door

DOORS = ["tfviz", *(f"tfviz.{part}" for part in ["basics", "position", "longer_context"])]
DOORS += ["tfviz.adaptive", "tfviz.sparse", "tfviz.compressed", "tfviz.priors", "tfviz.heads"]
DOORS += ["tfviz.beyond_text", "tfviz.explained", "tfviz.models"]


def rooms(package: ModuleType) -> list[str]:
    return [info.name for info in pkgutil.iter_modules(package.__path__) if info.name[0] != "_"]


def test_to_import_it_imports_nothing_heavy() -> None:
    code = "import sys, tfviz; dir(tfviz); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "numpy", "sympy", "matplotlib", "scipy", "ipywidgets", "plotly"}
    inner = {name for name in done.stdout.split() if name.startswith("tfviz.")}
    assert inner == {"tfviz._door"}


@pytest.mark.parametrize("name", DOORS)
def test_a_door_offers_its_names_and_its_rooms_and_no_others(name: str) -> None:
    package = importlib.import_module(name)
    assert dir(package) == sorted({*package.__all__, *rooms(package)})
    for one in {*package.__all__} - {*rooms(package)}:
        assert not inspect.ismodule(getattr(package, one)), one
    for one in rooms(package):
        assert inspect.ismodule(getattr(package, one)), one


@pytest.mark.parametrize("name", DOORS)
def test_no_function_is_called_like_a_room_beside_it(name: str) -> None:
    """Or `from tfviz import sparse_attention` gives a module, which cannot be called."""
    package = importlib.import_module(name)
    here = rooms(package)
    for room in here:
        module = importlib.import_module(f"{name}.{room}")
        assert not callable(vars(module).get(room)), f"{name}.{room}.{room}"


def test_patterns_and_plots_show_what_they_are_for() -> None:
    from tfviz import patterns, plots

    shown = {name: getattr(patterns, name) for name in dir(patterns)}
    assert patterns.FAMILIES.keys() <= shown.keys()
    assert not [name for name, thing in shown.items() if inspect.ismodule(thing) or name[0] == "_"]
    assert dir(plots) == sorted(plots.__all__)


def test_every_core_of_a_part_is_at_its_door() -> None:
    for name in DOORS[1:-1]:
        package = importlib.import_module(name)
        for room in rooms(package):
            module = importlib.import_module(f"{name}.{room}")
            cores = [
                kind.__name__
                for kind in vars(module).values()
                if inspect.isclass(kind)
                and kind.__module__ == module.__name__
                and any(base.__name__ == "Dense" for base in kind.__mro__)
                and not kind.__name__.startswith("_")
            ]
            assert {*cores} <= {*package.__all__}, f"{name}.{room}"


def test_who_asks_at_the_wrong_door_is_sent_to_the_right_one() -> None:
    with pytest.raises(AttributeError, match=r"write from tfviz\.position import Rope"):
        _ = tfviz.Rope  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"dir\(tfviz\) lists what it has"):
        _ = tfviz.Hyperformer  # type: ignore[attr-defined]
    assert not hasattr(tfviz, "__wrapped__")


def test_only_what_stands_under_type_checking_is_offered(tmp_path: Path) -> None:
    file = tmp_path / "__init__.py"
    file.write_text(
        "from a import b\nif TYPE_CHECKING:\n    from c.d import E, f\nelse:\n    from g import h\n"
    )
    assert _door.names(str(file)) == {"E": "c.d", "f": "c.d"}
