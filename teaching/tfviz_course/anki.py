"""A deck for Anki: the five questions of a chapter, and its letters, as cards to learn by heart.

Anki draws what stands in `\\(…\\)` with the MathJax that it brings, so a deck needs no network. A
card is known by its chapter and its number, or its letter: where a later deck has the same one,
Anki changes the card, and what you have learned of it stays.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import genanki

from tfviz._files import written_whole
from tfviz_course import store
from tfviz_course.questions import Asked, chosen, to_html

TOP = "Transformer family"  # the deck that holds those of the chapters
MODEL = 1_607_392_319  # Anki knows a kind of card by its number: these are never to change
STYLE = """\
.card { font-family: system-ui, sans-serif; font-size: 20px; line-height: 1.5; text-align: left;
  max-width: 40em; margin: 1em auto; padding: 0 1em; }
.from { font-size: 14px; opacity: 0.7; }
"""
FRONT = '<div class="from">{{Chapter}}</div><p>{{Question}}</p>'
BACK = '{{FrontSide}}<hr id="answer"><p>{{Answer}}</p>'


def export(folder: Path, name: str) -> tuple[Path, int, int]:
    """Write exports/<chapter>.apkg below `folder`; `name` is a chapter, or "all".

    Returns the file, and the numbers of questions and of letters.
    """
    chapters = chosen(name)
    file = folder / "exports" / f"{name.replace('/', '-')}.apkg"
    with tempfile.TemporaryDirectory() as place, store.writing(file):
        made = Path(place) / "deck.apkg"
        genanki.Package([_deck(one) for one in chapters]).write_to_file(made)
        with written_whole(file) as out:
            out.write(made.read_bytes())
    questions = sum(len(one.questions) for one in chapters)
    return file, questions, sum(len(one.symbols) for one in chapters)


def _number(name: str) -> int:
    """A number of a deck, always the same for the same name; Anki wants it above 2³⁰."""
    return (1 << 30) + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % (1 << 30)


def _deck(asked: Asked) -> genanki.Deck:
    deck = genanki.Deck(_number(asked.chapter), f"{TOP}::{asked.title.replace('::', ':')}")
    for key, question, answer in _cards(asked):
        fields = [to_html(question), to_html(answer), to_html(asked.title)]
        guid = genanki.guid_for("tfviz", asked.chapter, key)
        tags = [asked.chapter.replace("/", "::")]
        deck.add_note(genanki.Note(model=_model(), fields=fields, guid=guid, tags=tags))
    return deck


def _model() -> genanki.Model:
    fields = [{"name": name} for name in ("Question", "Answer", "Chapter")]
    template = {"name": "Card 1", "qfmt": FRONT, "afmt": BACK}
    return genanki.Model(MODEL, "tfviz", fields=fields, templates=[template], css=STYLE)


def _cards(asked: Asked) -> Iterator[tuple[str, str, str]]:
    """What a card is known by, its front and its back."""
    for one in asked.questions:
        yield f"question {one.number}", one.question, one.answer
    for symbol in asked.symbols:
        verb = "do" if "$, $" in symbol.letters else "does"
        yield f"letter {symbol.letters}", f"What {verb} {symbol.letters} stand for?", symbol.meaning
