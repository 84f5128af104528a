"""Measure how high explorers are, and write the `rem` of their classes: the room that a page keeps.

    PYTHONPATH=scripts:tests:book/_ext python scripts/heights.py [EXPLORER …]

The widths are those that the book gives an explorer on a large screen, a laptop, a tablet and a
phone. An explorer that works out its `heights` is only reported.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import chrome
from browser.explorer_laws import AT_REST, ROOM
from browser.explorer_site import served, write_site
from playwright.sync_api import sync_playwright

from tfviz.explorers import ALL, Explorer

# of the page, which is 32 pixels wider than the explorer, on a phone 40
WIDTHS = ((1280,), (1088,), (930,), (768,), (390,))
REM = 16


def high(page: Any, width: int) -> float:
    """Pixels that the explorer of this page takes, asked or answered."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(AT_REST)
    return float(page.locator(".tfviz-explorer").evaluate(ROOM)[1])


def rem(pixels: list[float]) -> float:
    return math.ceil(2 * max(pixels) / REM) / 2


def measured(page: Any, url: str, kind: type[Explorer], folder: Path) -> list[float]:
    heights: list[list[float]] = [[] for _ in WIDTHS]
    for view in kind.examples:
        write_site(folder, kind.example(view).html())
        page.goto(f"{url}index.html")
        page.locator(".tfviz-explorer[data-ready]").wait_for()
        for so_far, widths in zip(heights, WIDTHS, strict=True):
            so_far += [high(page, width) for width in widths]
    return [rem(some) for some in heights]


def main() -> None:
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as url, sync_playwright() as p:
        page = p.chromium.launch(executable_path=chrome.find(), args=chrome.FLAGS).new_page()
        for module in sys.argv[1:] or ALL:
            kind = ALL[module]
            room = ", ".join(f"{x:g}" for x in measured(page, url, kind, Path(name)))
            print(f"{module}: {room}", flush=True)
            if kind.heights is not Explorer.heights:
                print(f"  {module} works its heights out itself")
                continue
            file = kind.home / f"{module}.py"
            text = file.read_text("utf8")
            line = f"    rem = {room}\n"
            file.write_text(re.sub(r"^    rem = .*\n", line, text, count=1, flags=re.M), "utf8")


if __name__ == "__main__":
    main()
