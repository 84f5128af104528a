"""A small static site with explorers, made as the book makes its own, to test in a real browser."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import book_faces

from tfviz.explorers import write_assets

ASSETS = Path(__file__).parents[2] / "book" / "assets"


@cache
def faces(drawn: frozenset[str]) -> str:
    """The book's faces as a page has them whose explorers draw these letters."""
    with tempfile.TemporaryDirectory() as work:
        text = book_faces.text_style((), set(drawn), Path(work))
        signs = book_faces.signs_style(set(drawn), Path(work))
        return text + signs + book_faces.maths_style([], set(drawn), Path(work))


def write_site(folder: Path, *bodies: str, name: str = "index.html") -> Path:
    """Write one page with the given pieces of HTML, and beside it what the page shim expects."""
    static = folder / "_static"
    if not static.exists():
        write_assets(static / "explorers")
        (static / "js").mkdir()
        shutil.copy(ASSETS / "js" / "tfviz-page.js", static / "js")
        shutil.copy(ASSETS / "css" / "roles.css", static)
        drawn = frozenset(book_faces.explorers(static / "explorers"))
        (static / "faces.css").write_text(faces(drawn), "utf-8")
    page = folder / name
    page.write_text(
        f"""<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8"><title>test</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="_static/roles.css">
<link rel="stylesheet" href="_static/faces.css">
<script>document.fonts.forEach((face) => face.load());</script>
<style>
body {{ margin: 0; padding: 1rem; font: 16px/1.5 system-ui, sans-serif;
  background: var(--tfviz-page); color: var(--tfviz-ink) }}
main {{ max-width: 76rem; margin: auto }}
@media (max-width: 480px) {{ main {{ padding: 0 0.25rem }} }} /* the book's column on a phone */
</style>
<script defer src="_static/js/tfviz-page.js"></script>
</head>
<body><main><h1>Page</h1>{"".join(bodies)}<p>after</p></main></body>
</html>""",
        "utf-8",
    )
    return page


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True  # one connection for many files

    def end_headers(self) -> None:
        if urlsplit(self.path).path.endswith((".html", "/")):  # written anew by each test
            self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *parts: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of folder on localhost."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def drag(handle: Any, right: float, down: float = 0) -> None:
    """Take a handle of a picture at its middle, and let it go so many pixels further on."""
    box, mouse = handle.locator("circle").last.bounding_box(), handle.page.mouse
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + right, y + down, steps=4)
    mouse.up()


def answer(page: Any, *keys: str) -> None:
    """Move the ghost of a question by these keys, and say that it is the answer."""
    for key in keys:
        page.locator(".tfx-handle[data-ghost]").press(key)
    page.get_by_role("button", name="that is my answer").click()


def fits(show: Any, explorers: Sequence[Any]) -> None:
    """On a phone and on a desk, in both themes, none is higher than the room that is kept for it,
    and nothing is wider than the page."""
    for width in (390, 1280):
        page = show(*explorers, width=width)
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            for n in range(len(explorers)):
                host = page.locator(".tfviz-explorer").nth(n)
                inner, outer = (x.bounding_box()["height"] for x in (host.locator(".tfx"), host))
                assert inner <= outer + 1, f"explorer {n} at {width}, {theme}: higher than its room"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
