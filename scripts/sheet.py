"""Make contact sheets of all explorers, each in its first state and answered.

    PYTHONPATH=scripts:tests python scripts/sheet.py [--width 390] [--dark] [EXPLORER …]

`make sheet` makes those of a wide screen. Look at them after every change of the kit: tests compare
numbers and boxes, and only a person sees what contradicts itself.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import chrome
from browser.explorer_laws import AT_REST
from browser.explorer_site import served, write_site
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

from tfviz.explorers import ALL

ROOT = Path(__file__).resolve().parents[1]
STATES = ("first state", "answered")
SHEET, GAP, NAME = 2400, 16, 28  # pixels: width of a sheet, between tiles, for the name of a tile
TILE = {False: 600, True: 300}  # width of a tile, that of a phone being True
TILES = 16  # on a sheet

Tile = tuple[str, bytes]


def shots(page: Any, nth: int = 0) -> tuple[bytes, bytes]:
    """Pictures of an explorer of this page: as it stands, and with all its questions answered."""
    host = page.locator(".tfviz-explorer").nth(nth)
    host.scroll_into_view_if_needed()
    host.and_(page.locator("[data-ready]")).wait_for()
    page.evaluate(AT_REST)
    first = host.screenshot()
    show_me = host.get_by_role("button", name="just show me")
    while show_me.count():
        show_me.first.click()
    page.evaluate(AT_REST)
    return first, host.screenshot()


def tiles(page: Any, wanted: Sequence[str]) -> Iterator[Tile]:
    """Two tiles for each view of these explorers, each on a page of its own."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        for module in wanted:
            for view in ALL[module].examples:
                write_site(Path(folder), ALL[module].example(view).html())
                page.goto(f"{url}index.html")
                for state, picture in zip(STATES, shots(page), strict=True):
                    yield ", ".join(filter(None, (module, view, state))), picture


def sheet(some: Sequence[Tile], wide: int, page: str, ink: str) -> Image.Image:
    """These tiles in rows, each of this width and under its name."""
    across = SHEET // wide
    inner = wide - GAP
    pictures = []
    for _, data in some:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        pictures.append(image.resize((inner, round(image.height * inner / image.width))))
    rows = [pictures[k : k + across] for k in range(0, len(pictures), across)]
    heights = [max(image.height for image in row) + NAME + GAP for row in rows]
    whole = Image.new("RGB", (SHEET, sum(heights)), page)
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(18 if wide > 400 else 13)
    for k, ((name, _), image) in enumerate(zip(some, pictures, strict=True)):
        x, y = k % across * wide + GAP // 2, sum(heights[: k // across])
        pen.text((x, y + 4), name, fill=ink, font=font)
        whole.paste(image, (x, y + NAME))
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--dark", action="store_true", help="in the dark theme")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "sheet")
    parser.add_argument("explorers", nargs="*", metavar="EXPLORER", help="those alone, by module")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.explorers) - set(ALL)):
        print(f"no explorer is called {', '.join(unknown)}", file=sys.stderr)
        return 2
    path = chrome.find()
    if path is None:
        print(chrome.MISSING, file=sys.stderr)
        return 1
    asked.out.mkdir(parents=True, exist_ok=True)
    start = f"{asked.width}-{'dark' if asked.dark else 'light'}"
    for old in asked.out.glob(f"{start}-*.png"):
        old.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=chrome.FLAGS)
        page = browser.new_page(
            viewport={"width": asked.width, "height": 900}, reduced_motion="reduce"
        )
        if asked.dark:
            page.add_init_script(
                "addEventListener('DOMContentLoaded',"
                " () => { document.documentElement.dataset.theme = 'dark'; })"
            )
        colours = ("#14181e", "#e6edf3") if asked.dark else ("#ffffff", "#1f2328")
        some = tiles(page, asked.explorers or list(ALL))
        number = 0
        while batch := list(islice(some, TILES)):
            number += 1
            file = asked.out / f"{start}-{number:02}.png"
            sheet(batch, TILE[asked.width <= 640], *colours).save(file)
            print(file, flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
