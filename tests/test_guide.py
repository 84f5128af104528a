"""The guide for contributors: its core obeys the laws, its files and commands exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden import drawn
from laws import COMMON, LAWS, Case, Way, definition_is_efficient_with_gradients

from tfviz.patterns import FAMILIES, Domain, Pattern
from tfviz.patterns import families as F
from tfviz.patterns.family import _BY_NAME

ROOT = Path(__file__).parents[1]
GUIDES = ("CONTRIBUTING.md", "tfviz/explorers/kit/README.md")
GUIDE = (ROOT / GUIDES[0]).read_text("utf8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, re.M | re.S)


def case_of_the_guide() -> Case:
    """Its two blocks of Python: a core with its definition, and its case."""
    namespace: dict[str, Any] = {"Case": Case}
    for code in blocks("python")[:2]:
        exec(code, namespace)
    case: Case = namespace["CASE"]
    return case


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_core_of_the_guide_obeys_every_law(law: Callable[[Case], None]) -> None:
    case = case_of_the_guide()
    if law.__name__ not in case.reasons:
        law(case)


@pytest.mark.parametrize("law", COMMON, ids=lambda law: law.__name__)
def test_so_do_its_calls(law: Callable[[Way], None]) -> None:
    for way in case_of_the_guide().ways():
        law(way)


def test_its_mutant_is_found_out() -> None:
    """The core with its line broken is not its definition any more."""
    ((_, old, new),) = case_of_the_guide().mutants
    room, case = blocks("python")[:2]
    core = room.index("class ")
    broken = room[:core] + room[core:].replace(old, new)
    assert broken != room
    namespace: dict[str, Any] = {"Case": Case}
    exec(broken + case, namespace)
    with pytest.raises(AssertionError):
        definition_is_efficient_with_gradients(namespace["CASE"])


def test_the_pattern_of_the_guide_is_its_mask() -> None:
    (diff,) = blocks("diff")
    added = [line[1:] for line in diff.splitlines() if line.startswith("+")]
    rows, code = added.pop(), "\n".join(added)
    before = set(vars(F))
    namespace = vars(F) | {"Domain": Domain}
    exec(code, namespace)
    try:
        mask = eval("{" + rows.strip() + "}")["row_blocks(block=2, before=1)"]
        pattern = namespace["row_blocks"](block=2, before=1)
        assert isinstance(pattern, Pattern) and pattern.mask(6).equal(drawn(mask))
    finally:
        _BY_NAME.pop("row_blocks", None)
        FAMILIES.pop("row_blocks", None)
    assert set(vars(F)) == before


@pytest.mark.parametrize("name", GUIDES)
def test_what_the_guides_name_is_there(name: str) -> None:
    text = (ROOT / name).read_text("utf8")
    files = re.findall(r"`((?:tfviz|tests|scripts|book|chapters|tfviz_lessons)/[\w/.]+)`", text)
    assert files
    own = ("tests/priors/test_gaussian_transformer.py",)  # what its reader writes
    for file in files:
        assert file in own or (ROOT / file).exists(), f"{name} names {file}"
    makefile = (ROOT / "Makefile").read_text("utf8")
    for command in re.findall(r"^make (\w+)|`make (\w+)", text, re.M):
        assert re.search(rf"^{''.join(command)}:", makefile, re.M), f"{name}: make {command}"
