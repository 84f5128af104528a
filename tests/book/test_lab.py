"""`make lab`: lessons as notebooks that belong to the reader, and chapters that open as such."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import lab
import lab_sheet
import nbformat
import patience
import pytest
from book.conftest import LESSONS, ROOT
from book.visits import Site
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import TimeoutError

import start
from tfviz_lessons.clone import LessonsError

RESTS_ON = (
    "tfviz_lessons/**",
    "scripts/*.py",
    "start.py",
    "tests/book/*.py",
    "tests/*.py",
    "chapters/sparse/hashing.md",
    "chapters/sparse/routing.md",
)

ENTRIES = [
    lab.Entry("Sparse", 1, "Hashing", "chapters/sparse/hashing.md"),
    lab.Entry("Sparse", 2, "Routing", "chapters/sparse/routing.md"),
]


def write(path: Path, *sources: str, shown: bool = False) -> None:
    cells = [new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)]
    if shown:
        cells[0].outputs = [nbformat.v4.new_output("stream", text="shown")]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)


def sources(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


# --- what is handed out --------------------------------------------------------------------------


@pytest.fixture
def hand_out(tmp_path: Path) -> Callable[..., list[str]]:
    """hand_out(text): both lessons say this, and are handed out; which notebooks stay behind."""

    def handed_out(text: str) -> list[str]:
        for entry in ENTRIES:
            write(tmp_path / "made" / entry.generated, text)
        return lab.hand_out(tmp_path, ENTRIES, tmp_path / "made")

    return handed_out


def test_a_notebook_that_the_reader_has_changed_stays(
    hand_out: Callable[..., list[str]], tmp_path: Path
) -> None:
    mine, other = (tmp_path / "notebooks" / entry.own for entry in ENTRIES)
    assert hand_out("x = 1") == []
    assert sources(mine) == sources(other) == ["x = 1"]
    write(mine, "x = 1", "my answer")
    write(other, "x = 1", shown=True)  # executed, not changed
    assert hand_out("x = 1") == []  # the lesson is the same
    for _ in range(2):  # it is said each time
        assert hand_out("x = 2") == ["notebooks/sparse/hashing.ipynb"]
        assert sources(mine) == ["x = 1", "my answer"]
        assert sources(other) == ["x = 2"]
    mine.unlink()
    assert hand_out("x = 2") == []
    assert sources(mine) == ["x = 2"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 1}', "\udcff"])
def test_what_is_no_notebook_stays(
    hand_out: Callable[..., list[str]], tmp_path: Path, text: str
) -> None:
    """And notes that cannot be read lose nothing."""
    mine, notes = tmp_path / "notebooks" / ENTRIES[0].own, tmp_path / "notebooks/.handed_out.json"
    hand_out("x = 1")
    for path in (mine, notes):
        path.write_bytes(text.encode("utf8", "surrogateescape"))
    assert hand_out("x = 1")[:1] == ["notebooks/sparse/hashing.ipynb"]
    assert mine.read_bytes() == text.encode("utf8", "surrogateescape")


def test_the_list_is_that_of_the_book(tmp_path: Path) -> None:
    entries = list(lab.contents(ROOT))
    assert [entry.source.removesuffix(".md") for entry in entries] == sorted(
        LESSONS, key=(ROOT / "_toc.yml").read_text("utf8").index
    )
    [text, _] = [cell.source for cell in lab.start_page(entries, raw=False).cells]
    for entry in entries:
        assert f"{entry.number}. [{entry.title}]({entry.own})" in text


def test_lessons_that_cannot_be_read_are_listed_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> Path:
        raise LessonsError("the book cannot be read: line 3 of chapters/a.md")

    monkeypatch.setattr(lab, "read_book", fails)
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters")
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    write(tmp_path / "notebooks/sparse/hashing.ipynb", "my answer")
    lab.prepare(tmp_path)
    assert "line 3 of chapters/a.md" in capsys.readouterr().err
    assert "(../chapters/sparse/hashing.md)" in sources(tmp_path / lab.START)[0]
    assert sources(tmp_path / "notebooks/sparse/hashing.ipynb") == ["my answer"]


def test_notebooks_older_than_their_lessons_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "read_book", lambda: tmp_path / "read")
    for entry in ENTRIES:
        (tmp_path / entry.source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / entry.source).write_text("a lesson")
        write(tmp_path / "_build/html/notebooks" / entry.generated, "x = 1")
    built = tmp_path / "_build/html/notebooks"
    for entry in ENTRIES:
        os.utime(tmp_path / entry.source, (1, 1))
    assert lab.generated(tmp_path, ENTRIES) == built
    later = (built / ENTRIES[1].generated).stat().st_mtime + 10
    os.utime(tmp_path / ENTRIES[1].source, (later, later))
    assert lab.generated(tmp_path, ENTRIES) == tmp_path / "read/site/notebooks"


# --- what is saved -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chapters/sparse/hashing.md", "README.md"])
def test_only_a_changed_cell_changes_the_file(tmp_path: Path, name: str) -> None:
    """JupyterLab saves what was only opened and run; a chapter keeps every byte then."""
    path = tmp_path / Path(name).name
    shutil.copy(ROOT / name, path)
    before = path.read_bytes()

    async def visit(change: bool) -> None:
        contents = lab.Contents(root_dir=str(tmp_path))
        model = await contents.get(path.name, type="notebook")
        code = next(cell for cell in model["content"]["cells"] if cell["cell_type"] == "code")
        code["outputs"] = [nbformat.v4.new_output("stream", text="shown")]
        code["execution_count"] = 3
        code["metadata"]["trusted"] = True
        model["content"]["metadata"]["language_info"] = {"name": "python", "version": "3.11"}
        if change:
            code["source"] += "\n# changed"
        await contents.save(model, path.name)

    with ThreadPoolExecutor(1) as pool:  # in this one, the browser of other tests may have a loop
        pool.submit(asyncio.run, visit(change=False)).result()
        assert path.read_bytes() == before
        pool.submit(asyncio.run, visit(change=True)).result()
    assert path.read_bytes() != before and "# changed" in path.read_text("utf8")


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_root_is_allowed_and_nobody_needs_to_say_so(
    monkeypatch: pytest.MonkeyPatch, user: int, allowed: bool
) -> None:
    """The devcontainer is root, and JupyterLab refuses that without being told."""
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    assert ("--allow-root" in lab.options(ROOT)) == allowed


# --- in a real JupyterLab ------------------------------------------------------------------------


def test_a_lesson_opens_by_a_click_and_a_chapter_by_two(
    browser: Any, site: Site, tmp_path: Path
) -> None:
    """Started by the environment that reads, in a folder that is this project's in miniature."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    for folder in (clone / "scripts", clone / "_build/html", home):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "scripts/lab.py", clone / "scripts")
    shutil.copy(ROOT / "_toc.yml", clone)
    shutil.copytree(ROOT / "chapters", clone / "chapters")
    shutil.copytree(
        site.folder / "notebooks", clone / "_build/html/notebooks", copy_function=shutil.copyfile
    )
    chapter = clone / "chapters/sparse/hashing.md"
    before = chapter.read_bytes()
    command = [start.python(start.FIRST), clone / "scripts/lab.py"]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(patience.milliseconds())
    with lab_sheet.server(command, home, PYTHONPATH=str(ROOT)) as address:
        page.goto(address("").replace("lab/?", "?"))  # whatever it opens on
        links = page.locator(".jp-RenderedMarkdown a:not(.jp-InternalAnchorLink)")
        links.nth(len(LESSONS) - 1).wait_for()
        assert links.count() == len(LESSONS)

        links.filter(has_text="Hashing and reversibility").click()
        ready(page, "hashing.ipynb")
        run_first_cell(page)

        page.goto(address("tree/chapters/sparse"))
        page.locator(".jp-DirListing-item", has_text="hashing.md").dblclick()
        ready(page, "hashing.md")
        run_first_cell(page)
        page.keyboard.press("Control+s")
        page.locator(".lm-mod-current:not(.jp-mod-dirty)", has_text="hashing.md").wait_for()
        assert chapter.read_bytes() == before
    page.close()
    assert not (home / ".jupyter").exists()  # nothing is written into the user's settings
    assert not list(clone.glob("chapters/**/.ipynb_checkpoints"))
    assert json.loads((clone / "notebooks/.handed_out.json").read_text("utf8"))


def ready(page: Any, name: str) -> None:
    """This notebook is in front, and its kernel waits."""
    page.locator(".lm-TabBar-tab.lm-mod-current", has_text=name).wait_for()
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").first.wait_for()
    lab_sheet.kernel_waits(page, name)


def run_first_cell(page: Any) -> None:
    cell = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").first
    for _ in range(20):  # a notebook that is still being drawn loses a key
        cell.locator(".jp-InputArea-editor").click()
        page.keyboard.press("Shift+Enter")
        with suppress(TimeoutError):
            cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[[\d*]+\]:")).wait_for(
                timeout=9_000
            )
            break
    cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]:")).wait_for()
    assert not cell.locator(".jp-OutputArea-output[data-mime-type*=error]").count()
