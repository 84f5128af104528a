"""Fixtures for all tests: seeds, and a real browser that reaches no other host."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import chrome
import patience
import prove
import psutil
import pytest
import torch

# What shares something made once (a graded class) runs in one process, the site page by page, the
# rest file by file.
TOGETHER = {
    "class": ("course/test_autograde", "course/test_command", "course/test_plugin"),
}
VISITS = ("book/test_site", "book/test_figures", "book/test_reading")  # a page is opened for all
PAGE = re.compile(r"\[((?:book|chapters)/[\w/]+|index|search)(?:-\w+)?\]$")
EXPLORER = re.compile(r"test_every_explorer\.py::\w+\[(\w+)(?::\w+)?\]$")  # with all its views
# What takes longest goes first, so that no process is left alone with it at the end; the book is
# built by the first test that wants it.
FIRST = (
    "book/test_exercises",
    "class",
    "course/test_guide",
    "hub/test_hub",
    "course/test_bad_submissions",
    "book/test_progress",
    "book/test_site",
)
LINES = 15
HERE_ONLY = "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"  # for the browser

# What a shell runs in the background ignores Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Spent = dict[str, float]
spent_by: pytest.StashKey[Spent] = pytest.StashKey()
until_now: pytest.StashKey[float] = pytest.StashKey()


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0].partition("tests/")[2].removesuffix(".py")


def group(nodeid: str) -> str:
    """The tests that run in one process, one after the other."""
    file = file_of(nodeid)
    if file in VISITS and (page := PAGE.search(nodeid)):
        return f"{VISITS[0]} {page[1]}"
    if explorer := EXPLORER.search(nodeid):
        return f"{file} {explorer[1]}"
    return next((name for name, files in TOGETHER.items() if file in files), file)


def place(nodeid: str) -> int:
    name = group(nodeid).partition(" ")[0]
    return FIRST.index(name) if name in FIRST else len(FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say which tests go together when they run in several processes."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # `pytest_collection_modifyitems` has put them in order
    return ByGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place(item.nodeid))
    if told := getattr(config, "workerinput", {}).get("plan"):
        prove.select(prove.Plan(**told), config, items)


# --- what took longest ----------------------------------------------------------------------------


def processor_time() -> float:
    """Seconds that this process and all that it has started have taken, browsers too."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # its own, and of those it has waited for
    return total


def pytest_configure(config: pytest.Config) -> None:
    told = os.environ.pop("TFVIZ_PLAN", "")
    alone = told and not getattr(config.option, "numprocesses", None)
    reads = None
    if alone or "plan" in getattr(config, "workerinput", {}):  # here tests run
        reads = prove.Reads(Path(__file__).parent)
        config.pluginmanager.register(reads)
    if told:
        about, report = json.loads(told)
        config.pluginmanager.register(prove.Proof(prove.Plan(**about), Path(report), reads))
    config.stash[spent_by], config.stash[until_now] = {}, processor_time()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the last test of a file, note what its tests have taken, before a browser is closed."""
    file = file_of(item.nodeid)
    if nextitem is None or file_of(nextitem.nodeid) != file:
        stash, now = item.config.stash, processor_time()
        # below zero where a process has ended that nobody waited for: then its time is lost
        more = max(0.0, now - stash[until_now])
        stash[spent_by][file] = stash[spent_by].get(file, 0) + more
        stash[until_now] = now


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["spent"] = session.config.stash[spent_by]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    stash = node.config.stash
    for file, seconds in getattr(node, "workeroutput", {}).get("spent", {}).items():
        stash[spent_by][file] = stash[spent_by].get(file, 0) + seconds


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    spent = sorted(config.stash[spent_by].items(), key=lambda item: -item[1])
    total = sum(seconds for _, seconds in spent)
    if total < 60:
        return
    terminalreporter.section("what took longest")
    terminalreporter.line("seconds of processor time")
    for file, seconds in spent[:LINES]:
        terminalreporter.line(f"{seconds:8.1f}  {file}")
    rest = sum(seconds for _, seconds in spent[LINES:])
    terminalreporter.line(f"{rest:8.1f}  {max(0, len(spent) - LINES)} other files")
    terminalreporter.line(f"{total:8.1f}  together")


# --- fixtures -------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """What a test printed goes from process to process as text, also a name that is none."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Playwright's handle on a headless Chromium."""
    from playwright.sync_api import sync_playwright

    path = chrome.find()
    if path is None:
        pytest.fail(chrome.MISSING)
    with sync_playwright() as playwright:
        args = [*chrome.FLAGS, f"--host-resolver-rules={HERE_ONLY}"]
        instance = playwright.chromium.launch(executable_path=path, args=args)
        yield instance
        instance.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh page; a request to any host but this one gets nowhere and makes the test fail.

    Nothing is routed through this process: that would cost time, and the browser's cache.
    """
    context = browser.new_context()
    context.set_default_timeout(patience.milliseconds())
    foreign: list[str] = []
    local = ("file:", "data:", "blob:", "http://localhost", "http://127.0.0.1")

    def asked(request: Any) -> None:
        if not request.url.startswith(local):
            foreign.append(request.url)

    context.on("request", asked)
    yield context.new_page()
    context.close()
    assert not foreign, f"requests to other hosts: {foreign}"
