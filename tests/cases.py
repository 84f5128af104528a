"""What mechanisms bring to the shared tests: the CASE of each tests/**/test_<id>.py, by file."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

from laws import Case, Function
from mixers import Mixes

TESTS = Path(__file__).parent


@cache
def cases() -> dict[str, Case]:
    """The case of each mechanism and its variants: {"xl_relative": …, "xl_relative, two sides": …}.

    A mechanism whose case is nothing but mutants is not imported.
    """
    found: dict[str, Case] = {}
    for file in sorted(TESTS.glob("**/test_*.py")):
        text = file.read_text("utf8")
        if "\nCASE = Case(" in text and "\nCASE = Case(\n    mutants=" not in text:
            name, case = file.stem.removeprefix("test_"), _case(file)
            found[name] = case
            found |= {f"{name}, {variant}": one for variant, one in case.variants.items()}
    return found


def functions() -> dict[str, Function]:
    """The functions of Q, K and V that the cases name: {"sac: edges()": …}. The name of the room
    is in it, so that `pytest -k sac` tries them."""
    return {
        f"{room}: {name}()": function
        for room, case in cases().items()
        for name, function in case.functions.items()
    }


def mixers() -> dict[str, Mixes]:
    """The mixers that the cases name: {"average_attention: gated": …}."""
    return {
        f"{room}: {name}": mixes
        for room, case in cases().items()
        for name, mixes in case.mixers.items()
    }


def _case(file: Path) -> Case:
    spec = importlib.util.spec_from_file_location(f"case_of_{file.stem}", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickle and torch.compile look there for what it brings
    spec.loader.exec_module(module)
    case: Case = module.CASE
    return case
