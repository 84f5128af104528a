"""How tall each section of a chapter will be, about, at the widths of a desk and of a phone.

A browser lays out what is far away only as one comes near. Until then it needs a guess, or its
scrollbar lies. What a page reserves for explorers and how large its pictures are is known; what a
line, a row or a title takes was fitted to all chapters, and the tests compare both widths.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from math import ceil, inf

from book_reading import closing

REM = 16
SECTION = re.compile(r'<section\b[^>]*\bid="[^"]*"[^>]*(?=>)')
UNSEEN = re.compile(r"<(script|math|noscript|style)\b.*?</\1>", re.S)
FOLD = re.compile(r'<details(?P<code> class="tf-code")?(?:(?!<details).)*?</details>', re.S)
FIGURE = re.compile(r'<figure class="tfviz-figure.*?</figure>', re.S)
CAPTION = re.compile(r"<figcaption>(.*?)</figcaption>", re.S)
PICTURE = re.compile(
    r'data-from="(?P<least>\d+)"|<svg[^>]*class="tfviz-svg(?P<form> tfviz-\w+)?"[^>]*?'
    r' width="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)"'
)
RESERVED = re.compile(r'<div class="tfviz-explorer-body" style="min-height: ([^"]*)"')
STEP = re.compile(r"clamp\((\S+)rem, (\S+) \* \((\d+)px - 100cqw\), (\S+)rem\)")
DRAWING = re.compile(r"<svg\b.*?</svg>", re.S)
LISTING = re.compile(r"<pre[^>]*>(.*?)</pre>", re.S)
TABLE = re.compile(r"<table.*?</table>", re.S)
EQUATION = re.compile(
    r'<div class="math tf-equation.*?</div>(?:<a class="eqno.*?</a>)?</div>', re.S
)
BLOCK = re.compile(r"<(?:p|li|dd|dt)\b[^>]*>((?:(?!<(?:p|li|dd|dt|ul|ol)\b).)*)", re.S)


@dataclass(frozen=True)
class Width:
    """Of a window: pixels for the text; letters in a line of text, of a caption, of code; and the
    pixels that one of each kind takes, with the white around it."""

    room: int
    letters: int
    caption: int
    code: float
    block: int
    line: int
    listing: int
    row_of_code: int
    table: int
    row: int
    equation: int
    exercise: int
    fold: int
    title: int


DESK = Width(890, 68, 105, inf, 15, 28, 34, 21, 80, 40, 68, 150, 43, 26)
PHONE = Width(350, 39, 48, 42, 12, 26, 20, 23, 230, 50, 56, 220, 50, 40)
GAP, FIGURES, EXPLORERS = 16, 20, 30  # between two pictures, and around a figure or an explorer


def guessed(body: str) -> str:
    """Each section that is laid out late (article.css) with its heights: on a phone and a desk."""

    def guess(match: re.Match[str]) -> str:
        start = match.end() + 1
        inside = body[start : closing(body, start, "section")]
        level = inside.partition("<h")[2][:1]
        if level != "3" and (level != "2" or SECTION.search(inside)):
            return match[0]
        tall, wide = height(inside, PHONE), height(inside, DESK)
        return f'{match[0]} style="--tall: {tall:.0f}px; --wide: {wide:.0f}px"'

    return SECTION.sub(guess, body)


def height(text: str, width: Width) -> float:
    """The pixels that this piece of a page takes, all that folds being shut."""
    text, before = UNSEEN.sub("", text), ""
    while text != before:  # from the innermost outwards; the button for code stands in its picture
        before, text = text, FOLD.sub(lambda fold: "" if fold["code"] else "\0", text)
    pixels = float(width.fold * text.count("\0"))
    pixels += sum(reserved(style, width.room) + EXPLORERS for style in RESERVED.findall(text))
    pixels += sum(drawn(figure, width) + FIGURES for figure in FIGURE.findall(text))
    text = DRAWING.sub("", FIGURE.sub("", text))
    for listing in LISTING.findall(text):
        pixels += width.listing
        pixels += width.row_of_code * sum(lines(row, width.code) for row in listing.split("\n"))
    text = LISTING.sub("", text)
    pixels += sum(width.table + width.row * table.count("<tr") for table in TABLE.findall(text))
    text, equations = EQUATION.subn("", TABLE.sub("", text))
    pixels += width.equation * equations
    for block in filter(letters, BLOCK.findall(text)):
        pixels += width.block + width.line * lines(block, width.letters)
    pixels += width.exercise * len(re.findall(r'class="exercise\b', text))
    return pixels + width.title * len(re.findall(r"<h[234]\b", text))


def letters(text: str) -> int:
    return len(html.unescape(re.sub(r"<[^>]*>|\0", "", text)).strip())


def lines(text: str, long: float) -> int:
    return max(1, ceil(letters(text) / long))


def reserved(style: str, room: float) -> float:
    """The least height of an explorer: so many rem, and steps from one width of its place on."""
    rem = float(style.removeprefix("calc(").partition("rem")[0])
    for low, slope, edge, high in STEP.findall(style):
        rem += min(max(float(slope) * (int(edge) - room), float(low)), float(high))
    return REM * rem


def drawn(figure: str, width: Width) -> float:
    """Its pictures in rows, each in the form for this width, and its caption below or beside."""
    least, across, tall, pixels = 0.0, 0.0, 0.0, 0.0
    for picture in PICTURE.finditer(figure):
        if picture["least"]:
            least = float(picture["least"])
        elif picture["form"] != (" tfviz-narrow" if width.room >= least else " tfviz-wide"):
            wide, high = float(picture["width"]), float(picture["height"])
            scale = min(1, width.room / wide)
            if across and across + wide * scale > width.room:
                pixels, across, tall = pixels + tall + GAP, 0, 0
            across, tall = across + wide * scale + GAP, max(tall, high * scale)
    beside = "is-beside" in figure.partition(">")[0] and width is DESK
    captions = [] if beside else CAPTION.findall(figure)
    return pixels + tall + sum(6 + 20 * lines(words, width.caption) for words in captions)
