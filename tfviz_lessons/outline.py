"""What a page holds: its sections, one in the other, and the boxes that stand in them.

Whoever looks for a section, a fold or a box of a page asks here, so that there is one definition of
each. A *section* begins at a heading and ends at the next one of its level or above; `(label)=` in
the lines before names it. A *box* is what stands between two fences: a directive, or code without
one, whose `name` is empty. A heading inside a box begins no section. A section whose title begins
with `DEEPER` or `MORE` is a *fold*.

>>> page = outline("# A\\n(x)=\\n## B\\n```{note}\\n# no heading\\n```\\n### C\\n## D\\n")
>>> [(part.number, part.title, part.label) for part in page.walk()]
[('', 'A', ''), ('1', 'B', 'x'), ('1.1', 'C', ''), ('2', 'D', '')]
>>> [(box.name, box.body) for box in page.labelled("x").boxes]
[('note', '# no heading\\n')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin

DEEPER, MORE = "Deeper: ", "More: "
FENCES = ("fence", "colon_fence")
DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
ITEM = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", re.M | re.S)
DECLARED = re.compile(r"(?P<letters>\$[^$]+\$(?:, \$[^$]+\$)*): (?P<meaning>\S[^$]*)")
VERBATIM = ("", "code-cell", "code-block", "literalinclude", "math")
"""Names of boxes whose text is no Markdown."""


class LessonError(Exception):
    """What is wrong with a lesson: one line for each problem, with file and line."""

    def __init__(self, path: str, problems: list[tuple[int, str]]) -> None:
        self.path = path
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{path}:{line}: {text}" for line, text in self.problems))


def markdown() -> MarkdownIt:
    """Reads the blocks of MyST, as the book does; what stands in a line is left as it is."""
    return (
        MarkdownIt("commonmark")
        .enable("table")
        .use(myst_block_plugin)
        .use(colon_fence_plugin)
        .use(dollarmath_plugin, allow_labels=True)
        .use(amsmath_plugin)
        .use(deflist_plugin)
        .disable("inline", True)
    )


def directive(token: Token) -> tuple[str, str]:
    """The name of a fence's directive, empty for code without one, and what stands behind it."""
    found = DIRECTIVE.match(token.info)
    return (found[1], found[2].strip()) if found else ("", token.info)


@dataclass(frozen=True)
class Box:
    """What two fences enclose: `start` is the line of the first, from 0, `end` the line after."""

    name: str
    argument: str
    start: int
    end: int
    body: str


@dataclass(frozen=True)
class Section:
    """A heading with all below it; a page as a whole is one whose heading is its title.

    Lines are counted from 0: `start` is that of the heading, `end` the one after the last. `number`
    says which section of the page it is, such as 2 or 2.1. `boxes` are all of them, those in its
    `parts` and those in other boxes too, in the order of the source.
    """

    title: str
    label: str
    number: str
    start: int
    end: int
    text: str
    boxes: tuple[Box, ...]
    parts: tuple[Section, ...]

    @property
    def folded(self) -> bool:
        """Whether the page folds it."""
        return self.title.startswith((DEEPER, MORE))

    def walk(self) -> Iterator[Section]:
        """This section and all below it, in the order of the source."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def titled(self, title: str) -> Section | None:
        """The first part of this title, at any depth."""
        return next((one for one in self.walk() if one.title == title), None)

    def labelled(self, label: str) -> Section | None:
        """The part of this label."""
        return next((one for one in self.walk() if one.label == label), None)

    def named(self, name: str) -> list[Box]:
        """Its boxes of this name, such as measured."""
        return [box for box in self.boxes if box.name == name]


@cache
def tokens(text: str) -> tuple[Token, ...]:
    """The blocks of a whole page."""
    return tuple(markdown().use(front_matter_plugin).parse(text + "\n"))


@cache
def outline(text: str, path: str | Path = "<page>") -> Section:
    """The page of this text. Raises `LessonError` for a box without end and a label used twice."""
    lines, problems = text.split("\n"), list[tuple[int, str]]()
    boxes = [*_boxes(lines, tokens(text), 0, problems)]
    heads = [*_heads(tokens(text), problems)]
    if problems:
        raise LessonError(str(path), problems)
    front = next((t.map[1] for t in tokens(text)[:1] if t.type == "front_matter" and t.map), 0)
    if heads and heads[0].level == 1:
        title = heads.pop(0)
        whole = _Head(0, title.title, title.label, front, front)
    else:
        whole = _Head(0, "", "", front, front)
    return _section(whole, heads, len(lines), lines, boxes, "")


def outline_of(path: Path) -> Section:
    """`outline` of the file at `path`."""
    return outline(path.read_text("utf8"), path)


# --- what a chapter asks and declares -------------------------------------------------------------


def five_questions(page: Section, name: str) -> list[tuple[str, str]]:
    """The questions of the chapter `name` with their answers, each as one line of Markdown.

    Raises ValueError if it has none, or not as many answers as questions.
    """
    part = page.titled("Five questions")
    boxes = part.named("dropdown") if part else []
    answers = next((box for box in boxes if box.argument == "Answers"), None)
    if part is None or answers is None:
        raise ValueError(f"{name} has no section 'Five questions' with '{{dropdown}} Answers'")
    before = part.text.split("\n")[: answers.start - part.start]
    asked, given = _items("\n".join(before)), _items(answers.body)
    if asked.keys() != given.keys() or not asked:
        raise ValueError(
            f"{name} has {len(asked)} questions and {len(given)} answers under 'Five questions', "
            f"numbered {[*asked]} and {[*given]}; give both the same numbers"
        )
    return [(asked[number], given[number]) for number in asked]


def _items(text: str) -> dict[int, str]:
    """The items of a numbered list by their numbers."""
    return {int(number): " ".join(item.split()) for number, item in ITEM.findall(text)}


def declarations(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """(formulas, meaning) of each line `$a$, $b$: meaning`; a line that is indented goes on.

    Raises ValueError for a line of another form.
    """
    for line in filter(str.strip, re.sub(r"\n\s+(?=\S)", " ", text).split("\n")):
        match = DECLARED.fullmatch(line.strip())
        if not match:
            raise ValueError(
                f"{line!r} declares no letter; write `$letter$: what it means, in words`"
            )
        yield tuple(re.findall(r"\$([^$]+)\$", match["letters"])), match["meaning"].strip()


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Head:
    level: int
    title: str
    label: str
    above: int  # the line of its label, or its own
    line: int


def _heads(found: tuple[Token, ...], problems: list[tuple[int, str]]) -> Iterator[_Head]:
    label, above, taken = "", 0, dict[str, int]()
    for n, token in enumerate(found):
        if token.level or token.map is None:
            continue
        if token.type == "myst_target":
            label, above = token.content, token.map[0]
            continue
        if token.type == "heading_open":
            line = token.map[0]
            if label in taken:
                problems.append(
                    (line + 1, f"label {label!r} is taken by the heading in line {taken[label]}")
                )
            elif label:
                taken[label] = line + 1
            title = found[n + 1].content
            yield _Head(int(token.tag[1:]), title, label, above if label else line, line)
        label = ""


def _boxes(
    lines: list[str], found: tuple[Token, ...], first: int, problems: list[tuple[int, str]]
) -> Iterator[Box]:
    """The boxes of a text that stands in a page from line `first` on."""
    for token in found:
        if token.type not in FENCES or token.map is None:
            continue
        (start, end), (name, argument) = token.map, directive(token)
        last = lines[end - 1].lstrip("> \t").rstrip() if end - 1 > start else ""
        inner = (n for n in range(start + 1, end) if lines[n].startswith(f"{token.markup}{{"))
        where = next(inner, None)
        if where is not None or not (last and set(last) == {token.markup[0]}):
            what = f"{{{name}}}" if name else "the code"
            before = f"before {lines[where]!r} in line {first + where + 1}" if where else "at all"
            problems.append(
                (first + start + 1, f"{what} is not closed {before}; end it with {token.markup}")
            )
            continue
        yield Box(name, argument, first + start, first + end, token.content)
        if name not in VERBATIM:
            inside = tuple(markdown().parse(token.content))
            yield from _boxes(token.content.split("\n"), inside, first + start + 1, problems)


def _section(
    head: _Head, below: list[_Head], end: int, lines: list[str], boxes: list[Box], number: str
) -> Section:
    """The section of `head`, made of the headings below it, which ends before line `end`."""
    parts = list[Section]()
    while below:
        first, rest = below[0], below[1:]
        count = next((n for n, x in enumerate(rest) if x.level <= first.level), len(rest))
        stop = rest[count].above if count < len(rest) else end
        place = f"{number}.{len(parts) + 1}".lstrip(".")
        parts.append(_section(first, rest[:count], stop, lines, boxes, place))
        below = rest[count:]
    own = tuple(box for box in boxes if head.line <= box.start < end)
    text = "\n".join(lines[head.line : end])
    return Section(head.title, head.label, number, head.line, end, text, own, tuple(parts))
