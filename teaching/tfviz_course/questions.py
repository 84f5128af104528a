"""What a chapter asks and declares, for other programs: its five questions and its letters."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tfviz_course import CourseError
from tfviz_lessons import clone
from tfviz_lessons.outline import LessonError, declarations, five_questions, outline
from tfviz_lessons.plain import expand

ALL = "all"
SIGNS = {"to": "→", "ell": "ℓ", "times": "×", "cdot": "·", "le": "≤", "ge": "≥", "sqrt": "√"}
DIRECTIVE = re.compile(r"\{[a-z:-]+\}`|^`{3,}", re.M)  # MyST that only the book can read


class Question(NamedTuple):
    number: int
    question: str  # Markdown, formulas in $…$
    answer: str


class Symbol(NamedTuple):
    letters: str  # formulas in $…$, separated by commas
    meaning: str


class Asked(NamedTuple):
    """What is taken from one chapter."""

    chapter: str  # such as basics/attention
    title: str
    questions: tuple[Question, ...]
    symbols: tuple[Symbol, ...]


def chosen(name: str) -> list[Asked]:
    """The chapter of this name, or with "all" every one. Raises `LessonsError` for an unknown one,
    with the nearest names, `CourseError` for one that cannot be read."""
    names = list(clone.chapters()) if name == ALL else [name]
    if name not in clone.chapters() and name != ALL:
        clone.read(name)  # which says what is near
    return [read(one) for one in names]


def read(chapter: str) -> Asked:
    """The five questions and the letters of a chapter, in its order."""
    path, symbols = clone.chapters()[chapter], dict[str, Symbol]()
    try:
        page = outline(path.read_text("utf8"), path)
        pairs = five_questions(page, chapter)
        for box in page.named("letters"):
            for formulas, meaning in declarations(box.body):
                letters = ", ".join(f"${tex}$" for tex in formulas)
                symbols.setdefault(letters, Symbol(letters, meaning))
    except (ValueError, LessonError) as error:
        raise CourseError(str(error)) from None
    questions = [Question(number, *pair) for number, pair in enumerate(pairs, 1)]
    for said in (*itertools.chain(*pairs), *(one.meaning for one in symbols.values())):
        if wrong := DIRECTIVE.search(said):
            where = f"{wrong[0]!r} in {said[:60]!r}"
            raise CourseError(f"{chapter}: {where} works only in the book; write it as text")
    return Asked(chapter, page.title, tuple(questions), tuple(symbols.values()))


@cache
def macros() -> dict[str, Any]:
    """The book's own names for parts of formulas."""
    config = yaml.safe_load((clone.home() / "_config.yml").read_text("utf8"))
    known: dict[str, Any] = config["sphinx"]["config"]["tfviz_macros"]
    return known


def to_words(text: str) -> str:
    """Markdown of one line as plain text: signs in place of TeX, no marks."""
    out = []
    for token in _reader().parseInline(text)[0].children or ():
        if token.type.startswith("math"):
            out.append(_signs(expand(token.content, macros())))
        else:
            out.append(" " if token.type.endswith("break") else token.content)
    return "".join(out)


def _signs(tex: str) -> str:
    """TeX of a letter or two: signs for what has one, and no command for a font."""

    def sign(command: re.Match[str]) -> str:
        name = command[1]
        if name in SIGNS or name.startswith(("math", "text", "operatorname")):
            return SIGNS.get(name, "")
        size = "CAPITAL" if name[0].isupper() else "SMALL"
        try:
            return unicodedata.lookup(f"GREEK {size} LETTER {name}")
        except KeyError:
            return name

    return re.sub(r"[{}]", "", re.sub(r"\\([A-Za-z]+) ?", sign, tex))


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark").use(dollarmath_plugin, allow_space=False)


def to_html(text: str) -> str:
    r"""Markdown of one paragraph as HTML. Formulas stand in `\(…\)`, with no macro of the book's;
    of a link the words stay. Nothing in it is fetched."""
    out = []
    for token in _reader().parseInline(text)[0].children or ():
        if token.type in ("math_inline", "math_inline_double"):
            out.append(html.escape(rf"\({expand(token.content, macros()).strip()}\)", quote=False))
        elif token.type == "code_inline":
            out.append(f"<code>{html.escape(token.content)}</code>")
        elif token.type in ("strong_open", "em_open", "strong_close", "em_close"):
            out.append(f"<{'/' if token.nesting < 0 else ''}{token.tag}>")
        elif token.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif token.type == "text":
            out.append(html.escape(token.content, quote=False))
        elif token.type not in ("link_open", "link_close"):
            raise CourseError(f"{token.type} in {text[:60]!r} cannot be exported: write it as text")
    return "".join(out)
