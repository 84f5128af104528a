"""Long lists as tools: a filter and jumps within one screen, kept by the address, said aloud."""

from __future__ import annotations

from typing import Any

import pytest
from book.conftest import Site

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "book/*.md",
    "book/*.toml",
)

# page: (words to filter by, field and value of a choice, a jump and where its group begins)
LISTS = {
    "claims": ("memory", ("source", "Weng 2020"), ("9", ".tfv-claims[data-chapter^='9.']")),
    "surveys": ("sparse", None, ("Beyer 2022", "section:has(> h2):has-text('Beyer 2022')")),
    "glossary": ("softmax", None, ("D", "dt:has-text('datastore')")),
    "errata": ("attention", ("source", "Beyer 2022"), ("E20", "#erratum-e20")),
}
ITEMS = {
    "claims": ".tfv-claims[data-chapter] tbody tr",
    "surveys": "main article section section tbody tr",
    "glossary": "dl.glossary > dt",
    "errata": ".tfv-erratum",
}


def shown(page: Any, name: str) -> list[str]:
    """The items that a reader can see."""
    visible = "(all) => all.filter((it) => it.checkVisibility()).map((it) => it.textContent)"
    return page.locator(ITEMS[name]).evaluate_all(visible)


def opened(page: Any, site: Site, name: str, address: str = "") -> Any:
    if not (site.folder / f"book/{name}.html").exists():
        pytest.skip("asks the whole book: TFVIZ_ALL=1")
    page.goto("about:blank")
    page.goto(f"{site.url(f'book/{name}')}{address}")
    return page.locator(".tfv-tool")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", LISTS)
def test_filter_and_jumps_are_within_the_first_screen(
    page: Any, site: Site, name: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    tool = opened(page, site, name)
    box = tool.bounding_box()
    assert box["y"] + box["height"] <= (800 if width == 1280 else 1600)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("name", LISTS)
def test_words_filter_the_address_keeps_them_and_the_count_is_spoken(
    page: Any, site: Site, name: str
) -> None:
    words, choice, _ = LISTS[name]
    tool = opened(page, site, name)
    every = shown(page, name)
    assert tool.get_by_role("status").inner_text().startswith(f"All {len(every)} ")
    tool.get_by_role("searchbox").fill(words)
    found = shown(page, name)
    assert 0 < len(found) < len(every) / 2
    assert {text for text in every if words in text.lower()} <= {*found}
    if choice:
        tool.locator(f"[name={choice[0]}]").select_option(choice[1])
        assert 0 < len(shown(page, name)) < len(found)
        found = shown(page, name)
    count = f"{len(found)} of {len(every)} "
    assert tool.get_by_role("status").inner_text().startswith(count)
    again = opened(page, site, name, page.evaluate("location.hash"))
    assert shown(page, name) == found and again.get_by_role("searchbox").input_value() == words
    again.get_by_role("button", name="show all").click()
    page.wait_for_function("!location.hash")
    assert shown(page, name) == every


@pytest.mark.parametrize("name", LISTS)
def test_what_holds_nothing_is_not_shown(page: Any, site: Site, name: str) -> None:
    tool = opened(page, site, name)
    tool.get_by_role("searchbox").fill("xyzzyplugh")
    assert not shown(page, name)
    assert tool.get_by_role("status").inner_text().startswith("0 of ")
    assert not tool.locator(".tfv-jumps a").evaluate_all(
        "(all) => all.filter((link) => link.checkVisibility()).length"
    )
    tables = page.locator(".tfv-survey, .tfv-claims:not(.is-counts)")
    assert not tables.evaluate_all("(all) => all.filter((it) => it.checkVisibility()).length")


@pytest.mark.parametrize("name", LISTS)
def test_a_jump_goes_there_with_the_focus_and_keeps_the_filter(
    page: Any, site: Site, name: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 1280, "height": 800})
    words, there = LISTS[name][2]
    tool = opened(page, site, name)
    first = page.locator(f"main article {there}").first
    tool.get_by_role("searchbox").fill("e")
    kept = page.evaluate("location.hash")
    tool.locator(".tfv-jumps a", has_text=words).and_(tool.get_by_text(words, exact=True)).press(
        "Enter"
    )
    box, bar = first.bounding_box(), tool.bounding_box()
    assert bar["y"] + bar["height"] <= box["y"] + 1 and box["y"] < 400
    assert first.evaluate("(it) => it === document.activeElement")
    assert page.evaluate("location.hash") == kept


def test_a_link_to_what_is_filtered_away_shows_it(page: Any, site: Site) -> None:
    tool = opened(page, site, "claims")
    tool.get_by_role("searchbox").fill("rotary")
    page.evaluate("location.hash = '#claims-longformer'")
    page.wait_for_function("document.getElementById('claims-longformer').checkVisibility()")
    assert tool.get_by_role("status").inner_text().startswith("All ")


@pytest.mark.parametrize("name", LISTS)
def test_without_a_script_a_list_is_complete(browser: Any, site: Site, name: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    assert opened(page, site, name).count() == 0
    items = page.locator(ITEMS[name])
    assert items.count() > 50 and items.last.is_visible()
    context.close()
