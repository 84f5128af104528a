"""The pictures of the guide for instructors: today's, small, and of one form."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from book.conftest import ROOT, Site
from PIL import Image

import guide_pictures

GUIDE = (ROOT / "book/instructors.md").read_text("utf8")
FILES = sorted(guide_pictures.PICTURES.glob("*.png"))
HEAVIEST = 70_000  # bytes


def test_each_picture_is_in_the_guide() -> None:
    named = re.findall(r"^```\{image\} pictures/([\w.]+)$", GUIDE, re.M)
    assert sorted(named) == [file.name for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_picture_is_small_and_has_the_form_that_is_kept_for_it(file: Any) -> None:
    assert file.stat().st_size < HEAVIEST
    with Image.open(file) as image:
        assert image.size == tuple(guide_pictures.SIZE.values())


@pytest.mark.usefixtures("whole_book")
def test_they_show_what_is_there_today(browser: Any, site: Site) -> None:
    """`make pictures` makes them again, and notes what they show."""
    kept = json.loads(guide_pictures.SHOWN.read_text("utf8"))
    assert kept.keys() == {file.stem for file in FILES}
    today = guide_pictures.shown(browser, site.folder)
    old = [name for name in sorted(today) if today[name] != kept[name]]
    assert not old, f"out of date: {', '.join(old)}; run `make pictures` and commit them"
