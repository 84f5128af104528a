"""An explorer elsewhere: saved as one file, and framed in a page of another origin."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import ASSETS, served, write_site

from tfviz.explorers import ALL, Explorer, LowRankMap

SAVED = ["low_rank_map", "sparse_lab", "attention_steps"]
READY = ".tfviz-explorer[data-ready]"
NUMBERS = "(host) => host.tfviz.numbers()"


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_page_works_without_a_network(name: str, page: Any, tmp_path: Path) -> None:
    one = ALL[name].example(next(iter(ALL[name].examples)))
    file = one.save(tmp_path / "one.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
    page.goto(file.as_uri())
    host = page.locator(READY)
    host.wait_for()
    assert page.title() == one.label
    assert {*asked} <= {"file", "blob", "data"}
    shown, right = host.evaluate(NUMBERS), one.numbers()
    assert shown.keys() == right.keys()
    assert not page.get_by_role("button", name="embed").count()  # its address is nobody else's
    assert page.locator(f".tfviz-explorer[aria-label={one.label!r}]").count() == 1


def test_a_saved_page_begins_where_the_explorer_stood(page: Any, tmp_path: Path) -> None:
    one = LowRankMap(k=8, way="mean", layer=1)
    page.goto(one.save(tmp_path / "one.html").as_uri())
    host = page.locator(READY)
    host.wait_for()
    assert host.evaluate(NUMBERS)["mean"] == pytest.approx(one.numbers()["mean"], rel=1e-5)


@pytest.mark.parametrize("name", ["one", "one.pdf", "one.html.txt"])
def test_another_ending_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"use \.html"):
        LowRankMap().save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        LowRankMap().save(tmp_path / "no such folder" / "one.html")


def course(folder: Path, *some: Explorer) -> None:
    """A page of a course with these explorers, and the page that stands in frames."""
    write_site(folder, *(f'<section id="place">{one.html()}</section>' for one in some))
    shutil.copy(ASSETS / "embed.html", folder)
    shutil.copy(ASSETS / "js/embed.js", folder / "_static/js")
    for sheet in ("katex.css", "tfviz.css"):
        (folder / "_static" / sheet).touch()


def test_what_embed_copies_works_in_a_page_of_another_origin(page: Any, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    one = LowRankMap(k=8)
    course(ours, LowRankMap(), one)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with served(ours) as here, served(theirs) as there:
        page.goto(f"{here}index.html")
        host = page.locator(".tfviz-explorer").nth(1)
        host.scroll_into_view_if_needed()
        page.locator(READY).nth(1).wait_for()
        host.evaluate("(x) => x.dispatchEvent(new CustomEvent('tfviz:show', {detail: {k: 16}}))")
        host.get_by_role("button", name="embed").click()
        host.get_by_text("HTML copied").wait_for()
        frame = page.evaluate("navigator.clipboard.readText()")
        (theirs / "index.html").write_text(f"<!DOCTYPE html><title>theirs</title>{frame}", "utf-8")
        page.goto(f"{there}index.html")
        inside = page.frame_locator("iframe")
        inside.locator(READY).wait_for()
        shown = inside.locator(READY).evaluate("(host) => host.tfvizModel.get('k')")
        assert shown == 16
        assert inside.get_by_role("group", name=one.label, exact=True).count() == 1
        link = inside.get_by_role("link", name="Read about it").evaluate("(a) => a.href")
        assert link == f"{here}index.html#place"
        room = "(main) => [main.ownerDocument.documentElement.scrollHeight, innerHeight]"
        high, kept = inside.locator("main").evaluate(room)
        assert high <= kept, "it fits into its frame"


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "?explorer=low_rank_map",
        "?explorer=../secret&state={}",
        "?explorer=low_rank_map&state={",
    ],
)
def test_an_address_that_names_no_explorer_says_so(asked: str, page: Any, tmp_path: Path) -> None:
    course(tmp_path)
    with served(tmp_path) as here:
        page.goto(f"{here}embed.html{asked}")
        page.get_by_text("This address names no explorer").wait_for()


def test_the_way_back_leads_nowhere_else(page: Any, tmp_path: Path) -> None:
    course(tmp_path)
    with served(tmp_path) as here:
        for bad in (
            "https://elsewhere.example/x.html",
            "//elsewhere.example/x.html",
            "javascript:1",
        ):
            page.goto(f"{here}embed.html?from={bad}")
            link = page.get_by_role("link", name="Read about it").evaluate("(a) => a.href")
            assert link == f"{here}index.html"
