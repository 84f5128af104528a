"""What a page says to those who do not open it.

The pictures and the forms of a published course are tested where one is published, in `test_fork`.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import book_share
import pytest
import yaml
from book.conftest import ROOT, Site
from book.visits import PAGES

from tfviz.catalogue import CHAPTERS, MECHANISMS
from tfviz.exhibits import EXHIBITS

HOME = "https://github.com/Ada/nlp"
META = re.compile(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)">')
WIDEST = 25_000  # bytes of a card


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One. Two. Three.", "One. Two. Three."),
        ("It is so:  a list follows", "It is so: a list follows"),
        ("It is so:", "It is so"),
        ("A sentence with 1.5 nats and e.g. this. Next.", None),
        (f"Short. {'Long ' * 60}.", "Short."),
        ("long " * 60, f"{('long ' * 40).strip()} …"),
    ],
)
def test_a_description_is_made_of_whole_sentences(text: str, said: str | None) -> None:
    assert book_share.shortened(text) == (said or text)
    assert len(book_share.shortened(text)) <= book_share.LONGEST + 2


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_its_title_and_a_sentence(site: Site, name: str) -> None:
    head = (site.folder / f"{name}.html").read_text("utf8").split("</head>")[0]
    said = {key: html.unescape(text) for key, text in META.findall(head)}
    assert said["og:title"] and len(said["og:description"].split()) > 2
    assert len(said["og:description"]) <= book_share.LONGEST + 60
    assert head.count('name="description"') == 1
    assert not re.search(r"\\[a-z]|\$|\w+\d{4}[a-z]", said["og:description"]), "no TeX, no keys"


@pytest.mark.usefixtures("whole_book")
def test_no_page_names_a_picture_or_a_form_that_nobody_can_reach(site: Site) -> None:
    """Both need the public address of the course."""
    if (site.folder / "sitemap.xml").exists():
        pytest.skip("these pages are made for a public address")
    for name in PAGES:
        page = (site.folder / f"{name}.html").read_text("utf8")
        assert "og:image" not in page and "issues/new" not in page, name


@pytest.mark.parametrize("chapter", [None, *CHAPTERS], ids=lambda one: one.stem if one else "all")
def test_a_card_is_a_light_picture_of_its_chapter(tmp_path: Path, chapter: Any) -> None:
    numbers = book_share.matrix(chapter)
    title = chapter.title if chapter else "The Transformer family, taken apart"
    image = book_share.card("Chapter 1 · A part", title, numbers)
    assert image.size == (1200, 630)
    file = tmp_path / "card.png"
    image.save(file, optimize=True)
    assert file.stat().st_size < WIDEST
    if chapter:
        mine = [row.id for row in MECHANISMS if row.chapter_number == chapter.number]
        shown = [EXHIBITS[name].picture().clamp(0, 1).tolist() for name in mine if name in EXHIBITS]
        assert numbers in shown


def test_a_long_title_fits_beside_the_picture() -> None:
    font = book_share.face(book_share.TEXT, 60, 700)
    rows = book_share.lines("Make it recurrent: ACT and the Universal Transformer", font, 500)
    assert len(rows) > 2 and max(map(font.getlength, rows)) <= 500
    assert " ".join(rows) == "Make it recurrent: ACT and the Universal Transformer"


@pytest.mark.parametrize("home", ["", "https://gitlab.com/ada/nlp", "https://github.com/ada"])
def test_a_report_needs_a_form_on_github(home: str) -> None:
    assert book_share.report(home, "Rotary positions", "chapters/position/rotary") == ""


@pytest.mark.parametrize("home", [HOME, f"{HOME}.git"])
def test_a_report_fills_in_fields_that_the_form_has(home: str) -> None:
    address = book_share.report(home, "Rotary & co: 50 %", "chapters/position/rotary")
    parts = urlsplit(address)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{HOME}/issues/new"
    filled = {key: value for key, (value,) in parse_qs(parts.query, strict_parsing=True).items()}
    assert filled["page"] == "Rotary & co: 50 % (chapters/position/rotary)"
    assert filled["title"] == "Mistake: Rotary & co: 50 %"
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / filled["template"]).read_text("utf8"))
    fields = {field["id"] for field in form["body"]}
    assert filled.keys() - {"template", "title"} | {"section"} <= fields


def test_the_page_for_lost_readers_has_addresses_from_the_root() -> None:
    page = (
        '<html data-content_root="./"><a href="book/a.html#b"> <a href="#main"> <img src="x.png">'
    )
    page += '<a href="https://a.org/"> <a href="/up"> <a href="mailto:a@b.c">'
    there = book_share.rooted(page, "https://ada.github.io/nlp/")
    assert 'data-content_root="/nlp/"' in there
    assert re.findall(r'(?:href|src)="([^"]*)"', there) == [
        *("/nlp/book/a.html#b", "#main", "/nlp/x.png"),
        *("https://a.org/", "/up", "mailto:a@b.c"),
    ]
    assert 'href="/book/a.html#b"' in book_share.rooted(page, "")


@pytest.mark.usefixtures("whole_book")
def test_lost_readers_find_every_part(site: Site) -> None:
    page = (site.folder / "404.html").read_text("utf8")
    article = page.split("<article")[1].split("</article>")[0]
    first = {chapter.part: chapter for chapter in reversed(CHAPTERS)}
    for chapter in first.values():
        assert re.search(rf'href="/[^"]*{chapter.document}\.html"', article), chapter.part
    assert "tf-search-open" in article and '<meta name="robots" content="noindex">' in page


# --- licences -------------------------------------------------------------------------------------

LICENCES = (ROOT / "book/licences.md").read_text("utf8")
SHORT = {"MIT": "MIT", "OFL-1.1": "OFL 1.1", "MPL-2.0": "MPL 2.0"}
ONLY_HERE = {"axe-core", "configurable-http-proxy", "lighthouse", "prettier", "typescript"}


def packages() -> dict[str, str]:
    """The npm packages of which the pages have a piece, with the licence that each states."""
    wanted = json.loads((ROOT / "package.json").read_text("utf8"))["devDependencies"]
    assert wanted.keys() >= ONLY_HERE
    return {
        name: json.loads((ROOT / "node_modules" / name / "package.json").read_text("utf8"))[
            "license"
        ]
        for name in wanted.keys() - ONLY_HERE
    }


def test_the_page_of_licences_names_what_travels_with_the_pages() -> None:
    rows = [line for line in LICENCES.splitlines() if line.startswith("|")]
    for name, licence in packages().items():
        mine = [row for row in rows if f"`{name}`" in row]
        assert any(f"[{SHORT[licence]}]" in row for row in mine), f"{name} is under {licence}"


def test_it_names_what_models_were_trained_on() -> None:
    for what in ("pydoc_data.topics", "scikit-learn", "stored weights", "Facts"):
        assert what in LICENCES
    assert "CC BY 4.0" in LICENCES and "MIT" in (ROOT / "LICENSE").read_text("utf8")
