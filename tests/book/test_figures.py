"""Every figure of the book as a phone and a desk show it, in a real browser.

    TFVIZ_SITE=folder python -m pytest tests/book/test_figures.py     of pages as they are

What is folded is opened first: a figure in a fold must fit as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from conftest import ROOT, Site
from test_site import violations

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
PAGES = [TOC["root"], *(entry["file"] for part in TOC["parts"] for entry in part["chapters"])]
SVG = "{http://www.w3.org/2000/svg}"
SMALLEST = 10  # px, of words in a figure as they are on the screen
WIDTHS = (390, 1280)

OPEN = "() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"
FIGURES = """
(smallest) => [...document.querySelectorAll("figure.tfviz-figure")].map((figure, n) => {
  const edge = figure.getBoundingClientRect();
  const faults = [];
  for (const box of [figure, ...figure.querySelectorAll("*")])
    if (!box.closest("svg") && box.scrollWidth > box.clientWidth + 1
        && getComputedStyle(box).display !== "inline")
      faults.push(`scrolls sideways by ${box.scrollWidth - box.clientWidth}`);
  const shown = [...figure.querySelectorAll("svg.tfviz-svg")]
    .filter((svg) => svg.getBoundingClientRect().width);
  if (!shown.length) faults.push("shows nothing");
  const sizes = [];
  for (const svg of shown) {
    const place = svg.getBoundingClientRect();
    if (place.left < edge.left - 1 || place.right > edge.right + 1)
      faults.push(`is cut by ${Math.round(place.right - edge.right)}`);
    const words = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim())
      .map((text) => ({ text: text.textContent.trim(), at: text.getBoundingClientRect(),
        size: parseFloat(getComputedStyle(text).fontSize)
          * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b) }));
    for (const { text, at, size } of words) {
      sizes.push(size);
      if (at.left < place.left - 1 || at.right > place.right + 1
          || at.top < place.top - 3 || at.bottom > place.bottom + 3)
        faults.push(`cuts "${text}"`);
    }
    for (const [n, one] of words.entries()) for (const two of words.slice(n + 1)) {
      const across = Math.min(one.at.right, two.at.right) - Math.max(one.at.left, two.at.left);
      const down = Math.min(one.at.bottom, two.at.bottom) - Math.max(one.at.top, two.at.top);
      if (across > 1 && down > 0.35 * Math.min(one.size, two.size))
        faults.push(`writes "${one.text}" over "${two.text}"`);
    }
  }
  const least = Math.min(...sizes);
  if (least < smallest - 0.05) faults.push(`has words of ${least.toFixed(1)} px`);
  return { name: figure.querySelector("figcaption")?.textContent.slice(0, 60) ?? `number ${n}`,
    faults, svgs: shown.map((svg) => svg.outerHTML), room: edge.width };
})
"""


@dataclass(frozen=True)
class Seen:
    """A figure as a browser shows it."""

    page: str
    name: str
    faults: list[str]
    svgs: list[str]
    room: float


@pytest.fixture(scope="module", params=WIDTHS)
def figures(browser: Any, site: Site, request: pytest.FixtureRequest) -> Iterator[list[Seen]]:
    """All figures of the book in a window of this width."""
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    page = context.new_page()
    seen = []
    for name in PAGES:
        page.goto(site.url(name))
        page.evaluate(OPEN)
        page.evaluate("document.fonts.ready")
        seen += [Seen(name, **one) for one in page.evaluate(FIGURES, SMALLEST)]
    yield seen
    context.close()


def test_every_figure_fits_and_can_be_read(figures: list[Seen]) -> None:
    assert len(figures) > 70, "the pages have lost their figures"
    bad = [f"{one.page}: {one.name}: {'; '.join(one.faults[:4])}" for one in figures if one.faults]
    assert not bad, f"{len(bad)} of {len(figures)} figures:\n" + "\n".join(bad)


def test_every_axis_has_the_numbers_that_it_needs(figures: list[Seen]) -> None:
    """Three or more where it is logarithmic, whole ones where it counts."""
    kinds: Counter[str] = Counter()
    bad = []
    for one in figures:
        for svg in one.svgs:
            for axis in ET.fromstring(svg).iter(f"{SVG}g"):
                if not re.match(r"[xy]axis( |$)", axis.get("class", "")):
                    continue
                kind = axis.attrib["class"]
                words = [text.text or "" for text in axis.iter(f"{SVG}text")]
                kinds[kind[5:].strip() or "linear"] += 1
                if len(words) < (3 if "log" in kind else 2):
                    bad.append(f"{one.page}: {one.name}: {kind} has only {words}")
                if "integer" in kind and not all(re.fullmatch("−?[0-9]+", word) for word in words):
                    bad.append(f"{one.page}: {one.name}: {kind} has {words}")
    assert min(kinds["log"], kinds["integer"], kinds["linear"]) > 10, kinds
    assert not bad, "\n".join(bad)


def test_a_figure_is_explored_without_another_host(page: Any, site: Site) -> None:
    """Nothing of plotly before a reader asks for it; then it comes from the site itself."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(site.url("chapters/position/rotary"))
    page.evaluate(OPEN)
    buttons = page.get_by_role("button", name="Explore this figure")
    assert buttons.count() >= 2
    assert not [url for url in asked if "plotly" in url]
    buttons.first.press("Enter")
    page.locator(".tfviz-plotly[data-ready] .main-svg").first.wait_for()
    assert [url for url in asked if "plotly" in url] == [
        f"{site.address}/_static/vendor/plotly.min.js"
    ]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert not violations(page)
