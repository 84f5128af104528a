"""Fixtures for all tests: seeds, and a real browser that reaches no other host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from typing import Any

import pytest
import torch

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str | None:
    """Path of Chrome or Chromium: the variable CHROME, else what is on the PATH."""
    names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
    mac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    found = [os.environ.get("CHROME"), *map(shutil.which, names)]
    return next((p for p in found if p), mac if os.path.exists(mac) else None)


# What shares something made once (the built book, a graded class) runs in one process; the rest
# goes file by file.
TOGETHER = {
    "book": ("book/test_site", "book/test_progress", "book/test_notebooks"),
    "class": ("course/test_autograde", "course/test_command", "course/test_plugin"),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say which tests go together when they run in several processes."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
            return next((name for name, files in TOGETHER.items() if file in files), file)

    return ByGroup(config, log)


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

    path = chromium()
    if path is None:
        pytest.fail("no Chrome or Chromium found: install one, or set CHROME to its path")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield instance
        instance.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh page; requests to any host but this one are refused and make the test fail."""
    context = browser.new_context()
    foreign: list[str] = []

    def gate(route: Any) -> None:
        local = ("file:", "data:", "blob:", "http://localhost", "http://127.0.0.1")
        if route.request.url.startswith(local):
            route.continue_()
        else:
            foreign.append(route.request.url)
            route.abort()

    context.route("**/*", gate)
    yield context.new_page()
    context.close()
    assert not foreign, f"requests to other hosts: {foreign}"
