"""The built book: built once, served below a sub-path, as a project's pages are."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import exemplars
import pytest
from book.visits import DESK, PAGES, Site, Visit, look
from filelock import FileLock

import start
from tfviz_lessons.execute import Lessons, Record
from tfviz_lessons.lesson import is_lesson

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(os.environ.get("TFVIZ_OUT", ROOT)).resolve()
PART = OUT / "_build" / "exemplars"  # where the book of few pages is built
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")  # what the processes of one run share
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


def named(items: list[pytest.Item], names: Iterable[str], fixture: str) -> set[str]:
    """Those of these names that tests are parametrised with which ask for this fixture."""
    asking = [item for item in items if fixture in getattr(item, "fixturenames", ())]
    specs = [spec for item in asking if (spec := getattr(item, "callspec", None))]
    values = [value for spec in specs for value in spec.params.values()]
    return {value for value in values if isinstance(value, str)} & set(names)


def few(items: list[pytest.Item]) -> list[str]:
    """The pages of the book under test: all, or the exemplars and those that tests name."""
    if exemplars.ALL:
        return PAGES
    asking = [x for x in items if "whole_book" not in getattr(x, "fixturenames", ())]
    wanted = named(asking, PAGES, "site") | set(exemplars.PAGES)
    return [page for page in PAGES if page in wanted]


def whole(items: list[pytest.Item]) -> bool:
    """Whether tests ask for more pages than a part of the book has."""
    if "TFVIZ_SITE" in os.environ:
        return True
    if part := os.environ.get("TFVIZ_PART"):
        return not all(Path(part, f"{page}.html").exists() for page in few(items))
    return len(few(items)) == len(PAGES)


def planned(names: Iterable[str]) -> None:
    """Of a part of the book, no test asks for lessons that are no exemplars and untouched."""
    if "TFVIZ_PART" not in os.environ:
        return
    touched = os.environ.get("TFVIZ_TOUCHED", "").split(",")
    wanted = {*exemplars.LESSONS, *(group.partition(":")[2] for group in touched)}
    if more := sorted({*names} - wanted):
        pytest.fail(
            f"nothing touched {', '.join(more)}, and yet tests ask what came of it; whose tests "
            "are one lesson's, stands in `APART` (scripts/prove.py)"
        )


def exemplar_site(items: list[pytest.Item]) -> Path:
    """A book of few pages, whose links to the others lead nowhere; built once in a run of tests.

    TFVIZ_PART says that it is built already, and where."""
    if "TFVIZ_PART" in os.environ:
        return Path(os.environ["TFVIZ_PART"])
    toc, stamp = PART / "_toc.yml", PART / ".run"
    PART.mkdir(parents=True, exist_ok=True)
    with FileLock(PART / ".lock"):
        if not RUN or not stamp.exists() or stamp.read_text() != RUN:
            toc.write_text(exemplars.contents(few(items)), "utf8")
            built("--out", str(PART), "--toc", str(toc), "--draft")
            stamp.write_text(RUN)
    return PART / "_build" / "html"


@pytest.fixture(scope="session")
def proofs(request: pytest.FixtureRequest) -> dict[str, Record]:
    """What became of the lessons that the tests to be run name, executed as a learner would.

    They are executed once for the book and for this: several at once, and only what has changed.
    """
    items = request.session.items
    wanted = named(items, LESSONS, "proofs")
    wanted = wanted or {min(exemplars.LESSONS)}  # somebody asks for the environment alone
    planned(wanted)
    paths = [str(LESSONS[name]) for name in sorted(wanted)]
    place = place_of(items)
    built("--out", str(place), "--execute", *paths)
    lessons = Lessons(place / "_build")
    return {name: lessons.record(LESSONS[name]) for name in wanted}


def place_of(items: list[pytest.Item]) -> Path:
    """The folder whose `_build` has what the tests look at."""
    return OUT if whole(items) else PART


@pytest.fixture(scope="session")
def learner(request: pytest.FixtureRequest, proofs: dict[str, Record]) -> Path:
    """The environment of a learner's notebook, in which a lesson has run."""
    return place_of(request.session.items) / "_build/notebook-environment"


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """The book as `make build` leaves it, its exercises tried on the way.

    With TFVIZ_ALL it is whole, else of few pages. TFVIZ_OUT builds it in another folder; TFVIZ_SITE
    takes a folder of pages as they are.
    """
    items = request.session.items
    if "TFVIZ_SITE" in os.environ:
        folder = Path(os.environ["TFVIZ_SITE"]).resolve()
    elif whole(items):
        built("--out", str(OUT))
        folder = OUT / "_build" / "html"
    else:
        folder = exemplar_site(items)
    with served(folder) as pages:
        yield pages


@pytest.fixture(scope="session")
def whole_book(request: pytest.FixtureRequest) -> None:
    """For a test that asks all pages together, or what leads from one to another."""
    if not whole(request.session.items):
        pytest.skip("asks the whole book: TFVIZ_ALL=1")


@pytest.fixture(scope="session")
def visits(browser: Any, site: Site) -> Callable[..., Visit]:
    """visits(page, (theme, width)): looked at when first asked for, then remembered."""

    @functools.cache
    def visit(name: str, where: tuple[str, int] = DESK) -> Visit:
        return look(browser, site, name, *where)

    return lambda name, where=DESK: visit(name, where)
