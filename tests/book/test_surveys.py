"""The surveys as the way in: every heading leads to a section, every claim has its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from book.conftest import Site
from book_search import own_names
from surveys import CLAIMS, HEADINGS, VERDICTS, load_claims, load_headings, taught_patterns

from tfviz import catalogue, patterns

ROOT = Path(__file__).parents[2]
CLAIM = """
[[claim]]
id = "a"
mechanism = "rope"
sources = ["Weng 2023"]
heading = "Rotary"
says = "It turns."
kind = "fact"
"""


def test_every_mechanism_has_a_heading_and_every_pattern_a_section() -> None:
    headings = load_headings(ROOT / HEADINGS)
    assert {name for heading in headings for name in heading.mechanisms} == {
        row.id for row in catalogue.MECHANISMS
    }
    assert taught_patterns(ROOT / HEADINGS).keys() == patterns.FAMILIES.keys()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('source = "Weng 2020"\ntitle = "X"', "give mechanisms, a term or a page"),
        ('source = "Weng 2020"\ntitle = "X"\nterm = "a"\npage = "b"', "only one of them"),
        ('source = "Someone"\ntitle = "X"\nterm = "a"', "'X': unknown source"),
    ],
)
def test_a_heading_that_leads_nowhere_is_refused(tmp_path: Path, entry: str, words: str) -> None:
    file = tmp_path / "headings.toml"
    file.write_text(f"[[heading]]\n{entry}\n", "utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        load_headings(file)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ('verdict = "true"', "verdict = 'true'; it is one of"),
        ('verdict = "reproduced"', "a settled claim names its place"),
        ('verdict = "pending"\nplace = "rope"', "a pending one has none"),
        ('verdict = "paper"\nplace = "rope"', "needs a note"),
        ('verdict = "wrong"\nplace = "rope"', "is its erratum"),
    ],
)
def test_a_verdict_that_says_too_little_is_refused(
    tmp_path: Path, verdict: str, words: str
) -> None:
    file = tmp_path / "claims.toml"
    file.write_text(CLAIM + verdict + "\n", "utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        load_claims(file)


def test_a_claim_is_pending_as_long_as_its_mechanism_is_planned() -> None:
    claims = load_claims(ROOT / CLAIMS)
    assert len(claims) == 390
    for claim in claims:
        built = not claim.mechanism or catalogue.get(claim.mechanism).built
        assert (claim.verdict == "pending") != built, f"{claim.id}: {claim.verdict}"


@pytest.mark.usefixtures("whole_book")
def test_the_places_of_verdicts_are_in_the_pages(site: Site) -> None:
    page = (site.folder / "book/claims.html").read_text("utf-8")
    for claim in load_claims(ROOT / CLAIMS):
        if claim.place:
            anchor = claim.place.replace("_", "-")
            assert re.search(rf'href="[^"]*#{re.escape(anchor)}"', page), claim.id
    for title, _ in VERDICTS.values():
        assert title.replace("'", "’") in page


@pytest.fixture(scope="module")
def first_place(browser: Any, site: Site) -> Callable[[list[str]], list[str]]:
    """What the search names first for each of these words, as page#anchor."""
    page = browser.new_page()
    page.goto(site.url("book/surveys"))
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="Search for").fill("attention")
    page.locator(".tf-search-results a").first.wait_for()

    def ask(queries: list[str]) -> list[str]:
        links = []
        for query in queries:
            link = page.evaluate(
                """async (query) => {
                    const field = document.querySelector('.tf-search input');
                    field.value = query;
                    field.dispatchEvent(new Event('input', {bubbles: true}));
                    await new Promise((done) => setTimeout(done));
                    return document.querySelector('.tf-search-results a')?.href ?? '';
                }""",
                query,
            )
            links.append(re.sub(r"^.*?/course/", "", link))
        return links

    return ask


@pytest.mark.usefixtures("whole_book")
def test_every_heading_in_its_own_words_finds_its_section_first(
    first_place: Callable[[list[str]], list[str]], site: Site
) -> None:
    headings = load_headings(ROOT / HEADINGS)
    answers: dict[str, set[str]] = {}
    glossary = (site.folder / "book/glossary.html").read_text("utf-8")
    terms = dict(re.findall(r'<dt id="([^"]+)">(.*?)<', glossary))
    anchors = {title.strip(): anchor for anchor, title in terms.items()}
    for heading in headings:
        here = answers.setdefault(heading.title, set())
        for name in heading.mechanisms:
            row = catalogue.get(name)
            section = f"{row.document}.html#{name.replace('_', '-')}"
            here.add(section if row.built else f"book/atlas.html#atlas-{name}")
        if heading.term:
            here.add(f"book/glossary.html#{anchors[heading.term]}")
        if heading.page:
            here.add(f"{heading.page}.html")
    titles = list(answers)
    lost = [
        f"{title!r} → {place}"
        for title, place in zip(titles, first_place(titles), strict=True)
        if place not in answers[title]
    ]
    assert not lost, f"{len(lost)} of {len(titles)} headings lead elsewhere first: {lost}"


@pytest.mark.usefixtures("whole_book")
def test_every_mechanism_is_found_first_by_its_names(
    first_place: Callable[[list[str]], list[str]],
) -> None:
    """Also those that are not built yet, which have a row of the atlas. A survey's heading wins."""
    headings = {heading.title.lower() for heading in load_headings(ROOT / HEADINGS)}
    wanted: dict[str, list[str]] = {}
    for row in catalogue.MECHANISMS:
        section = f"{row.document}.html#{row.id.replace('_', '-')}"
        for name in own_names(row):
            if name.lower() not in headings:
                place = section if row.built else f"book/atlas.html#atlas-{row.id}"
                wanted.setdefault(name.lower(), []).append(place)
    assert len(wanted) > 200
    found = dict(zip(wanted, first_place(list(wanted)), strict=True))
    lost = [f"{name!r} → {found[name]}" for name, places in wanted.items()
            if found[name] not in places]  # fmt: skip
    assert not lost, f"{len(lost)} of {len(wanted)} names lead elsewhere first: {lost}"


@pytest.mark.usefixtures("whole_book")
def test_patterns_and_their_parameters_find_the_section_that_teaches_them(
    first_place: Callable[[list[str]], list[str]],
) -> None:
    names = list(patterns.FAMILIES)
    taught = taught_patterns(ROOT / HEADINGS)
    places = dict(zip(names, first_place(names), strict=True))
    lost = {n: at for n, at in places.items() if not at.endswith(taught[n].replace("_", "-"))}
    assert not lost


@pytest.mark.usefixtures("whole_book")
def test_some_of_the_words_are_better_than_nothing(page: Any, site: Site) -> None:
    page.goto(site.url("book/notation"))
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="Search for").fill("rotary xyzzy")
    page.locator(".tf-search-results a").first.wait_for()
    assert "Rotary" in page.locator(".tf-search-results a").first.inner_text()
    assert page.locator(".tf-search-count").inner_text().startswith("No place has all")
