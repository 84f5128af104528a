"""The guides for contributors: the core of the walk obeys the laws, and the files and commands that
they name exist. tests/test_contributor.py follows the walk to its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import new
import pytest
from golden import drawn
from laws import COMMON, LAWS, Case, Way, definition_is_efficient_with_gradients

from tfviz import catalogue
from tfviz.patterns import FAMILIES, Domain, Pattern
from tfviz.patterns import families as F
from tfviz.patterns.family import _BY_NAME
from tfviz_lessons.outline import outline

ROOT = Path(__file__).parents[1]
GUIDES = (
    "docs/walk.md",
    "docs/reference.md",
    "CONTRIBUTING.md",
    "tfviz/explorers/kit/README.md",
)
GUIDE = (ROOT / GUIDES[0]).read_text("utf8")
OWN = ("tests/priors/test_gaussian_by_hand.py",)
"""What their reader writes."""


def blocks(kind: str) -> list[str]:
    """The walk's blocks of a language; a file that a block belongs to is named after it."""
    return [box.body for box in outline(GUIDE).boxes if re.fullmatch(kind, box.argument)]


def case_of_the_guide() -> Case:
    """Its two blocks of Python: a room, and its proof with its case."""
    return case_of(*room_and_proof())


def room_and_proof() -> tuple[str, str]:
    room, proof = blocks(r"python \S+")
    return room, proof


def case_of(room: str, proof: str) -> Case:
    """The case of a proof, with the room in the same namespace."""
    namespace: dict[str, Any] = {}
    exec(room, namespace)
    exec(
        re.sub(r"^from tfviz\.priors\.gaussian_by_hand import .*\n", "", proof, flags=re.M),
        namespace,
    )
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
    room, proof = room_and_proof()
    core = room.index("class ")
    broken = room[:core] + room[core:].replace(old, new)
    assert broken != room
    with pytest.raises(AssertionError):
        definition_is_efficient_with_gradients(case_of(broken, proof))


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
    for file in files:
        assert file in OWN or (ROOT / file).exists(), f"{name} names {file}"
    makefile = (ROOT / "Makefile").read_text("utf8")
    commands = re.findall(r"^ *make (\S+)|`make (\w[\w-]*)", text, re.M)
    assert files or commands
    for command in commands:
        assert re.search(rf"^{''.join(command)}:", makefile, re.M), f"{name}: make {command}"


def test_the_walk_does_what_make_new_says_comes_next() -> None:
    """Each step of `make new` names a place; the walk speaks of them in that order."""
    said = new.after_a_mechanism(catalogue.CHAPTERS[24], "gaussian_by_hand")
    steps = [re.search(r"(?:tfviz|tests)/[\w/]+|chapter C=\S+", line) for line in said]
    places = [step[0] for step in steps if step]
    assert len(places) == len(said)
    missing = [place for place in places if place not in GUIDE]
    assert not missing, f"make new sends to {missing}, of which the walk does not speak"
