"""Figures that come to life: the picture first, plotly at the press of a button, and back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import ASSETS, write_site

from tfviz import plots

PLOTLY = Path(__file__).parents[2] / "node_modules" / "plotly.js-cartesian-dist-min"
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
SCRIPT = '<script defer src="_static/js/figures.js"></script>'
STROKE = "(node) => getComputedStyle(node).stroke"


@pytest.fixture
def site(folder: Path, address: str) -> Path:
    """A site with what live figures need."""
    vendor = folder / "_static" / "vendor"
    vendor.mkdir(exist_ok=True)
    shutil.copy(PLOTLY / "plotly-cartesian.min.js", vendor / "plotly.min.js")
    shutil.copy(ASSETS / "js" / "figures.js", folder / "_static" / "js")
    shutil.copy(ASSETS / "css" / "figures.css", folder / "_static")
    return folder


def race(logx: bool = False) -> plots.Figure:
    return plots.curve(
        [1, 10, 100],
        {"rotary": [[3, 2, 1.5], [3, 2, 0.5]], "none": [[3, 2.5, 2.25], [3, 2.5, 2.25]]},
        xlabel="steps", ylabel="loss in nats", logx=logx,
    )  # fmt: skip


def opened(page: Any, site: Path, figure: Any, where: str, width: int = 390) -> Any:
    sheet = '<link rel="stylesheet" href="_static/figures.css">'
    path = write_site(site, sheet, SCRIPT, figure.html, name="live.html")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{where}live.html" if where else path.as_uri())
    return page.locator(".tfviz-plotly > button")


@pytest.mark.parametrize("offline", [False, True], ids=["http", "file"])
def test_a_press_brings_it_to_life_and_another_the_picture_back(
    page: Any, site: Path, address: str, problems: list[str], offline: bool
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    button = opened(page, site, race(), "" if offline else address)
    still = page.locator(".tfviz-panels")
    assert still.is_visible() and button.inner_text() == "Explore this figure"
    assert not [url for url in asked if "plotly" in url]
    button.press("Enter")
    page.locator(".tfviz-plotly[data-ready]").wait_for()
    assert not still.is_visible()
    assert button.inner_text() == "Back to the picture"
    assert button.evaluate("(node) => node === document.activeElement")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    button.press("Enter")
    assert still.is_visible() and not page.locator(".tfviz-live").is_visible()
    button.press("Enter")
    page.locator(".tfviz-plotly[data-ready]").wait_for()
    assert len([url for url in asked if "plotly" in url]) == 1


def test_it_follows_the_theme(page: Any, site: Path, address: str, problems: list[str]) -> None:
    opened(page, site, race(), address).click()
    line = page.locator(".scatterlayer .trace .js-line").nth(1)  # the band comes first
    line.wait_for(state="attached")
    assert line.evaluate(STROKE) == "rgb(156, 50, 237)"
    band = page.locator(".js-plotly-plot").evaluate("(plot) => plot.data[0].fillcolor")
    assert band == "rgba(156,50,237,0.18)"
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelectorAll('.scatterlayer .trace .js-line')[1])"
        ".stroke === 'rgb(210, 121, 250)'"
    )


def test_the_keyboard_reads_zooms_and_toggles(
    page: Any, site: Path, address: str, problems: list[str]
) -> None:
    opened(page, site, race(), address).press("Enter")
    page.locator(".tfviz-plotly[data-ready]").wait_for()
    chart, words = page.get_by_role("application"), page.locator(".tfviz-live-words")
    assert chart.get_attribute("aria-label").startswith("loss in nats over steps. rotary: from 3")
    chart.press("ArrowRight")
    assert words.inner_text() == "At 1: rotary 3; none 3."
    chart.press("End")
    assert words.inner_text() == "At 100: rotary 1; none 2.25."
    page.locator(".hoverlayer text").first.wait_for()
    extent = "(plot) => plot._fullLayout.xaxis.range.map(Number)"
    plot = page.locator(".js-plotly-plot")
    before = plot.evaluate(extent)
    chart.press("+")
    after = plot.evaluate(extent)
    assert after[1] - after[0] < 0.7 * (before[1] - before[0])
    chart.press("0")
    assert plot.evaluate(extent) == pytest.approx(before)
    toggle = page.get_by_role("button", name="rotary")
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.press("Enter")
    assert toggle.get_attribute("aria-pressed") == "false"
    chart.press("End")
    assert words.inner_text() == "At 100: none 2.25."
    shown = plot.evaluate("(plot) => plot.data.filter((t) => t.visible).map((t) => t.legendgroup)")
    assert set(shown) == {"none"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_a_live_figure(
    page: Any, site: Path, address: str, problems: list[str], theme: str
) -> None:
    button = opened(page, site, race(logx=True), address)
    page.evaluate(f"() => {{ document.documentElement.dataset.theme = '{theme}'; }}")
    button.click()
    page.locator(".tfviz-plotly[data-ready]").wait_for()
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("async () => (await axe.run()).violations.map((v) => v.id)")
    assert not found


def test_a_map_and_points_come_to_life_too(
    page: Any, site: Path, address: str, problems: list[str]
) -> None:
    import torch

    figures = {
        ".heatmaplayer": plots.hover_attention_map(torch.eye(4)),
        ".scatterlayer": plots.points({"a": (1, [2, 3]), "b": (4, [5, 7])}, xlabel="x", ylabel="y"),
    }
    for layer, figure in figures.items():
        opened(page, site, figure, address).click()
        page.locator(".tfviz-plotly[data-ready]").wait_for()
        assert page.locator(layer).count()
    page.get_by_role("application").press("ArrowRight")
    assert page.locator(".tfviz-live-words").inner_text() == "At 1: a 2.5."


def test_a_failure_is_said_and_can_be_tried_again(page: Any, site: Path, address: str) -> None:
    (site / "_static" / "vendor" / "plotly.min.js").unlink()
    button = opened(page, site, race(), address)
    button.click()
    page.get_by_text("This figure cannot come to life: plotly cannot be loaded.").wait_for()
    assert page.locator(".tfviz-panels").is_visible()
    shutil.copy(PLOTLY / "plotly-cartesian.min.js", site / "_static" / "vendor" / "plotly.min.js")
    button.click()
    page.locator(".tfviz-plotly[data-ready]").wait_for()
