"""The door: `import tfviz` costs nothing, and offers what people ask for by names they guess."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tfviz
from tfviz import _door, catalogue

PARTS = [f"tfviz.{part.id}" for part in catalogue.PARTS]
DOORS = ["tfviz", *PARTS, "tfviz.current", "tfviz.examined", "tfviz.explained", "tfviz.models"]


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
    for name in DOORS[1:]:
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


@pytest.mark.parametrize("part", PARTS)
def test_a_door_reads_every_room_and_types_no_name_again(part: str) -> None:
    """But for what another part offers here; and what a type checker sees is what Python finds."""
    package = importlib.import_module(part)
    lines = [
        line
        for statement in ast.parse(Path(str(package.__file__)).read_text("utf8")).body
        if isinstance(statement, ast.If)
        for line in statement.body
        if isinstance(line, ast.ImportFrom)
    ]
    stars = [str(line.module) for line in lines if line.names[0].name == "*"]
    own = [room for room in rooms(package) if f"{part}.{room}" not in stars]
    assert {*stars} <= {f"{part}.{room}" for room in rooms(package)}
    for room in own:
        assert not hasattr(importlib.import_module(f"{part}.{room}"), "__all__"), room
    assert not [line for line in lines if line.module not in stars and part in str(line.module)]
    offered = [(room, name) for room in stars for name in importlib.import_module(room).__all__]
    assert len({name for _, name in offered}) == len(offered), "two rooms offer one name"
    for room, name in offered:
        assert getattr(package, name) is getattr(importlib.import_module(room), name)


def test_only_what_stands_under_type_checking_is_offered(tmp_path: Path) -> None:
    file, room = tmp_path / "__init__.py", tmp_path / "h.py"
    file.write_text(
        "from a import b\nif TYPE_CHECKING:\n    from c.d import E, f\n    from c.h import *\n"
        "else:\n    from g import i\n"
    )
    room.write_text("import k\n\n__all__ = [\n    'L',\n    'm',\n]\n\nn = ['o']\n")
    assert _door.names(str(file)) == {"E": "c.d", "f": "c.d", "L": "c.h", "m": "c.h"}
    room.write_text("L = ['m']\n")
    with pytest.raises(ImportError, match=r"c\.h has no list __all__; say there"):
        _door.names(str(file))
