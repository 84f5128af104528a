"""Explorers in a real JupyterLab: its own style sheets, and several explorers in one notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_sheet
import patience
import pytest
from browser.explorer_laws import AT_REST
from browser.explorer_site import served, write_site
from browser.host_styles import computed, different

from tfviz.explorers import ALL

RESTS_ON = (
    "tfviz/explorers/**",
    "tfviz_lab/results/*.json",
    "book/assets/**",
    "tests/browser/**",
    "tests/*.py",
    "scripts/*.py",
)

# One of each layout: cards with a style sheet of their own, picture and controls, pictures beside
# each other, a table, an image, lines of text, a text field. The first meets the style sheets of
# all that follow.
LAYOUTS = (
    "sparse_lab:layers",
    "strided_pattern",
    "talking_heads",
    "projection_sharing",
    "vision_transformer",
    "training_objectives:gpt",
    "training_objectives:prefix",  # a second one of its kind
    "your_own_mask",
)
OVERLAPS = """(host) => {
  const parts = [...host.querySelectorAll(".tfx-readout :is(dt, dd)")];
  const boxes = parts.filter((part) => part.checkVisibility()).map((part) => {
    const text = document.createRange();
    text.selectNodeContents(part);
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return { part: part.textContent, left, right, top, bottom };
  });
  const over = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4; // letters are less high than lines
  return boxes.flatMap((a, n) =>
    boxes.slice(n + 1).filter((b) => over(a, b)).map((b) => `${a.part} over ${b.part}`),
  );
}"""


@pytest.fixture(scope="module")
def in_a_notebook(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The hosts of all layouts in one notebook."""
    folder = tmp_path_factory.mktemp("lab")
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(patience.milliseconds())
    with lab_sheet.jupyterlab(folder) as address:
        yield lab_sheet.hosts(page, address, folder, LAYOUTS)
        page.close()


@pytest.mark.parametrize("name", LAYOUTS)
def test_it_looks_as_in_a_page(in_a_notebook: Any, browser: Any, tmp_path: Path, name: str) -> None:
    there = in_a_notebook.nth(LAYOUTS.index(name))
    there.scroll_into_view_if_needed()
    there.page.evaluate(AT_REST)
    kind, _, view = name.partition(":")
    write_site(tmp_path, ALL[kind].example(view).html())
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    with served(tmp_path) as url:
        page.goto(f"{url}index.html")
        page.locator(".tfviz-explorer[data-ready]").wait_for()
        here = page.locator(".tfviz-explorer")
        wide = there.locator(".tfx").bounding_box()["width"]
        here.evaluate("(host, wide) => { host.style.width = `${wide}px`; }", wide)
        page.evaluate(AT_REST)
        found = different(computed(here), computed(there))
        # the foot stands where the column ends, and no room is kept there
        found = [x for x in found if not re.search(r"tfx-footer:\d: margin-top", x)]
    page.close()
    assert not found, "\n".join(found[:20])
    assert not there.evaluate(OVERLAPS)


def test_explorers_of_one_kind_share_no_id_and_no_choice(in_a_notebook: Any) -> None:
    """Each has a kit of its own there; with the same names, radio buttons would be one group."""
    page = in_a_notebook.page
    ids = page.evaluate("() => [...document.querySelectorAll('.tfx [id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    unset = page.evaluate("""() =>
      [...document.querySelectorAll(".tfx .tfx-segments")]
        .filter((group) => !group.querySelector("input:checked"))
        .map((group) => group.textContent)""")
    assert not unset
