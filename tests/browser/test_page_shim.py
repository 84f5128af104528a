"""The page shim: lazy explorers, clear failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser.explorer_laws import AT_REST
from browser.explorer_site import write_site

from tfviz.explorers import SparseLab


def test_explorers_wait_until_they_are_near(page: Any, folder: Path, address: str) -> None:
    far = f"<div style='height: 4000px'></div>{SparseLab(panels=[]).html()}"
    write_site(folder, far, name="far.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1000, "height": 700})
    page.goto(f"{address}far.html")
    page.wait_for_load_state("networkidle")
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
    page.evaluate(AT_REST)
    assert "query 10 attends to keys 8 to 12; 5 of 64" in page.locator(".tfx-status").inner_text()
