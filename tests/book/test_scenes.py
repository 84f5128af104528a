"""The scene of a chapter: one picture before its first section, moved by one finger."""

from __future__ import annotations

import re

import pytest
from book.conftest import LESSONS

from tfviz.explorers import ALL

SCENES = {kind.__name__ for kind in ALL.values() if kind.scene}


def scenes(text: str) -> list[str]:
    return [name for name in re.findall(r"^(\w+)\(", text, re.M) if name in SCENES]


@pytest.mark.parametrize("page", LESSONS)
def test_a_chapter_has_one_scene_before_its_first_section(page: str) -> None:
    text = LESSONS[page].read_text("utf8")
    opening = text.partition("\n## ")[0]
    assert len(scenes(opening)) == 1
    assert scenes(text) == scenes(opening)


def test_every_scene_opens_a_chapter() -> None:
    shown = [name for path in LESSONS.values() for name in scenes(path.read_text("utf8"))]
    assert sorted(shown) == sorted(SCENES)
