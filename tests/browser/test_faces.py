"""An explorer is as high with other system fonts: all that it shows is set in the book's own faces.

`explorer_laws` asks each explorer for the faces of its texts. Here a browser has one font alone, a
wide one, then a narrow one, and the explorers with a formula must take the same room.
"""

from __future__ import annotations

import itertools
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import chrome
import matplotlib as mpl
import pytest
from browser.explorer_laws import AT_REST, BLANK, ROOM
from browser.explorer_site import served, write_site

from tfviz.explorers import ALL

FONTS = {"wide": "DejaVuSans-Bold.ttf", "narrow": "STIXGeneral.ttf"}
NAMES = [name for name, kind in ALL.items() if "app.formula(" in kind.sources()[0]]
WIDTHS = 1280, 390
WORD = """() => {
  const node = document.createElement("span");
  node.style.font = "100px serif";
  node.textContent = "tfviz";
  document.body.append(node);
  return node.getBoundingClientRect().width;
}"""

Heights = dict[tuple[str, int], tuple[float, float]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def measured(browser: Any, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """measured(name): on a system with this font alone, the width of a word in its face, and
    by explorer and width of the page the height that is kept and that which is taken."""

    @cache
    def measure(name: str) -> tuple[float, Heights]:
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(Path(mpl.get_data_path(), "fonts", "ttf", FONTS[name]), folder)
        config = f"<dir>{folder}</dir><cachedir>{folder}/cache</cachedir>"
        (folder / "fonts.conf").write_text(f"<fontconfig>{config}</fontconfig>", "utf-8")
        env = {**os.environ, "FONTCONFIG_FILE": str(folder / "fonts.conf")}
        path = chrome.find()
        other = browser.browser_type.launch(executable_path=path, args=chrome.FLAGS, env=env)
        heights: Heights = {}
        with served(site) as url:
            page = other.new_page()
            for explorer, width in itertools.product(NAMES, WIDTHS):
                if width == WIDTHS[0]:
                    kind = ALL[explorer]
                    write_site(site, kind.example(min(kind.examples)).html())
                    page.goto(f"{url}index.html")
                    page.locator(".tfviz-explorer[data-ready]").wait_for()
                page.set_viewport_size({"width": width, "height": 900})
                page.evaluate(AT_REST)
                kept, high = page.locator(".tfviz-explorer").evaluate(ROOM)
                heights[explorer, width] = kept, high
            word = page.evaluate(WORD)
        other.close()
        return word, heights

    return measure


def test_the_systems_fonts_differ(measured: Any) -> None:
    """The other test asks something only where they do."""
    wide, narrow = (measured(name)[0] for name in FONTS)
    assert wide > 1.2 * narrow


def test_explorers_are_as_high_with_any_fonts_of_the_system(measured: Any) -> None:
    wide, narrow = (measured(name)[1] for name in FONTS)
    assert wide == narrow
    assert {where: h for where, h in wide.items() if not -1 <= h[0] - h[1] <= BLANK} == {}
