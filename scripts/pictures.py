"""Make the pictures of the README from the real thing: the built pages and a running JupyterLab.

    PYTHONPATH=. python scripts/pictures.py [--site FOLDER]

Beside them, `shown.json` keeps a digest of what each picture shows: of the words of the pictured
part of the page, the cells of the pictured notebook, the state of the pictured widget. A test works
them out anew and says which picture is out of date.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from build_book import build
from chrome import FLAGS, find
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image
from playwright.sync_api import sync_playwright

import start

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / ".github" / "pictures"
SHOWN = PICTURES / "shown.json"
LANDING, CHAPTER, NOTEBOOK = "index", "chapters/sparse/factorized", "chapters/basics/attention"
PATIENCE = 300_000  # milliseconds until a page that hangs is given up; not a measurement
CELLS = 4  # of a notebook, as many as a screen shows
HERO = ["h1", ".tfv-plain", ".tfv-start", ".tfviz-explorer"]
WIDGET = """\
from tfviz import patterns

lab = patterns.strided(stride=8).explore(64)
lab.query = 63    # from any cell: the picture moves
lab"""
NO_NEWS = ".jupyter/JUPYTERLAB_SETTINGS_DIR/@jupyterlab/apputils-extension/notification"


def save(picture: bytes, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.save(PICTURES / f"{name}.png", optimize=True)
    print(f"{PICTURES.relative_to(ROOT)}/{name}.png")


def settle(page: Any) -> None:
    page.wait_for_function(
        "[...document.querySelectorAll('.tfviz-explorer')].some((host) => host.dataset.ready)"
    )
    page.wait_for_timeout(500)


def words(page: Any, *places: str) -> str:
    """What the first element of each kind says, as a reader sees it."""
    texts = [page.locator(place).first.inner_text() for place in places]
    return "\n".join(" ".join(text.split()) for text in texts)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def opened(browser: Any, folder: Path, name: str) -> Any:
    page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
    page.goto((folder / f"{name}.html").as_uri())
    return page


def landing(browser: Any, folder: Path) -> tuple[Any, str]:
    """The pictured page, and what it shows."""
    page = opened(browser, folder, LANDING)
    settle(page)
    return page, words(page, *HERO)


def exercise(browser: Any, folder: Path) -> tuple[Any, str]:
    page = opened(browser, folder, CHAPTER)
    box = page.locator(".exercise").first
    box.locator("summary").first.click()
    box.scroll_into_view_if_needed()
    page.evaluate(
        "top => scrollTo({top, behavior: 'instant'})",
        box.evaluate("node => node.getBoundingClientRect().top + scrollY - 90"),
    )
    page.wait_for_timeout(500)
    return page, words(page, ".exercise")


def cells(folder: Path) -> str:
    """The first cells of the pictured notebook; what they install depends on where it is."""
    book = nbformat.read(folder / f"notebooks/{NOTEBOOK}.ipynb", as_version=4)
    return json.dumps([cell.source for cell in book.cells[1 : 1 + CELLS]])


def widget() -> str:
    """The lines of the pictured widget, and the state that they give it."""
    room: dict[str, Any] = {}
    exec(WIDGET, room)
    state = room["lab"].get_state()
    code = {"_esm", "_css", "layout"} | {name for name in state if name.startswith("_")}
    kept = {name: value for name, value in state.items() if name not in code}
    return f"{WIDGET}\n{json.dumps(kept, sort_keys=True, default=str)}"


def shown(browser: Any, folder: Path) -> dict[str, str]:
    """A digest of what each picture would show now."""
    made = {"run": cells(folder), "tweak": widget()}
    for name, place in (("read", landing), ("teach", exercise)):
        page, made[name] = place(browser, folder)
        page.close()
    return {name: digest(text) for name, text in sorted(made.items())}


def pages(browser: Any, folder: Path) -> None:
    for name, place in (("read", landing), ("teach", exercise)):
        page, _ = place(browser, folder)
        save(page.screenshot(), name)
        page.close()


@contextlib.contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab that works in `folder` and keeps its settings there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(str(start.python(start.FIRST)), "-m", "jupyterlab"),  # as `make lab` opens it
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.token=",
        "--ServerApp.password=",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=",
    ]
    own = {
        name: str(folder / ".jupyter" / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR")
    }
    server = subprocess.Popen(
        command, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(120):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/api", timeout=2)
                break
            time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def notebooks(browser: Any, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        lesson = folder / f"notebooks/{NOTEBOOK}.ipynb"
        (place / "attention.ipynb").write_bytes(lesson.read_bytes())
        with_widget = new_notebook(
            cells=[new_markdown_cell("# An explorer, from Python"), new_code_cell(WIDGET)],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(with_widget, place / "widget.ipynb")
        quiet = place / f"{NO_NEWS}.jupyterlab-settings"
        quiet.parent.mkdir(parents=True)
        quiet.write_text('{"fetchNews": "false"}')
        with jupyter(place) as address:
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(f"{address}/doc/tree/attention.ipynb")
            page.locator(".jp-RenderedMarkdown h1").first.wait_for(timeout=PATIENCE)
            page.wait_for_timeout(3000)
            save(page.screenshot(), "run")
            page.goto(f"{address}/doc/tree/widget.ipynb")
            page.locator(".jp-RenderedMarkdown h1").first.wait_for(timeout=PATIENCE)
            page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(
                timeout=PATIENCE
            )
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            page.locator(".jp-OutputArea-output [data-ready]").first.wait_for(timeout=PATIENCE)
            page.wait_for_timeout(3000)
            save(page.screenshot(), "tweak")
            page.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, help="pages that are built already")
    given = parser.parse_args()
    chrome = find()
    if chrome is None:
        print("no Chrome or Chromium found: install one, or set CHROME to its path")
        return 1
    if given.site is None and build(ROOT, quiet=True):
        return 1
    folder = (given.site or ROOT / "_build" / "html").resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chrome, args=FLAGS)
        pages(browser, folder)
        notebooks(browser, folder)
        SHOWN.write_text(json.dumps(shown(browser, folder), indent=1) + "\n", "utf8")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
