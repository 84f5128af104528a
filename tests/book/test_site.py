"""The built book in a real browser that reaches no other host (`visits`), and its files as text."""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import book_heights
import pytest
import reference_pages
import tfviz_book
import yaml
from book.conftest import ROOT, Site
from book.visits import DESK, LESSONS, PAGES, PHONE
from book_heights import drawn, guessed, height, reserved
from book_pages import lighter
from book_reading import bar, beside, tools
from bs4 import BeautifulSoup
from PIL import Image

from tfviz_lessons.lesson import Exercise, read

# kilobytes, gzipped as a server would; fonts are compressed already
TEXT, FORMULAS, EXPLORERS = 120, 200, 350


# --- in the browser -------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_nothing_to_complain_of(visits: Any, name: str, where: Any) -> None:
    visit = visits(name, where)
    assert not visit.complaints
    assert not visit.foreign


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(visits: Any, name: str, where: Any) -> None:
    assert not visits(name, where).violations


@pytest.mark.parametrize("name", PAGES)
def test_nothing_moves_while_a_page_comes_to_life(visits: Any, name: str) -> None:
    shifts = visits(name).shifts
    assert sum(shift["value"] for shift in shifts) < 0.02, shifts


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_a_page_without_scrolling_sideways(visits: Any, name: str) -> None:
    assert visits(name, PHONE).wide == 390


@pytest.mark.parametrize("name", LESSONS)
def test_code_needs_no_scrolling_on_a_phone(visits: Any, name: str) -> None:
    assert not visits(name, PHONE).sideways


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_formulas_have_the_size_of_their_text(visits: Any, name: str, where: Any) -> None:
    """KaTeX's own style sheet sets them a fifth larger; no displayed one has to be scrolled."""
    assert not visits(name, where).formulas


@pytest.mark.parametrize("name", PAGES)
def test_weight_of_a_page(visits: Any, name: str) -> None:
    visit = visits(name)
    limit = FORMULAS if "formula" in visit.kinds else TEXT
    limit = EXPLORERS if visit.kinds & {"explorer", "picture"} else limit
    total = sum(visit.files.values())
    assert total <= limit * 1000, sorted(visit.files.items(), key=lambda item: -item[1])[:8]


@pytest.mark.parametrize("name", LESSONS)
def test_what_is_far_away_is_not_laid_out(visits: Any, name: str) -> None:
    """A slow phone lays out 2,000 elements of a lesson in time, not all 20,000."""
    assert visits(name, PHONE).drawn < 3000


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", LESSONS)
def test_heights_of_what_is_far_away_are_guessed(visits: Any, name: str, where: Any) -> None:
    """Of the page within 15 %, so that its scrollbar tells the truth; and of most sections."""
    guesses = visits(name, where).guesses
    assert len(guesses) > 5
    whole = sum(guess for guess, _ in guesses) / sum(height for _, height in guesses)
    assert 0.85 < whole < 1.15, f"{whole:.2f} of the height"
    wrong = [(guess, height) for guess, height in guesses if abs(guess / height - 1) > 0.15]
    assert len(wrong) <= 0.25 * len(guesses), wrong


def test_a_guess_knows_forms_folds_and_what_is_reserved() -> None:
    style = "calc(40rem + clamp(0rem, 999 * (676px - 100cqw), 20rem))"
    assert (reserved(style, 890), reserved(style, 350)) == (640, 960)
    svg = '<svg class="tfviz-svg{}" role="img" width="{}" height="{}" viewBox="0">'
    forms = svg.format(" tfviz-wide", 700, 200) + svg.format(" tfviz-narrow", 340, 300)
    figure = f'<figure class="tfviz-figure"><div data-from="500">{forms}</div></figure>'
    assert (drawn(figure, book_heights.DESK), drawn(figure, book_heights.PHONE)) == (200, 300)
    two = f'<figure class="tfviz-figure">{2 * svg.format("", 300, 100)}</figure>'
    assert (drawn(two, book_heights.DESK), drawn(two, book_heights.PHONE)) == (100, 216)
    fold = "<details><summary>Deeper</summary><p>Not seen.</p></details>"
    code = '<details class="tf-code"><summary>Code</summary><pre>x\n</pre></details>'
    assert (
        height(f"<p>A line.</p>{fold}{code}", book_heights.DESK)
        == height("<p>A line.</p>", book_heights.DESK) + book_heights.DESK.fold
    )
    inner = f'<section id="b"><h3>B</h3>{fold}</section>'
    page = f'<section id="a"><h2>A</h2>{inner}</section><section id="c"><h2>C</h2></section>'
    assert re.findall('id="(.)" style=.*?--wide: ([0-9]+)px', guessed(page)) == [
        ("b", str(book_heights.DESK.title + book_heights.DESK.fold)),
        ("c", str(book_heights.DESK.title)),
    ]


CELL = """<div class="cell tag_hide-input docutils container">
<details class="admonition hide above-input">
<summary>
<p class="collapsed admonition-title">Show {}</p>
<p class="expanded admonition-title">Hide</p>
</summary>
<div class="cell_input"><pre>{}</pre></div>
</details>
{}</div>"""
SHOWN = '<div class="cell_output"><figure class="tfviz-figure"><svg></svg></figure></div>'


def test_the_code_of_a_picture_is_one_button_after_it() -> None:
    cells = [
        ("how this is drawn", "one", SHOWN),
        ("the code", "check", ""),
        ("the code", "two", ""),
    ]
    drawn, check, alone = (CELL.format(*cell) for cell in cells)
    page = BeautifulSoup(tools(f"{drawn}\n{check}<p>Text</p>{alone}"), "html.parser")
    first, last = page.select(".cell")
    assert [part.name for part in first.find_all(recursive=False)] == ["div", "details"]
    [button] = first.select("summary")
    assert button.get_text() == button["title"] == "How this is drawn"
    assert [pre.get_text() for pre in first.select("details.tf-code pre")] == ["one", "check"]
    assert "is-drawn" in first["class"] and "is-check" in last["class"]
    assert [pre.get_text() for pre in last.select("details.tf-code pre")] == ["two"]


def test_a_page_has_no_colours_of_notebooks() -> None:
    dark = '[data-jp-theme-light="false"] .tfviz-figure,body.dark .tfviz-figure{--tfviz-key:#fff}'
    kept = ".tfviz-figure{container-type:inline-size}"
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><path style="fill:var(--tfviz-key, #304172)" />'
    body = f"<style>{dark}</style>{svg}</svg><style>{dark}{kept}</style>"
    assert lighter(body) == (
        f'<svg><path style="fill:var(--tfviz-key)"/></svg><style>{kept}</style>'
    )


def test_a_place_says_no_more_than_can_be_seen() -> None:
    """A mark that says itself how its edge is drawn, and tenths of a pixel."""
    edge, fill = "stroke:red;stroke-width:0.8", "fill:red"
    figure = (
        '<path id="t0" d="M0 0v4" style="{edge}"/><path id="t1" d="M0 3.26h1" style="{edge}"/>'
        '<use href="#t0" x="{x}" y="2" style="{fill};{edge}"/>'
        '<use href="#t1" x="5" y="{x}" style="{fill};{edge}"/>'
        '<use href="#none" x="5" y="2" style="{fill};{edge}"/><rect rx="0.25" opacity="0.25"/>'
    )
    before = figure.format(edge=edge, fill=fill, x="108.26")
    assert lighter(before) == (
        f'<path id="t0" d="M0 0v4" style="{edge}"/><path id="t1" d="M0 3.2h1" style="{edge}"/>'
        '<use href="#t0" x="108.2" y="2"/>'
        f'<use href="#t1" x="5" y="108.2" style="{fill}"/>'
        f'<use href="#none" x="5" y="2" style="{fill};{edge}"/><rect rx="0.25" opacity="0.25"/>'
    )


def test_only_short_captions_stand_beside_small_pictures() -> None:
    figure = (
        '<figure class="tfviz-figure"><svg class="tfviz-svg{}" width="{}" height="9"></svg>'
        "<figcaption>{}</figcaption></figure>"
    )
    for form, width, caption, is_beside in [
        ("", 400, "Short.", True),
        ("", 700, "Short.", False),
        ("", 400, "Long. " * 50, False),
        (" tfviz-narrow", 400, "No form for a desk.", False),
    ]:
        text = figure.format(form, width, caption)
        assert ("is-beside" in beside(text)) is is_beside, (form, width)
    assert "is-beside" in beside(figure.format("", 300, "") + figure.format("", 900, ""))


def test_the_bar_counts_the_cards() -> None:
    assert bar("<h1>A page</h1>") == "<h1>A page</h1>"
    card = '<aside class="tfv-card"></aside>'
    assert ">1 card only<" in bar(f"<h1>A page</h1>{card}")
    assert ">2 cards only<" in bar(f"<h1>A page</h1>{card}{card}")


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
def test_a_reader_chooses_how_much_is_shown(page: Any, site: Site, where: Any) -> None:
    page.set_viewport_size({"width": where[1], "height": 800})
    page.goto(site.url("chapters/basics/attention"))
    bar = page.get_by_role("group", name="How much of this chapter is shown")
    cards, code = bar.get_by_role("button", name="cards only"), bar.get_by_role("checkbox")
    everything = bar.get_by_role("button", name="open everything")
    height = page.evaluate("document.body.scrollHeight")
    cards.click()
    assert page.url.endswith("#cards") and cards.get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.body.scrollHeight") < height / 3
    assert page.locator(".tf-90").count() == page.locator(".tf-90:visible").count() > 2
    assert not page.locator("h3:visible", has_text="See it").count()
    page.get_by_role("link", name="Read this section").nth(1).click()
    assert page.locator("h3:visible", has_text="See it").count() > 2
    top = "document.querySelector(':target h2').getBoundingClientRect().top"
    page.wait_for_function(f"0 <= {top} && {top} < 200")
    page.goto(f"{site.url('chapters/basics/attention')}?#cards")
    assert cards.get_attribute("aria-pressed") == "true"
    bar.get_by_role("button", name="Whole chapter").click()
    everything.click()
    folds = page.locator(".tf-article :is(.tf-optional, .tf-more, .tf-deeper > details)")
    assert folds.count() == folds.and_(page.locator("[open]")).count() > 5
    assert not page.locator("details[open]:is(.hint, .solution, .tf-code)").count()
    everything.click()
    assert not page.locator(".tf-article details[open]").count()
    code.check()
    assert page.locator(".tf-code").count() == page.locator(".tf-code[open]").count() > 5
    page.goto(site.url("chapters/basics/block"))
    assert code.is_checked() and page.locator(".tf-code[open]").count() > 5
    code.uncheck()
    assert not page.locator(".tf-code[open]").count()
    page.reload()
    assert not code.is_checked() and not page.locator(".tf-code[open]").count()


def test_the_button_for_code_is_large_enough_and_opens_by_keyboard(page: Any, site: Site) -> None:
    page.goto(site.url("chapters/basics/attention"))
    button = page.locator(".is-drawn > .tf-code > summary").first
    box = button.bounding_box()
    assert box["width"] >= 32 and box["height"] >= 32
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator(".is-drawn > .tf-code[open] pre").first.is_visible()


def test_a_card_stands_in_the_margin_of_a_wide_window_only(page: Any, site: Site) -> None:
    page.goto(site.url("chapters/basics/attention"))
    for width, apart in ((1280, True), (1000, False), (390, False)):
        page.set_viewport_size({"width": width, "height": 800})
        card, text = (page.locator(what).first.bounding_box() for what in (".tfv-card", ".tf-90 p"))
        assert (card["x"] > text["x"] + text["width"]) is apart, width
        assert page.locator(".tfv-card .tf-letters").first.is_visible()


@pytest.mark.parametrize("name", LESSONS)
def test_an_optional_exercise_is_one_line(site: Site, name: str) -> None:
    """It holds all of itself, solution and checks too, and nothing of another."""
    page = BeautifulSoup((site.folder / f"{name}.html").read_text("utf-8"), "html.parser")
    lines = page.select("details.tf-optional")
    assert len(lines) == len(page.select(".exercise:-soup-contains('· optional')"))
    for line in lines:
        boxes = line.select(":scope > .exercise:-soup-contains('· optional')")
        assert len(boxes) == len(line.select(".exercise")) == 1
        solutions = line.select("details.solution")
        assert [one["id"] for one in solutions] == [f"{boxes[0]['id']}-solution"]
        assert len(line.select(":scope > .cell.tag_hide-cell")) < 2
        assert not line.select("summary:first-child > :is(a, .tf-math)")
    assert not page.select(".tf-optional + .solution, .tf-optional + .cell.tag_hide-cell")


@pytest.mark.usefixtures("whole_book")
def test_an_address_opens_what_folds(site: Site, browser: Any) -> None:
    page = browser.new_page()
    page.goto(f"{site.url('chapters/heads/behaviour')}#ex-row-floor")
    assert page.locator("details.tf-optional:has(#ex-row-floor)").get_attribute("open") is not None
    page.evaluate("location.hash = '#ex-mixing-share'")
    page.wait_for_selector("details.tf-optional[open] #ex-mixing-share", state="visible")
    deeper = page.locator("section.tf-deeper").first
    page.evaluate("(name) => { location.hash = name; }", deeper.get_attribute("id"))
    deeper.locator("> details[open]").wait_for()
    page.evaluate(BRIEF)
    for name in ("within", "all-else", "its-label"):
        page.evaluate("(name) => { location.hash = name; }", name)
        page.wait_for_selector(".tf-more[open]")
        page.evaluate("document.querySelector('.tf-more').open = false")
    page.close()


BRIEF = """() => document.querySelector(".tf-article > section").insertAdjacentHTML("beforeend", `
  <section id="all-else"><span id="its-label"></span><details class="tf-more">
  <summary><h3>All else</h3></summary><section id="within">Text</section></details></section>`)"""


def test_what_folds_is_printed_whole(site: Site, browser: Any) -> None:
    page = browser.new_page()
    page.goto(site.url("chapters/basics/attention"))
    page.evaluate(BRIEF)
    folds = ":is(.tf-optional, .tf-more, .tf-deeper > details):not([open])"
    folded = page.locator(folds)
    assert page.locator("details.tf-more:not([open])").count()
    before = folded.count()
    assert before > 2
    page.evaluate(
        "(folds) => addEventListener('beforeprint', () => {"
        " window.shut = document.querySelectorAll(folds).length; })",
        folds,
    )
    page.pdf()
    assert page.evaluate("window.shut") == 0
    assert folded.count() == before
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_formula_files_come_with_formulas_only(visits: Any, name: str) -> None:
    """Explorers set theirs when they are drawn."""
    visit = visits(name)
    wanted = bool(visit.kinds & {"formula", "explorer"})
    assert any("katex" in file for file in visit.files) == wanted
    assert not any("mathjax" in file.lower() for file in visit.files)


@pytest.mark.parametrize("name", PAGES)
def test_both_themes_are_painted(visits: Any, name: str) -> None:
    for where, paper in ((DESK, (255, 255, 255)), (PHONE, (20, 24, 30))):
        picture = Image.open(io.BytesIO(visits(name, where).picture)).convert("RGB")
        colours = picture.getcolors(picture.width * picture.height) or []
        assert max(colours)[1] == paper
        assert len(colours) > 20, "the page is blank"


def test_the_colours_chosen_are_kept_on_the_next_page(page: Any, site: Site) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(site.url("book/notation"))
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(theme) == "dark"
    page.goto(site.url("book/glossary"))
    assert page.evaluate(theme) == "dark"
    assert page.get_by_role("button", name="Dark colours").get_attribute("aria-pressed") == "true"


def test_search_finds_sections_and_goes_there(page: Any, site: Site) -> None:
    page.goto(site.url("book/notation"))
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox", name="Search for").fill("atlas")
    page.locator(".tf-search-results a").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/book/atlas.html*")


def test_contents_open_on_a_phone_and_close_with_escape(page: Any, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.url("book/notation"))
    menu, link = page.get_by_role("button", name="Contents"), page.locator("#tf-side a").first
    assert not link.is_visible()
    menu.click()
    link.wait_for(state="visible")
    assert menu.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    page.wait_for_function("!document.documentElement.classList.contains('tf-open')")
    link.wait_for(state="hidden")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_from_a_folder(visits: Any, name: str) -> None:
    """Where phones open it here; that it says nothing there is asked above."""
    assert visits(name, PHONE).heading > 24


@pytest.mark.parametrize(("width", "height", "screens"), [(1280, 800, 1), (390, 844, 2)])
def test_the_landing_pages_explorer_ends_within_so_many_screens(
    page: Any, site: Site, width: int, height: int, screens: int
) -> None:
    """As it is asked and as it is answered, with the words above it."""
    page.set_viewport_size({"width": width, "height": height})
    page.goto(site.url("book/index"))
    host = page.locator(".tfviz-explorer[data-ready]").first
    host.wait_for()
    show = host.get_by_role("button", name="just show me")
    for _ in range(2):
        foot = host.evaluate("(host) => host.getBoundingClientRect().bottom + scrollY")
        assert foot <= screens * height
        if show.count():
            show.click()


def test_a_section_that_is_chosen_shows_its_headings(page: Any, site: Site) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(site.url("chapters/basics/attention"))
    contents = page.locator(".tf-sections")
    assert contents.locator("ul").count() > 3
    assert not contents.locator("ul:visible").count()
    for n in (1, 2):
        contents.locator("> li > a").nth(n).click()
        (shown,) = contents.locator("ul:visible").all()
        titles = shown.locator("> li > a").all_inner_texts()
        assert {"See it", "Build it"} <= set(titles)
        assert contents.locator("> li").nth(n).locator("ul:visible").count() == 1
    shown.get_by_text("Derive it: ").click()
    page.wait_for_function(
        "() => /^Derive it/.test(document.querySelector('.tf-sections ul .is-here')?.textContent)"
    )


def test_search_works_from_a_folder(page: Any, site: Site) -> None:
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site.folder / "book/notation.html").as_uri())
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox", name="Search for").fill("strided")
    page.locator(".tf-search-results a").first.wait_for()
    assert not said


@pytest.mark.parametrize("name", LESSONS)
def test_every_exercise_has_the_row_of_its_kind(visits: Any, name: str) -> None:
    """A box to tick, but where the explorer says itself that the goal is met."""
    in_a_lab = {
        task.label: isinstance(task, Exercise) and task.answer == "explorer"
        for task in read(ROOT / f"{name}.md").tasks
    }
    assert visits(name).ticks == {label: int(not lab) for label, lab in in_a_lab.items()}


SHRUNK = """
async () => {
  const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 15)));
  const found = [];
  for (const math of document.querySelectorAll(".katex-display")) {
    if (!math.checkVisibility()) continue;  // folded away
    math.scrollIntoView({behavior: "instant"});
    for (let n = 0; n < 3; n++) await frame();
    found.push([math.scrollWidth - math.clientWidth, math.style.fontSize]);
  }
  return found;
}
"""


@pytest.mark.usefixtures("whole_book")
def test_wide_equations_shrink_when_they_come_near(page: Any, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.url("chapters/sparse/hashing"))
    found = page.evaluate(SHRUNK)
    assert [over for over, _ in found if over > 1] == []
    assert any(size for _, size in found)


# --- in the files ---------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Anchors, links, pictures and visible text of a page."""

    SILENT = frozenset({"script", "style", "pre", "code", "annotation", "noscript", "head"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.without_alt: list[str] = []
        self.words: list[str] = []
        self.silent: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = dict(attrs)
        if have.get("id"):
            self.ids.append(str(have["id"]))
        self.links += [str(have[name]) for name in ("href", "src") if have.get(name)]
        if tag == "img" and not have.get("alt"):
            self.without_alt.append(str(have))
        if tag == "svg" and have.get("role") == "img" and not have.get("aria-label"):
            self.without_alt.append(str(have))
        if tag in self.SILENT:
            self.silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.silent and self.silent[-1] == tag:
            self.silent.pop()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.words.append(data)


@pytest.fixture(scope="module")
def texts(site: Site) -> dict[str, Reader]:
    """Every page of the site by its path."""
    pages = site.folder.rglob("*.html")
    return {p.relative_to(site.folder).as_posix(): Reader(p.read_text("utf-8")) for p in pages}


@pytest.mark.usefixtures("whole_book")
def test_all_pages_of_the_contents_are_there(texts: dict[str, Reader]) -> None:
    rooms = {reference_pages.page_of(room) for room in reference_pages.rooms()}
    assert set(texts) == {f"{name}.html" for name in {*PAGES, *rooms, "404", "embed"}}


@pytest.mark.usefixtures("whole_book")
def test_links_and_anchors_lead_somewhere(site: Site, texts: dict[str, Reader]) -> None:
    dead = []
    lost = (site.folder / "404.html").read_text("utf-8")
    (root,) = re.findall(r'data-content_root="([^"]*)"', lost)
    for name, page in texts.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                assert link.startswith(("https:", "http:", "mailto:", "data:")), link
                continue
            if name == "404.html":  # it is shown at any depth, so its addresses begin at the root
                assert link.startswith((root, "#")), link
                link = link.removeprefix(root)
            address, anchor = urldefrag(urljoin(name, link.split("?")[0]))
            if "#" in link and not link.split("#")[0]:
                address = name
            target = site.folder / unquote(address)
            if not target.is_file() or (
                anchor and target.suffix == ".html" and unquote(anchor) not in texts[address].ids
            ):
                dead.append(f"{name}: {link}")
    assert not dead


def test_an_anchor_is_there_once(texts: dict[str, Reader]) -> None:
    for name, page in texts.items():
        twice = {anchor for anchor in page.ids if page.ids.count(anchor) > 1}
        assert not twice, name


def test_pictures_have_a_text(texts: dict[str, Reader]) -> None:
    for name, page in texts.items():
        assert not page.without_alt, name


def test_no_source_of_the_text_shows(texts: dict[str, Reader]) -> None:
    raw = re.compile(
        r"\$[^$\s][^$]*\$|\\\(|\\\[|\\[a-zA-Z]{2,}|```|:::|\{[a-z:-]+\}`|\{(?:cite|ref|eq)\b|^\(\w+\)=",
        re.M,
    )
    for name, page in texts.items():
        words = "".join(page.words)
        found = raw.search(words)
        assert not found, f"{name}: {words[max(0, found.start() - 60) : found.end() + 60]!r}"


@pytest.mark.usefixtures("whole_book")
def test_a_changed_style_sheet_is_fetched_again(site: Site) -> None:
    """Its address has a digest of what is in it, on every page, also one that was not written."""
    link = re.compile(r'<link rel="stylesheet" href="(?:\.\./)*_static/([\w.-]+)\?v=(\w*)">')
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:8]
        for file in (site.folder / "_static").glob("*.css")
    }
    assert digests.keys() == {"tfviz.css", "katex.css"}
    for name in PAGES:
        text = (site.folder / f"{name}.html").read_text("utf-8")
        sheets = link.findall(text)
        assert len(sheets) == text.count('rel="stylesheet"') >= 1, name
        assert all(digests[sheet] == version for sheet, version in sheets), name


def test_formulas_are_rendered_and_coloured(site: Site) -> None:
    text = (site.folder / "book" / "notation.html").read_text("utf-8")
    assert text.count('class="katex"') > 30
    assert "katex-error" not in text
    assert "tf-bad-formula" not in text
    for colour in ("tf-q", "tf-k", "tf-v", "tf-a"):
        assert f'class="enclosing {colour}"' in text
    assert re.search("<math[ >]", text), "screen readers need MathML"


@pytest.mark.usefixtures("whole_book")
def test_equations_carry_the_number_of_the_chapter(site: Site, texts: dict[str, Reader]) -> None:
    from tfviz import catalogue

    numbers = {chapter.document: chapter.number for chapter in catalogue.CHAPTERS}
    for name in LESSONS:
        text = (site.folder / f"{name}.html").read_text("utf-8")
        found = re.findall(r'class="eqno" href="#([^"]+)">\(([^)]+)\)', text)
        assert found, f"{name} has no numbered equation"
        assert [number for _, number in found] == [
            f"{numbers[name]}.{k}" for k in range(1, len(found) + 1)
        ]
        assert all(anchor in texts[f"{name}.html"].ids for anchor, _ in found)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_offers_its_notebook(site: Site, name: str) -> None:
    text = (site.folder / f"{name}.html").read_text("utf-8")
    notebook = site.folder / "notebooks" / f"{name}.ipynb"
    assert json.loads(notebook.read_text("utf-8"))["nbformat"] == 4
    assert f'notebooks/{name}.ipynb" download' in text
    colab = re.search(r'href="(https://colab\.research\.google\.com/[^"]+)"', text)
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    home = os.environ.get("GITHUB_REPOSITORY") or urlsplit(config["repository"]["url"]).path[1:]
    if home in tfviz_book.ADDRESS:  # nobody has said where the course is: no button leads there
        assert not colab
        return
    branch = config["sphinx"]["config"]["tfviz_notebooks_branch"]
    assert colab
    assert html.unescape(colab[1]).endswith(f"github/{home}/blob/{branch}/notebooks/{name}.ipynb")


def test_nothing_leads_to_an_address_that_nobody_has_set(site: Site) -> None:
    """No button, no install cell of a notebook, no command of the guide."""
    kinds = {".html", ".ipynb", ".js"}
    files = [path for path in site.folder.rglob("*") if path.suffix in kinds]
    assert {path.suffix for path in files} == kinds
    assert not [path for path in files if tfviz_book.ADDRESS in path.read_text("utf-8")]


@pytest.mark.usefixtures("whole_book")
def test_boxes_and_sources_are_marked(site: Site) -> None:
    text = "".join((site.folder / f"{name}.html").read_text("utf-8") for name in LESSONS)
    for kind in ("try", "differs", "erratum", "measured"):
        assert f"tf-box-{kind}" in text
    assert re.search(r'tf-box-erratum.{0,400}?href="[^"]*errata\.html#erratum-e\d+"', text, re.S)
    assert re.search(
        r"tf-source-where.{0,300}?tfviz/\w+(/\w+)*\.py.{0,60}?, lines \d+ to \d+", text, re.S
    )


def test_only_what_the_pages_need_is_published(site: Site) -> None:
    names = [file.relative_to(site.folder).as_posix() for file in site.folder.rglob("*")]
    unwanted = re.compile(
        r"thebe|require|html-manager|mathjax|fontawesome|bootstrap|\.map$|_sources"
    )
    assert not [name for name in names if unwanted.search(name)]
