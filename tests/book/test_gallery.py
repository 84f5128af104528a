"""Every component of the book on one page, in both themes and widths: axe finds nothing there.

The page is made of the built ones: of each kind of element, by its name and classes, the first
piece of text that has one. So a component that a chapter begins to use is here without a line more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import patience
import pytest
from book.conftest import LESSONS, Site
from book.visits import LAZY, SCROLL, violations

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "tfviz/explorers/kit/**",
    "tfviz/plots/**",
)

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
KINDS = ("table", "pre", "details", ".katex", "figure", "svg", "input")
HEIGHTS = """
(hosts) => hosts.map((host) => [
  host.dataset.explorer,
  host.querySelector(".tfx").getBoundingClientRect().height,
  parseFloat(getComputedStyle(host.querySelector(".tfviz-explorer-body")).minHeight),
])
"""
BAD = ("error", "warning")


@pytest.fixture(scope="module")
def gallery(browser: Any, site: Site) -> Iterator[str]:
    """The page of all components, as HTML."""
    page = browser.new_page()
    yield page.evaluate(
        COLLECT, [(site.folder / f"{name}.html").read_text("utf-8") for name in LESSONS]
    )
    page.close()


@dataclass
class Shown:
    """What was on the page when all of it was there."""

    said: list[str] = field(default_factory=list)
    explorers: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)
    heights: list[list[Any]] = field(default_factory=list)  # name, height, room kept for it
    wide: int = 0
    violations: list[str] = field(default_factory=list)


def show(browser: Any, site: Site, gallery: str, theme: str, width: int) -> Shown:
    shown = Shown()
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.on("console", lambda m: shown.said.append(m.text) if m.type in BAD else None)
    page.on("pageerror", lambda error: shown.said.append(str(error)))
    page.route(
        site.url(FRAME),
        lambda route: route.fulfill(body=gallery, content_type="text/html; charset=utf-8"),
    )
    page.goto(site.url(FRAME))
    page.evaluate(SCROLL)
    page.wait_for_function(LAZY, timeout=patience.milliseconds())
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    shown.explorers = page.locator(".tfviz-explorer").evaluate_all(
        "(hosts) => hosts.map((host) => host.dataset.explorer)"
    )
    shown.kinds = {what: page.locator(what).count() for what in KINDS}
    shown.heights = page.locator(".tfviz-explorer[data-ready]").evaluate_all(HEIGHTS)
    shown.wide = page.evaluate("document.documentElement.scrollWidth")
    shown.violations = violations(page)
    context.close()
    return shown


@pytest.fixture(scope="module")
def shown(browser: Any, site: Site, gallery: str) -> Iterator[Any]:
    """shown(theme, width): looked at when first asked for, then remembered."""
    yield cache(partial(show, browser, site, gallery))


@pytest.mark.usefixtures("whole_book")
def test_every_explorer_and_every_kind_of_box_is_in_the_gallery(shown: Any) -> None:
    from tfviz.explorers import ALL

    found = shown("light", 1280)
    # no chapter's: test_site, test_your_own_mask, test_baseline_lost, test_model_anatomy,
    # test_story_model
    elsewhere = {"strided_pattern", "your_own_mask", "baseline_lost", "model_anatomy"}
    elsewhere |= {"story_model"}
    assert set(found.explorers) == set(ALL) - elsewhere
    for what, count in found.kinds.items():
        assert count, f"no {what} in the gallery"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.usefixtures("whole_book")
def test_no_explorer_is_higher_than_the_room_kept_for_it(shown: Any, width: int) -> None:
    """In a column as wide as the book's, with its fonts: else what is below moves."""
    heights = shown("light", width).heights
    assert heights
    assert not [(name, is_, kept) for name, is_, kept in heights if is_ > kept + 1]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.usefixtures("whole_book")
def test_axe_finds_nothing_in_the_gallery(shown: Any, theme: str, width: int) -> None:
    found = shown(theme, width)
    assert not found.violations
    assert not found.said
    assert found.wide == width
