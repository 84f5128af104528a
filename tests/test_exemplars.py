"""Every kind of explorer, lesson and page that is in use has its exemplar."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import exemplars
import pytest

from tfviz import explorers
from tfviz.explorers.knobs import Knob
from tfviz_lessons.lesson import Exercise, Written, read

ROOT = Path(__file__).resolve().parents[1]
KIT = Path(explorers.__file__).parent / "kit"
TOC = re.findall(r"(?:root|- file): (\S+)", (ROOT / "_toc.yml").read_text("utf8"))
CHAPTERS = [name for name in TOC if name.startswith("chapters/")]
ANSWERS = {"chips", "ghost", "ruler", "curve"}  # ways to answer the question of an explorer


@cache
def marks() -> set[str]:
    """What the kit draws point by point."""
    text = (KIT / "plane.js").read_text("utf8")
    table = text[text.index("const drawn = {") : text.index("const kindOf")]
    return set(re.findall(r"^  (\w+)\(m", table, re.M)) | {"handle"}


@cache
def explorer_kinds(name: str) -> frozenset[str]:
    """The parts of the kit that an explorer asks for, its marks, answers and knobs."""
    kind = explorers.ALL[name]
    python = Path(inspect.getfile(kind))
    code, script = python.read_text("utf8"), python.with_suffix(".js").read_text("utf8")
    found = {f"app.{part}" for part in re.findall(r"\bapp\.(\w+)\(", script)}
    found |= {f"mark {word}" for word in re.findall(r"\b(\w+)[,:]", script) if word in marks()}
    found |= {f"answer {word}" for word in re.findall(r"\b(\w+)[,:]", script) if word in ANSWERS}
    found |= {
        f"knob {knob.kind.__name__}" for knob in kind.moved.values() if isinstance(knob, Knob)
    }
    found |= {"trained weights"} if re.search(r"\bstored\b|\bload\(", code) else set()
    found |= {"drawn by hand"} if re.search(r"\bpaints?[,:(]", script) else set()
    return frozenset(found)


@cache
def lesson_kinds(name: str) -> frozenset[str]:
    """The directives of a lesson, and what its tasks are answered by and tested with."""
    path = ROOT / f"{name}.md"
    lesson = read(path)
    found = {f"{{{box.name}}}" for box in lesson.page.boxes if box.name}
    for task in lesson.tasks:
        if isinstance(task, Written):
            found.add("answer in words")
        elif isinstance(task, Exercise):
            found.add(f"answer {task.answer}")
            has = {
                "numbers": task.numbers,
                "hidden tests": task.hidden_tests,
                "proof": task.asked_proof,
            }
            found |= {kind for kind, there in has.items() if there}
    return frozenset(found)


KINDS = [
    pytest.param(explorer_kinds, list(explorers.ALL), exemplars.EXPLORERS, id="explorers"),
    pytest.param(lesson_kinds, CHAPTERS, exemplars.LESSONS, id="lessons"),
]


@pytest.mark.parametrize(("kinds", "everything", "chosen"), KINDS)
def test_every_kind_in_use_has_an_exemplar(
    kinds: Callable[[str], frozenset[str]], everything: list[str], chosen: dict[str, str]
) -> None:
    assert set(chosen) <= set(everything), "an exemplar is gone or has another name"
    lacking = {
        f"{kind} (as in {name})"
        for name in everything
        for kind in kinds(name) - frozenset().union(*map(kinds, chosen))
    }
    assert not lacking, f"no exemplar has {sorted(lacking)}: add one to tests/exemplars.py"


def test_a_kind_that_is_lost_is_found() -> None:
    fewer = [name for name in exemplars.EXPLORERS if name != "vision_transformer"]
    assert "drawn by hand" in explorer_kinds("vision_transformer")
    assert "drawn by hand" not in frozenset().union(*map(explorer_kinds, fewer))


def test_exemplars_of_pages_are_pages_and_say_why() -> None:
    assert set(exemplars.PAGES) <= {*TOC, "index", "search"}
    assert set(exemplars.LESSONS) <= set(exemplars.PAGES)
    texts = [*exemplars.EXPLORERS.values(), *exemplars.PAGES.values()]
    assert all(texts) and len(set(texts)) == len(texts)
