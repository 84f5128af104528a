"""The page shim: lazy explorers, plotly figures in the colours of the theme, clear failures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from explorer_site import write_site

from tfviz import plots
from tfviz.explorers import SparseLab

PLOTLY = Path(__file__).parents[2] / "node_modules" / "plotly.js-cartesian-dist-min"


@pytest.fixture
def plotly_html(folder: Path, address: str) -> Iterator[str]:
    vendor = folder / "_static" / "vendor"
    vendor.mkdir(exist_ok=True)
    shutil.copy(PLOTLY / "plotly-cartesian.min.js", vendor / "plotly.min.js")
    data = [
        {
            "type": "scatter",
            "x": [1, 2],
            "y": [1, 3],
            "line": {"color": "role:attention"},
            "marker": {"color": "role:key/0.5"},
        }
    ]
    yield plots.plotly_figure({"data": data, "layout": {}}, alt="a line from 1 to 3").html


@pytest.mark.parametrize("offline", [False, True], ids=["http", "file"])
def test_plotly_follows_the_theme(
    page: Any, folder: Path, address: str, problems: list[str], plotly_html: str, offline: bool
) -> None:
    path = write_site(folder, plotly_html, name="plotly.html")
    page.goto(path.as_uri() if offline else f"{address}plotly.html")
    page.locator(".tfviz-plotly[data-ready]").wait_for()
    line = page.locator(".scatterlayer path.js-line")
    colour = "(node) => getComputedStyle(node).stroke"
    assert line.evaluate(colour) == "rgb(156, 50, 237)"
    trace = page.locator(".js-plotly-plot").evaluate("(plot) => plot.data[0].marker.color")
    assert trace == "rgba(48,65,114,0.5)"
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.scatterlayer path.js-line')).stroke"
        " === 'rgb(210, 121, 250)'"
    )


def test_explorers_wait_until_they_are_near(page: Any, folder: Path, address: str) -> None:
    far = f"<div style='height: 4000px'></div>{SparseLab(panels=[]).html()}"
    write_site(folder, far, name="far.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1000, "height": 700})
    page.goto(f"{address}far.html")
    page.wait_for_timeout(300)
    assert not [url for url in asked if "explorers" in url]
    page.locator(".tfviz-explorer").scroll_into_view_if_needed()
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    # a link to a state goes straight there
    page.goto("about:blank")
    page.goto(f"{address}far.html#sparse_lab=eyJxdWVyeSI6NX0")
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    assert page.evaluate("() => scrollY") > 3000
    assert "query 5 attends" in page.locator(".tfx-status").inner_text()


def test_a_failure_is_said(page: Any, folder: Path, address: str) -> None:
    write_site(folder, SparseLab().html().replace('"sparse_lab"', '"missing"'), name="bad.html")
    page.goto(f"{address}bad.html")
    page.get_by_text("The explorer could not start").wait_for()


def test_widget_answers_to_python(show: Callable[..., Any]) -> None:
    """What a kernel does, a change of a trait from outside, is drawn."""
    page = show(SparseLab())
    page.evaluate(
        "() => { const { tfvizModel: model } = document.querySelector('.tfviz-explorer');"
        " model.set('left', { name: 'band', params: { radius: 2 } }); model.set('query', 10); }"
    )
    page.wait_for_timeout(200)
    assert "query 10 attends keys 8 to 12; 5 of 64" in page.locator(".tfx-status").inner_text()
