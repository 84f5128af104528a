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

import pytest
import reference_pages
import tfviz_book
import yaml
from book.conftest import ROOT, Site
from book.visits import DESK, LESSONS, PAGES, PHONE
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
    limit = EXPLORERS if "explorer" in visit.kinds else limit
    total = sum(visit.files.values())
    assert total <= limit * 1000, sorted(visit.files.items(), key=lambda item: -item[1])[:8]


@pytest.mark.parametrize("name", LESSONS)
def test_what_is_far_away_is_not_laid_out(visits: Any, name: str) -> None:
    """A slow phone lays out 2,000 elements of a lesson in time, not all 20,000."""
    assert visits(name, PHONE).drawn < 3000


@pytest.mark.parametrize("name", LESSONS)
def test_heights_of_what_is_far_away_are_guessed(visits: Any, name: str) -> None:
    """Rather too much than too little: what does not fit would lie over the next section."""
    guesses = visits(name, PHONE).guesses
    assert len(guesses) > 5
    short = [(guess, height) for guess, height in guesses if height > guess + 300]
    assert len(short) <= 0.15 * len(guesses), short
    assert sum(guess for guess, _ in guesses) < 2.2 * sum(height for _, height in guesses)


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
    page.close()


def test_an_optional_exercise_is_printed_whole(site: Site, browser: Any) -> None:
    page = browser.new_page()
    page.goto(site.url("chapters/basics/attention"))
    folded = page.locator("details.tf-optional:not([open])")
    before = folded.count()
    assert before > 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert folded.count() == before
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_formula_files_come_with_formulas_only(visits: Any, name: str) -> None:
    visit = visits(name)
    assert any("katex" in file for file in visit.files) == ("formula" in visit.kinds)
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
        assert {"See it", "Derive it", "Build it"} <= set(titles)
        assert contents.locator("> li").nth(n).locator("ul:visible").count() == 1
    shown.get_by_text("Derive it").click()
    page.wait_for_function(
        "() => document.querySelector('.tf-sections ul .is-here')?.textContent === 'Derive it'"
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
    assert set(texts) == {f"{name}.html" for name in {*PAGES, *rooms, "404"}}


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
    assert "<math " in text, "screen readers need MathML"


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
