"""Pages with explorers for the browser tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import served, write_site


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    write_site(folder, name="empty.html")
    with served(folder) as url:
        yield url


@pytest.fixture
def problems(page: Any) -> Iterator[list[str]]:
    """What the page complains about; a test that asks for it fails if there is anything."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "console",
        lambda m: found.append(m.text) if m.type in ("error", "warning") else None,
    )
    yield found
    assert not found, found


@pytest.fixture
def show(page: Any, folder: Path, address: str, problems: list[str]) -> Callable[..., Any]:
    """show(explorer, …, hash="", width=1280, offline=False, moving=False): the page, when all are
    mounted; with reduced motion unless it is `moving`."""

    def open_(
        *explorers: Any,
        hash: str = "",
        width: int = 1280,
        offline: bool = False,
        moving: bool = False,
    ) -> Any:
        page.set_viewport_size({"width": width, "height": 900})
        if not moving:  # an answer's state is there at once
            page.emulate_media(reduced_motion="reduce")
        path = write_site(folder, *(e.html() for e in explorers), name="page.html")
        page.goto("about:blank")  # so that a new fragment alone is a new visit
        page.goto((path.as_uri() if offline else f"{address}page.html") + hash)
        for k in range(len(explorers)):
            host = page.locator(".tfviz-explorer").nth(k)
            host.scroll_into_view_if_needed()
            host.and_(page.locator("[data-ready]")).wait_for()
        page.evaluate("scrollTo(0, 0)")
        return page

    return open_
