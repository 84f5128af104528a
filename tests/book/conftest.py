"""The built book: built once, served below a sub-path, as a project's pages are."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from book.visits import DESK, Site, Visit, look

import start
from tfviz_lessons.execute import Lessons, Record
from tfviz_lessons.lesson import is_lesson

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(os.environ.get("TFVIZ_OUT", ROOT)).resolve()
# as `make build` does: by the environment that reads, which has nothing of the tests' own
BUILD = [str(start.python(start.FIRST)), str(ROOT / "scripts/build_book.py"), "--quiet", "--prove"]
LESSONS = {
    str(path.relative_to(ROOT).with_suffix("")): path
    for path in sorted(ROOT.glob("chapters/**/*.md"))
    if is_lesson(path.read_text("utf8"))
}
PREFIX = "/some/course"


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True  # one connection for many files

    def translate_path(self, path: str) -> str:
        if not path.startswith(f"{PREFIX}/"):
            return str(Path(self.directory, "outside of the sub-path"))
        return super().translate_path(path[len(PREFIX) :])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[Site]:
    """The pages of a folder on this machine's web server."""
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield Site(folder, f"http://127.0.0.1:{server.server_port}{PREFIX}")
        server.shutdown()
        thread.join()


def built(*arguments: str) -> None:
    done = subprocess.run([*BUILD, *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"the book does not build:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")


@pytest.fixture(scope="session")
def proofs(request: pytest.FixtureRequest) -> dict[str, Record]:
    """What became of the lessons that the tests to be run name, executed as a learner would.

    They are executed once for the book and for this: several at once, and only what has changed.
    """
    params = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {str(spec.params.get("name")) for spec in params if spec} & set(LESSONS)
    wanted = wanted or {min(LESSONS)}  # somebody asks for the environment alone
    paths = [str(LESSONS[name]) for name in sorted(wanted)]
    built("--out", str(OUT), "--execute", *paths)
    lessons = Lessons(OUT / "_build")
    return {name: lessons.record(LESSONS[name]) for name in wanted}


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The book as `make build` leaves it, its exercises tried on the way.

    TFVIZ_OUT builds it in another folder; TFVIZ_SITE takes a folder of pages as they are.
    """
    folder = Path(os.environ.get("TFVIZ_SITE", OUT / "_build" / "html")).resolve()
    if "TFVIZ_SITE" not in os.environ:
        built("--out", str(OUT))
    with served(folder) as pages:
        yield pages


@pytest.fixture(scope="session")
def visits(browser: Any, site: Site) -> Callable[..., Visit]:
    """visits(page, (theme, width)): looked at when first asked for, then remembered."""

    @functools.cache
    def visit(name: str, where: tuple[str, int] = DESK) -> Visit:
        return look(browser, site, name, *where)

    return lambda name, where=DESK: visit(name, where)
