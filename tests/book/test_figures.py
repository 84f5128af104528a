"""Every figure of the book as a phone and a desk show it, in a real browser.

    TFVIZ_SITE=folder python -m pytest tests/book/test_figures.py     of pages as they are

What is folded is opened first: a figure in a fold must fit as well.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from book.conftest import Site
from book.visits import DESK, OPEN, PAGES, PHONE, violations

FIGURE = 'class="tfviz-figure'


def source(site: Site, name: str) -> str:
    return (site.folder / f"{name}.html").read_text("utf-8")


@pytest.mark.parametrize("where", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_every_figure_fits_and_can_be_read(
    visits: Any, site: Site, name: str, where: tuple[str, int]
) -> None:
    figures = visits(name, where).figures
    assert len(figures) == source(site, name).count(FIGURE)
    bad = [f"{words}: {'; '.join(faults[:4])}" for words, faults in figures if faults]
    assert not bad, f"{len(bad)} of {len(figures)} figures:\n" + "\n".join(bad)


@pytest.mark.usefixtures("whole_book")
def test_every_axis_has_the_numbers_that_it_needs(site: Site) -> None:
    """Three or more where it is logarithmic, whole ones where it counts; in both forms."""
    texts = {name: source(site, name) for name in PAGES}
    assert sum(text.count(FIGURE) for text in texts.values()) > 70, "the pages lost their figures"
    kinds: Counter[str] = Counter()
    bad = []
    for name, text in texts.items():
        for svg in re.findall(r'<svg[^>]*class="tfviz-svg.*?</svg>', text, re.S):
            for axis in ET.fromstring(svg).iter("g"):
                if not re.match(r"[xy]axis( |$)", axis.get("class", "")):
                    continue
                kind = axis.attrib["class"]
                words = [text.text or "" for text in axis.iter("text")]
                kinds[kind[5:].strip() or "linear"] += 1
                if len(words) < (3 if "log" in kind else 2):
                    bad.append(f"{name}: {kind} has only {words}")
                if "integer" in kind and not all(re.fullmatch("−?[0-9]+", word) for word in words):
                    bad.append(f"{name}: {kind} has {words}")
    assert min(kinds["log"], kinds["integer"], kinds["linear"]) > 10, kinds
    assert not bad, "\n".join(bad)


@pytest.mark.usefixtures("whole_book")
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
    assert not violations(page, abridged=True)
