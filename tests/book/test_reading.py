"""A chapter can be finished: what is visible without a click is short, and pictures come first.

Holds for each chapter whose mechanisms all have their card of 90 seconds.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from book.conftest import ROOT, Site

from tfviz import catalogue
from tfviz_lessons.outline import outline_of

# Visible, for each mechanism; half as much for a brief one, half more where a chapter has one only.
# They find the section that runs away. How long a good one is, its reader says: tighter limits made
# telegrams of sentences.
WORDS, CODE = 1600, 60
SCREEN = 900  # pixels of a window that is 1280 wide, as all tests open it
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
LAST = "More exercises"  # what follows is practice, without a rule for its pictures


def mechanisms(path: Path) -> float:
    """How many mechanisms a chapter teaches, a brief one as .7, if all have cards; else 0."""
    own = [row for row in catalogue.MECHANISMS if ROOT / f"{row.document}.md" == path and row.built]
    cards = [part for part in outline_of(path).walk() if part.title == "In 90 seconds"]
    weights = [0.7 if row.weight == "brief" else 1 for row in own]
    return sum(weights) if len(cards) >= len(own) else 0


CHAPTERS = {
    path.relative_to(ROOT).with_suffix("").as_posix(): count
    for path in sorted(ROOT.glob("chapters/*/*.md"))
    if (count := mechanisms(path))
}


class Visible(HTMLParser):
    """Counts words and lines of code outside of what is folded, drawn or hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attributes}
        kinds = have.get("class", "").split()
        hidden = tag in ("script", "style", "nav", "annotation", "math", "svg")
        hidden |= tag == "details" and "open" not in have
        hidden |= have.get("aria-hidden") == "true" or bool({"katex-html", "headerlink"} & {*kinds})
        if tag == "math" and not any(skip for _, skip in self.open):
            self.found["words"] += 1
        if tag not in VOID:
            self.open.append((tag, hidden))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(skip for _, skip in self.open):
            return
        if any(tag == "pre" for tag, _ in self.open):
            self.found["lines"] += data.count("\n")
        else:
            self.found["words"] += len(re.findall(r"[A-Za-z][\w’'-]*", data))


def article(site: Site, chapter: str) -> str:
    found = re.search(
        r"<article.*?</article>", (site.folder / f"{chapter}.html").read_text("utf8"), re.S
    )
    assert found, chapter
    return found[0]


def test_what_is_folded_drawn_or_hidden_is_not_counted() -> None:
    reader = Visible()
    reader.feed(
        "<p>two words</p><details><p>not these</p><pre>x\n</pre></details><pre>one\ntwo\n</pre>"
        "<svg><text>no</text></svg><details open><p>seen</p></details><math><mi>x</mi></math>"
    )
    assert reader.found == {"words": 4, "lines": 2}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_short_enough_to_be_finished(site: Site, chapter: str) -> None:
    count = CHAPTERS[chapter]
    reader = Visible()
    reader.feed(article(site, chapter))
    room = max(count, 1.5 if count == 1 else 1)  # what surrounds one section takes room, too
    words, lines = reader.found["words"], reader.found["lines"]
    assert words <= WORDS * room, f"{words} visible words; {WORDS * room:.0f} are the most"
    assert lines <= CODE * room, f"{lines} visible lines of code; {CODE * room:.0f} are the most"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_pictures_come_first_and_often(visits: Any, chapter: str) -> None:
    """The first a screen below a title; and never more than two screens without one or a task."""
    heads, pictures = visits(chapter).heads, visits(chapter).pictures
    sections = [part.title for part in outline_of(ROOT / f"{chapter}.md").parts].index(LAST)
    end = heads[sections][0]
    for top, title in heads[:sections]:
        first = min((a for a, _ in pictures if a > top), default=end)
        assert first - top <= SCREEN, f"{title}: its first picture is {first - top} px below"
    last = heads[0][0]
    breaks = sorted([*pictures, *visits(chapter).tasks])
    for a, b in [*(p for p in breaks if heads[0][0] < p[0] < end), (end, end)]:
        assert a - last <= 2 * SCREEN, f"neither picture nor task between {last} and {a} px"
        last = max(last, b)


@pytest.mark.parametrize("page", ["book/after_the_survey"])
def test_what_came_after_takes_one_screen_each(visits: Any, page: str) -> None:
    tops = [top for top, _ in visits(page).heads]
    between = 64  # white space and a line between two sections
    assert len(tops) == 7
    assert max(b - a for a, b in itertools.pairwise(tops)) <= SCREEN + between
