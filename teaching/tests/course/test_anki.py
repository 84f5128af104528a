"""Decks for Anki, read back from the file that Anki imports."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tfviz_course import CourseError, anki, questions
from tfviz_course.command import main
from tfviz_lessons import clone
from tfviz_lessons.clone import LessonsError

CHAPTER = "basics/attention"
SPLIT = "\x1f"  # between the fields of a note


def deck(file: Path, place: Path) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Of an .apkg: {guid: fields} of its notes, and what it says of itself."""
    with zipfile.ZipFile(file) as packed:
        assert set(packed.namelist()) == {"collection.anki2", "media"}
        assert json.loads(packed.read("media")) == {}
        packed.extract("collection.anki2", place)
    with sqlite3.connect(place / "collection.anki2") as base:
        notes = {
            guid: fields.split(SPLIT)
            for guid, fields in base.execute("select guid, flds from notes")
        }
        (models, decks) = base.execute("select models, decks from col").fetchone()
        cards = base.execute("select count(*), count(distinct nid) from cards").fetchone()
    base.close()
    assert cards == (len(notes), len(notes))
    return notes, {"models": json.loads(models), "decks": json.loads(decks)}


def test_a_chapter_becomes_a_deck(tmp_path: Path) -> None:
    file, asked, letters = anki.export(tmp_path, CHAPTER)
    assert file == tmp_path / "exports/basics-attention.apkg"
    notes, about = deck(file, tmp_path)
    assert (asked, len(notes)) == (5, 5 + letters) and letters > 20
    cards = {question: answer for question, answer, _ in notes.values()}
    assert cards[
        r"What has variance \(d_k\), and what would go wrong without the root?"
    ].startswith(r"The dot product of \(d_k\) independent numbers of variance 1.")
    assert cards[r"What does \(\mathbf z\) stand for?"] == "the answer: a blend of the values"
    assert r"What do \(a_j\), \(a_{ij}\) stand for?" in cards
    assert {chapter for *_, chapter in notes.values()} == {"Attention as a soft dictionary"}
    names = {one["name"] for one in about["decks"].values()}
    assert "Transformer family::Attention as a soft dictionary" in names
    (model,) = (one for one in about["models"].values() if one["name"] == "tfviz")
    assert [field["name"] for field in model["flds"]] == ["Question", "Answer", "Chapter"]


def test_all_chapters_are_in_one_file(tmp_path: Path) -> None:
    file, asked, letters = anki.export(tmp_path, "all")
    notes, about = deck(file, tmp_path)
    assert asked == 5 * len(clone.chapters()) and len(notes) == asked + letters
    assert sum(
        one["name"].startswith("Transformer family::") for one in about["decks"].values()
    ) == (len(clone.chapters()))
    text = "\n".join(part for fields in notes.values() for part in fields)
    assert not re.search(r"\$|\{[a-z:]+\}`|\]\(|https?:|<(?!/?(em|strong|code)>)", text)
    for name in questions.macros():
        assert not re.search(rf"\\{name}(?![A-Za-z])", text), name
    assert "htmlClass" not in text
    assert text.count(r"\(") == text.count(r"\)") > 800


def test_a_later_deck_changes_the_same_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, about = deck(anki.export(tmp_path, CHAPTER)[0], tmp_path)
    lesson = tmp_path / "lesson.md"
    text = clone.chapters()[CHAPTER].read_text("utf8")
    lesson.write_text(
        text.replace("1. Only differences between", "1. Only the differences between")
    )
    assert lesson.read_text("utf8") != text
    monkeypatch.setattr(clone, "chapters", lambda: {CHAPTER: lesson})
    after, again = deck(anki.export(tmp_path, CHAPTER)[0], tmp_path)
    assert before.keys() == after.keys() and about["decks"].keys() == again["decks"].keys()
    assert [guid for guid in before if before[guid] != after[guid]] != []
    assert sum(before[guid] != after[guid] for guid in before) == 1


def test_cards_of_chapters_are_never_mixed(tmp_path: Path) -> None:
    one, _ = deck(anki.export(tmp_path, CHAPTER)[0], tmp_path)
    other, _ = deck(anki.export(tmp_path, "basics/block")[0], tmp_path)
    assert not one.keys() & other.keys()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"*one* $\Q\T$ **b**", r"<em>one</em> \({\mathbf{Q}}^{\top}\) <strong>b</strong>"),
        ("$a<b$ and a < b & c", r"\(a&lt;b\) and a &lt; b &amp; c"),
        ("`x[i] < 2`", "<code>x[i] &lt; 2</code>"),
        ("see [chapter 2](multi_head)", "see chapter 2"),
        ("costs 5 $ or $x$", r"costs 5 $ or \(x\)"),
    ],
)  # fmt: skip
def test_markdown_becomes_what_anki_shows(text: str, wanted: str) -> None:
    assert questions.to_html(text) == wanted


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("## Five questions", "## Four questions", "has no section 'Five questions'"),
        ("{dropdown} Answers", "{dropdown} Solutions", "with '{dropdown} Answers'"),
        (
            "5. What a word looks",
            "6. What a word looks",
            "give both the same numbers",
        ),
        ("5. What a word looks", "5. {cite}`x` What a word", "'{cite}`' in '{cite}`x` What a word"),
    ],
)
def test_a_chapter_that_cannot_be_read_is_named(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = tmp_path / "lesson.md"
    text = clone.chapters()[CHAPTER].read_text("utf8")
    assert text.count(old) == 1
    lesson.write_text(text.replace(old, new))
    monkeypatch.setattr(clone, "chapters", lambda: {CHAPTER: lesson})
    with pytest.raises(CourseError) as error:
        anki.export(tmp_path, CHAPTER)
    assert said in str(error.value) and CHAPTER in str(error.value)


def test_a_picture_is_refused() -> None:
    with pytest.raises(CourseError, match="image in 'a picture"):
        questions.to_html("a picture ![x](y.png)")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "basics/block", "--to", "anki"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"5 questions and \d+ letters as cards.", said[0])
    assert said[1] == f"In {tmp_path}/exports/basics-block.apkg"
    assert main(["export", "basics/blok", "--to", "anki"]) == 2
    assert "did you mean basics/block" in capsys.readouterr().err
    with pytest.raises(LessonsError, match="did you mean basics/block"):
        questions.chosen("basics/blok")
