"""The built book: built once, served below a sub-path, as a project's pages are."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "/some/course"


@dataclass(frozen=True)
class Site:
    """Where the pages are, on the disk and on this machine's web server."""

    folder: Path
    address: str

    def url(self, page: str) -> str:
        return f"{self.address}/{page}.html"


class Handler(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        if not path.startswith(f"{PREFIX}/"):
            return str(Path(self.directory, "outside of the sub-path"))
        return super().translate_path(path[len(PREFIX) :])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The book as `make build` leaves it.

    TFVIZ_OUT builds it in another folder; TFVIZ_SITE takes a folder of pages as they are.
    """
    out = Path(os.environ.get("TFVIZ_OUT", ROOT)).resolve()
    folder = Path(os.environ.get("TFVIZ_SITE", out / "_build" / "html")).resolve()
    build = [sys.executable, str(ROOT / "scripts" / "build_book.py"), "--quiet", "--out", str(out)]
    if "TFVIZ_SITE" not in os.environ:
        done = subprocess.run(build, capture_output=True, text=True)
        if done.returncode:
            pytest.fail(f"the book does not build:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Site(folder, f"http://127.0.0.1:{server.server_port}{PREFIX}")
        server.shutdown()
        thread.join()
