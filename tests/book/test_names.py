"""A chapter has one name, that of the catalogue, wherever a reader meets it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
import yaml
from book.conftest import ROOT, Site
from book.visits import PAGES

from tfviz import catalogue
from tfviz.catalogue import CHAPTERS, PARTS, Chapter
from tfviz_lessons import checklist
from tfviz_lessons.outline import outline, outline_of

BY_PAGE = {f"{chapter.document}.html": chapter for chapter in CHAPTERS}
LINK = re.compile(r'<a\b[^>]*\bhref="([^"#?]+\.html)"[^>]*>(.*?)</a>', re.S)
# page -> what it lists; each must name every chapter there
LISTS = {
    "index": r'<span class="tfv-map-text">(.*?)</a>',
    "book/paths": r"<li>(<a\b[^>]*chapters/.*?)</a>",
    "book/progress": r"<h3>(.*?)</h3>",
    "book/self_test": r"<p>(<a\b[^>]*chapters/.*?)</p>",
    "book/syllabus": r"(<a\b[^>]*chapters/[^>]*>\s*<span class=\"doc\">\d+\. .*?)</a>",
    "book/atlas": r'<span class="tfv-chapter">(.*?)</span>',
}


def text(markup: str) -> str:
    """What a piece of a page says."""
    markup = re.sub(r"<(svg|script|annotation)\b.*?</\1>", "", markup, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def unnumbered(words: str, chapter: Chapter) -> str:
    """A name without "Next" or "Before" and the chapter's number, as places write them."""
    return re.sub(rf"^(?:(?:Next|Before) )?(?:{chapter.number}(?:\.| ·) )?", "", words)


# --- in the sources -------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_a_lesson_is_called_as_in_the_catalogue(chapter: Chapter) -> None:
    assert outline_of(ROOT / f"{chapter.document}.md").title == chapter.title


def test_no_two_chapters_have_one_name() -> None:
    assert len({chapter.title for chapter in CHAPTERS}) == len(CHAPTERS)


def test_the_contents_call_parts_as_the_catalogue_does_and_keep_its_order() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    lessons = {
        part["caption"]: [entry["file"] for entry in part["chapters"]]
        for part in toc["parts"]
        if any(entry["file"].startswith("chapters/") for entry in part["chapters"])
    }
    wanted = {
        part.title: [chapter.document for chapter in CHAPTERS if chapter.part == part.id]
        for part in PARTS
    }
    assert list(lessons.items()) == list(wanted.items())


def test_how_to_use_says_what_sections_are() -> None:
    section = outline_of(ROOT / "book/how_to_use.md").titled("How a section goes")
    assert section
    assert re.findall(r"^\d\. \*\*(.+?)\*\*", section.text, re.M) == list(checklist.ORDER)


# --- in the pages ---------------------------------------------------------------------------------


def links(name: str, page: str) -> Iterator[tuple[Chapter, str]]:
    """The chapters that a page links, sections of chapters aside, and what the links say."""
    for address, words in LINK.findall(page):
        if not re.match(r"[a-z]+:", address):
            target = urljoin(f"{name}.html", html.unescape(address))
            if target in BY_PAGE:
                yield BY_PAGE[target], text(words)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("whole_book")
def test_a_link_that_names_a_chapter_has_its_name(site: Site, name: str) -> None:
    """Prose may say "the first chapter" or "chapter 17": what begins with a small letter."""
    page = (site.folder / f"{name}.html").read_text("utf8")
    page = re.sub(r'<p class="tfv-start">.*?</p>', "", page, flags=re.S)  # "Start: a week"
    found = {
        (unnumbered(words, chapter), chapter.title)
        for chapter, words in links(name, page)
        if not words[:1].islower() and words != f"Chapter {chapter.number}"
    }
    assert len(found) >= len(CHAPTERS) - 1, "the contents stand on every page, but for its own"
    assert not {(said, title) for said, title in found if said != title}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.usefixtures("whole_book")
def test_a_list_names_every_chapter(site: Site, name: str) -> None:
    page = (site.folder / f"{name}.html").read_text("utf8")
    said = {re.sub(r"^\d+(?:\.| ·) ", "", text(words)) for words in re.findall(LISTS[name], page)}
    assert {chapter.title for chapter in CHAPTERS} <= said


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
@pytest.mark.usefixtures("whole_book")
def test_a_page_says_its_name_and_its_part(site: Site, chapter: Chapter) -> None:
    page = (site.folder / f"{chapter.document}.html").read_text("utf8")
    part = next(part.title for part in PARTS if part.id == chapter.part)
    (heading,) = re.findall(r"<h1>(.*?)<a class=\"headerlink\"", page, re.S)
    assert unnumbered(text(heading), chapter) == chapter.title
    (title,) = re.findall(r"<title>(.*?)</title>", page)
    assert text(title).startswith(f"{chapter.title} · ")
    (shared,) = re.findall(r'<meta property="og:title" content="([^"]*)">', page)
    assert html.unescape(shared) == chapter.title
    (above,) = re.findall(r'<p class="tf-eyebrow">(.*?)</p>', page)
    assert text(above) == f"Chapter {chapter.number} · {part}"


@pytest.mark.usefixtures("whole_book")
def test_the_search_and_the_self_test_know_the_same_names(site: Site) -> None:
    script = (site.folder / "_static/search.js").read_text("utf8")
    index = json.loads(script.removeprefix("window.tfvizSearch = ").rstrip().removesuffix(";"))
    named = {page: title for page, title, _ in index}
    assert {c.document: named[c.document] for c in CHAPTERS} == {
        c.document: c.title for c in CHAPTERS
    }
    page = (site.folder / "book/self_test.html").read_text("utf8")
    asked = {html.unescape(title) for title in re.findall(r'data-tf-title="([^"]*)"', page)}
    assert asked == {f"{chapter.number}. {chapter.title}" for chapter in CHAPTERS}


@pytest.mark.usefixtures("whole_book")
def test_no_key_of_a_paper_is_in_what_the_search_shows(site: Site) -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book/references.bib").read_text("utf8"), re.M)
    keys = [key for key in keys if re.search(r"\d{4}", key)]
    script = (site.folder / "_static/search.js").read_text("utf8")
    index = json.loads(script.removeprefix("window.tfvizSearch = ").rstrip().removesuffix(";"))
    shown = " ".join(place[3] for _, _, places in index for place in places)
    words = {*re.findall(r"[\w-]+", shown)}
    assert len(keys) > 50 and not words & {*keys}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
@pytest.mark.usefixtures("whole_book")
def test_a_notebook_begins_with_the_name(site: Site, chapter: Chapter) -> None:
    file = Path(site.folder, "notebooks", f"{chapter.document}.ipynb")
    cells = json.loads(file.read_text("utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert outline("\n\n".join(texts)).title == chapter.title


def test_the_catalogue_gives_mechanisms_the_names_of_their_chapters() -> None:
    for row in catalogue.MECHANISMS:
        (chapter,) = (one for one in CHAPTERS if one.number == row.chapter_number)
        assert row.chapter_title == chapter.title
