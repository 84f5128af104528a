"""Every component of the book on one page, in both themes and widths: axe finds nothing there.

The page is made of the built ones: of each kind of element, by its name and classes, the first
piece of text that has one. So a component that a chapter begins to use is here without a line more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import LESSONS, Site
from test_site import LAZY, PATIENCE, SCROLL, violations

FRAME = "chapters/gallery/page"  # as deep as the chapters: their addresses hold
COLLECT = """
(texts) => {
  const pages = texts.map((text) => new DOMParser().parseFromString(text, "text/html"));
  const kind = (node) => {  // name and classes; in formulas, only colours count
    if (node.dataset?.explorer) return `explorer ${node.dataset.explorer}`;
    const names = [...node.classList].sort();
    if (!node.closest(".katex-html")) return [node.localName, ...names].join(" ");
    return ["formula", ...names.filter((name) => name.startsWith("tf-"))].join(" ");
  };
  const seen = new Set(), ids = new Set(), files = new Map(), chosen = [];
  for (const page of pages) {
    for (const file of page.head.querySelectorAll("link, script")) {
      const key = file.getAttribute("href") ?? file.getAttribute("src") ?? file.textContent;
      if (!files.has(key)) files.set(key, file);
    }
    for (const piece of page.querySelectorAll("main section > :not(section, h1)")) {
      const inside = [piece, ...piece.querySelectorAll("*")]
        .filter((node) => !node.parentElement.closest("svg, math")).map(kind);
      if (inside.every((name) => seen.has(name))) continue;
      inside.forEach((name) => seen.add(name));
      chosen.push(piece);
    }
  }
  const frame = pages[0], first = frame.querySelector("main section");
  frame.head.querySelectorAll("link, script").forEach((file) => file.remove());
  frame.head.append(...files.values());
  const heading = frame.createElement("h1");
  heading.textContent = "Gallery";
  first.replaceChildren(heading, ...chosen);
  for (const node of frame.querySelectorAll("[id]")) {
    if (ids.has(node.id)) node.removeAttribute("id"); else ids.add(node.id);
  }
  return "<!DOCTYPE html>" + frame.documentElement.outerHTML;
}
"""


@pytest.fixture(scope="module")
def gallery(browser: Any, site: Site) -> Iterator[str]:
    """The page of all components, as HTML."""
    page = browser.new_page()
    yield page.evaluate(
        COLLECT, [(site.folder / f"{name}.html").read_text("utf-8") for name in LESSONS]
    )
    page.close()


@pytest.fixture
def shown(page: Any, site: Site, gallery: str) -> Any:
    """shown(theme, width): the page when all of it is there; the test fails if it complains."""
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.route(
        site.url(FRAME),
        lambda route: route.fulfill(body=gallery, content_type="text/html; charset=utf-8"),
    )

    def show(theme: str, width: int) -> Any:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(site.url(FRAME))
        page.evaluate(SCROLL)
        page.wait_for_function(LAZY, timeout=PATIENCE)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        return page

    yield show
    assert not said


def test_every_explorer_and_every_kind_of_box_is_in_the_gallery(shown: Any) -> None:
    from tfviz.explorers import ALL

    page = shown("light", 1280)
    explorers = page.locator(".tfviz-explorer").evaluate_all(
        "(hosts) => hosts.map((host) => host.dataset.explorer)"
    )
    assert set(explorers) == set(ALL)
    for what in ("table", "pre", "details", ".katex", "figure", "svg", "input"):
        assert page.locator(what).count(), f"no {what} in the gallery"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_explorer_is_higher_than_the_room_kept_for_it(shown: Any, width: int) -> None:
    """In a column as wide as the book's, with its fonts: else what is below moves."""
    hosts = shown("light", width).locator(".tfviz-explorer[data-ready]")
    heights = hosts.evaluate_all(
        "(hosts) => hosts.map((host) => [host.dataset.explorer,"
        " host.querySelector('.tfx').getBoundingClientRect().height,"
        " parseFloat(getComputedStyle(host.querySelector('.tfviz-explorer-body')).minHeight)])"
    )
    assert heights
    assert not [(name, is_, kept) for name, is_, kept in heights if is_ > kept + 1]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_gallery(shown: Any, theme: str, width: int) -> None:
    page = shown(theme, width)
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
