"""A page is read again when what it shows has changed, and only then."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import book_rests
import pytest
from book.conftest import ROOT
from book_rests import Question, answered, changed, shown

PAGES: dict[str, dict[Question, str]] = {
    "one": {("file", "a.md"): "1", ("thumbnail", "linformer"): "2"},
    "two": {("file", "b.md"): "3", ("thumbnail", "linformer"): "2"},
    "three": {("file", "c.md"): "4"},
}


@pytest.mark.parametrize(
    "question, pages",
    [
        (("file", "a.md"), {"one"}),
        (("thumbnail", "linformer"), {"one", "two"}),
        (("file", "c.md"), {"three"}),
        (None, set()),
    ],
)
def test_pages_are_read_again_whose_answers_have_changed(
    question: Question | None, pages: set[str]
) -> None:
    now = {q: a for rests in PAGES.values() for q, a in rests.items()}
    if question:
        now[question] = "another"
    assert changed(PAGES, now.__getitem__) == pages


def test_what_nobody_can_answer_is_no_answer_of_before() -> None:
    assert changed({"page": {("gone", "x"): "any"}}) == {"page"}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The library and the adapters in a folder of their own, where they may be changed."""
    for name in ("tfviz", "tfviz_lab", "tfviz_lessons", "book/_ext"):
        wanted = shutil.ignore_patterns("__pycache__", "records", "*.pt", "*.npz")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=wanted)
    for name in ("headings.toml", "claims.toml"):
        shutil.copyfile(ROOT / "book" / name, tmp_path / "book" / name)
    monkeypatch.setattr(book_rests, "ROOT", tmp_path)
    monkeypatch.setattr(book_rests, "ADAPTERS", tmp_path / "book/_ext")
    book_rests.pieces.cache_clear()
    yield tmp_path
    book_rests.pieces.cache_clear()


CHANGES = {
    # what is changed -> where, what stands there, what shall, and whether pages that measure see it
    "a row of the catalogue": ("tfviz/catalogue.toml", "year = 2017", "year = 2018", True),
    "what reads results": ("tfviz/stored/race.py", "def table(kind", "def table( kind", True),
    "a leaf": (
        "tfviz/compressed/linformer.py",
        "def matrices(sharing",
        "def matrices( sharing",
        False,
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_code_that_an_adapter_runs_counts_piece_by_piece(copy: Path, what: str) -> None:
    name, said, instead, counts = CHANGES[what]
    question = ("code", "measured_directives")
    before = answered(question)
    assert not before.startswith("unanswered")
    file = copy / name
    text = file.read_text("utf8")
    assert said in text
    file.write_text(text.replace(said, instead, 1), "utf8")
    book_rests.pieces.cache_clear()
    assert (answered(question) != before) is counts


def test_every_picture_of_the_atlas_is_asked_for() -> None:
    """What directives find in the library by a key, no reading of their code can see."""
    import thumbnails  # noqa: F401

    book_rests._asked.clear()
    assert shown("thumbnail", "linformer").startswith("data:image/png")
    assert set(book_rests._asked) == {("thumbnail", "linformer")}
    asks = {"thumbnails", "reference_pages", "book_share"}  # the last writes pictures at every end
    for file in (ROOT / "book/_ext").glob("*.py"):
        found = re.search(r"\bEXHIBITS\b|walk_packages|explorers\.ALL", file.read_text("utf8"))
        assert not found or file.stem in {*asks, "book_code"}, f"{file.name}: ask by `shown`"
