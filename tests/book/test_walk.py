"""A path walks along: a bar on every page says which step this is, and leads to the next."""

from __future__ import annotations

import json
from typing import Any

import paths
import pytest
from book.conftest import ROOT, Site

from tfviz import catalogue

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "book/*.md",
    "book/paths.toml",
    "chapters/basics/*.md",
)
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
ATTENTION = "chapters/basics/attention"


@pytest.fixture(scope="module")
def data(site: Site) -> dict[str, Any]:
    text = (site.folder / paths.SCRIPT).read_text("utf-8")
    found: dict[str, Any] = json.loads(
        text.removeprefix("window.tfvizPaths = ").removesuffix(";\n")
    )
    return found


@pytest.fixture
def walker(page: Any, site: Site) -> Any:
    """On the first page of the afternoon, come from the landing page."""
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(site.url("index"))
    assert not page.locator(".tf-path").is_visible()
    page.get_by_role("link", name="Start: an afternoon").click()
    page.wait_for_url(f"**/{ATTENTION}.html#soft-dictionary")
    return page


def bar(page: Any) -> Any:
    return page.get_by_role("navigation", name="Your path: An afternoon")


def says(page: Any, words: str) -> None:
    bar(page).get_by_text(words, exact=True).wait_for()


def kept(page: Any) -> Any:
    return page.evaluate("JSON.parse(localStorage.getItem('tfviz-path'))")


# --- the data -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_book")
def test_the_script_has_the_stops_of_the_file_in_order(data: dict[str, Any]) -> None:
    ways = paths.load()
    assert [*data] == [*ways]
    for name, way in ways.items():
        stops = [stop for step in way.steps for stop in step.stops]
        assert data[name]["title"] == way.title
        assert data[name]["stops"] == [
            [f"{stop.document}.html{stop.anchor}", stop.title, stop.minutes] for stop in stops
        ]
        assert sum(stop.minutes for stop in stops) == sum(step.reading for step in way.steps)


@pytest.mark.usefixtures("whole_book")
def test_every_stop_is_there_under_its_own_name(data: dict[str, Any], site: Site) -> None:
    titles = {f"{one.document}.html": f"{one.number}. {one.title}" for one in catalogue.CHAPTERS}
    for way in data.values():
        for address, title, minutes in way["stops"]:
            file, _, anchor = address.partition("#")
            page = (site.folder / file).read_text("utf-8")
            assert (f'id="{anchor}"' in page) if anchor else title == titles.get(file, title)
            assert title and minutes > 0


def test_the_week_and_the_term_end_with_what_efficiency_buys() -> None:
    for name in ("week", "term"):
        stops = [stop for step in paths.load()[name].steps for stop in step.stops]
        assert any(stop.title == "32. What efficiency buys" for stop in stops)


# --- walking --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_book")
def test_it_walks_from_the_first_step_to_the_last(walker: Any, data: dict[str, Any]) -> None:
    stops = data["afternoon"]["stops"]
    for n, (address, _, _) in enumerate(stops, 1):
        says(walker, f"An afternoon, step {n} of {len(stops)}")
        assert walker.url.endswith(address)
        assert kept(walker) == {"path": "afternoon", "at": n - 1}
        link = bar(walker).get_by_role("link")
        if n < len(stops):
            _, title, minutes = stops[n]
            assert link.inner_text() == f"Next: {title} ({minutes} min)"
            link.press("Enter")
            walker.wait_for_url(f"**/{stops[n][0]}")
    assert "other paths" in link.inner_text()


def test_a_page_off_the_path_says_how_to_go_back(walker: Any, site: Site) -> None:
    walker.goto(site.url("book/notation"))
    link = bar(walker).get_by_role("link")
    link.get_by_text("Back to: Attention as a soft key–value lookup").wait_for()
    link.click()
    walker.wait_for_url(f"**/{ATTENTION}.html#soft-dictionary")
    assert kept(walker)["at"] == 0


def test_the_keyboard_comes_to_the_bar_without_moving_the_page(walker: Any) -> None:
    walker.locator("#scaled-dot-product-attention").evaluate("(it) => it.scrollIntoView()")
    walker.get_by_text("step 2 of").wait_for()
    before = walker.evaluate("scrollY")
    bar(walker).get_by_role("link").focus()
    walker.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
    assert walker.evaluate("scrollY") == before > 0
    walker.get_by_text("step 2 of").wait_for()


def test_scrolling_to_the_next_section_is_the_next_step(walker: Any) -> None:
    walker.locator("#scaled-dot-product-attention").evaluate("(it) => it.scrollIntoView()")
    walker.get_by_text("step 2 of").wait_for()
    assert kept(walker)["at"] == 1


def test_leaving_forgets_the_path_and_keeps_the_focus(walker: Any, site: Site) -> None:
    bar(walker).get_by_role("button", name="Leave the path").press("Enter")
    assert not walker.locator(".tf-path").is_visible() and kept(walker) is None
    assert walker.evaluate("document.activeElement.id") == "main-content"
    walker.goto(site.url("book/notation"))
    assert not walker.locator(".tf-path").is_visible()


@pytest.mark.usefixtures("whole_book")
@pytest.mark.parametrize("name", ["afternoon", "week", "term"])
def test_every_path_starts_on_the_page_of_paths(
    page: Any, site: Site, name: str, data: dict[str, Any]
) -> None:
    page.goto(site.url("book/paths"))
    page.locator(f"[data-tf-path={name}]").click()
    stops = data[name]["stops"]
    page.get_by_text(f"{data[name]['title']}, step 1 of {len(stops)}").wait_for()
    assert page.url.endswith(stops[0][0])


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_moves_is_hidden_or_wrong_with_a_bar(
    walker: Any, site: Site, width: int, theme: str
) -> None:
    walker.emulate_media(color_scheme=theme)
    walker.set_viewport_size({"width": width, "height": 800})
    walker.add_init_script(
        "window.moved = 0; new PerformanceObserver((list) => {"
        " for (const entry of list.getEntries())"
        " window.moved += entry.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    walker.goto(site.url("book/notation"))
    bar(walker).get_by_role("link").wait_for()
    walker.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 200)))")
    assert walker.evaluate("window.moved") < 0.01
    assert walker.evaluate("document.documentElement.scrollWidth") == width
    for part in bar(walker).locator("a, button").all():
        box = part.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] >= 24
    walker.add_script_tag(path=str(AXE))
    found = walker.evaluate("async () => (await axe.run('.tf-path')).violations.map((v) => v.id)")
    assert not found
    walker.emulate_media(media="print")
    assert not walker.locator(".tf-path").is_visible()


@pytest.mark.parametrize(
    "said", ["", "{", "null", '{"path":"gone","at":0}', '{"path":"week"}', "7"]
)
def test_what_is_stored_wrongly_is_no_path(page: Any, site: Site, said: str) -> None:
    page.goto(site.url("index"))
    page.evaluate("(said) => localStorage.setItem('tfviz-path', said)", said)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(site.url("book/notation"), wait_until="networkidle")
    assert not page.locator(".tf-path").is_visible() and not errors


def test_a_private_window_goes_on_without(page: Any, site: Site) -> None:
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage',"
        " { get() { throw new DOMException('denied', 'SecurityError'); } });"
    )
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(site.url("index"))
    page.get_by_role("link", name="Start: an afternoon").click()
    page.wait_for_url(f"**/{ATTENTION}.html#soft-dictionary")
    assert not page.locator(".tf-path").is_visible() and not errors
