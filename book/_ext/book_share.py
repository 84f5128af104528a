"""How a page looks where somebody shares its address, and how it is found, missed and corrected.

A page says its title, one sentence and, where the course has a public address, a picture. With that
address go a site map and a report form: a link that names the page and the section. The page that
a server shows for an address that does not exist (404.html) works at any depth.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.sax.saxutils import escape

import book_search
import reference_pages
from PIL import Image, ImageColor, ImageDraw, ImageFont
from sphinx.application import Sphinx

from tfviz import catalogue
from tfviz.catalogue import Chapter
from tfviz.plots.roles import LIGHT

ROOT = Path(__file__).parents[2]
FONTS = ROOT / "node_modules/@fontsource-variable"
TEXT = FONTS / "source-serif-4/files/source-serif-4-latin-wght-normal.woff2"
LABEL = FONTS / "inter/files/inter-latin-wght-normal.woff2"
CARDS = "_static/cards"
COURSE = "course"  # the card of every page that is no chapter
SIZE, MARGIN, PICTURE = (1200, 630), 72, 432
LONGEST = 200  # letters of a description
LOST, LICENCES = "404", "book/licences"
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[\"“(A-Z])")


# --- title, sentence, picture ---------------------------------------------------------------------


def shortened(text: str) -> str:
    """As many whole sentences of a text as are short enough; at least the first, cut if it must."""
    sentences = SENTENCE.split(" ".join(text.split()))
    said = sentences[0]
    for sentence in sentences[1:]:
        if len(f"{said} {sentence}") > LONGEST:
            break
        said = f"{said} {sentence}"
    said = said.removesuffix(":")
    return said if len(said) <= LONGEST else said[: said.rindex(" ", 0, LONGEST)] + " …"


def described(app: Sphinx, pagename: str) -> str:
    """What a page says of itself, in its first sentences or by what it is."""
    if pagename.startswith("reference/"):
        room = pagename.removeprefix("reference/")
        said = reference_pages.summary(reference_pages.rooms()[room])
        return f"{room}: {reference_pages.unmarked(said) or 'its functions and classes'}".rstrip()
    if pagename == "search":
        return "Search every section, word and symbol of the course."
    first = book_search.kept(app.env).get(pagename, [])[:1]
    course = app.env.titles[app.config.root_doc].astext()
    return "".join(
        shortened(text or f"{title}, a page of the course “{course}”.")
        for _, title, _, text in first
    )


def share(app: Sphinx, pagename: str, _: str, context: dict[str, Any], __: Any) -> None:
    """Everything that `layout.html` says of a page to those who do not see it."""
    title = context["tf_title"]
    tags = re.findall(r"<meta [^>]*>", context.get("metatags") or "")
    own = [tag for tag in tags if 'name="description"' in tag]
    written = re.search(r'content="([^"]*)"', own[0]) if own else None
    context["page_description"] = html.unescape(written[1]) if written else described(app, pagename)
    base = app.config.html_baseurl
    if context["tf_landing"] and base:
        context["pageurl"] = base
    if pagename == LOST:
        context["pageurl"] = ""
    context["tf_card"] = f"{base}{CARDS}/{card_name(pagename)}.png" if base else ""
    context["tf_report"] = report(app.config.tfviz_home, title, pagename)
    context["tf_licences"] = context["pathto"](LICENCES) if LICENCES in app.env.found_docs else ""
    context["tf_parts"] = [(part.title, chapter.document) for part, chapter in first_chapters(app)]


def report(home: str, title: str, pagename: str) -> str:
    """The address of the form for mistakes, filled in; empty where the course is not on GitHub."""
    home = home.removesuffix(".git")
    if not re.fullmatch(r"https?://github\.com/[^/]+/[^/]+", home):
        return ""
    asked = {
        "template": "mistake.yml",
        "title": f"Mistake: {title}",
        "page": f"{title} ({pagename})",
    }
    return f"{home}/issues/new?{urlencode(asked)}"


def chapter_of(pagename: str) -> Chapter | None:
    return next((one for one in catalogue.CHAPTERS if one.document == pagename), None)


def first_chapters(app: Sphinx) -> list[tuple[catalogue.Part, Chapter]]:
    """Each part with the first of its chapters that the book has."""
    here = [one for one in catalogue.CHAPTERS if one.document in app.env.found_docs]
    first = {chapter.part: chapter for chapter in reversed(here)}
    return [(part, first[part.id]) for part in catalogue.PARTS if part.id in first]


def card_name(pagename: str) -> str:
    """The name of the picture that stands for a page: its own for a chapter, else the course's."""
    chapter = chapter_of(pagename)
    return f"{chapter.part}-{chapter.stem}" if chapter else COURSE


# --- pictures -------------------------------------------------------------------------------------


@cache
def face(file: Path, size: int, weight: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(str(file), size)
    font.set_variation_by_axes([weight])
    return font


def lines(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """A text broken into lines of at most this width, in pixels."""
    rows = [""]
    for word in text.split():
        longer = f"{rows[-1]} {word}".strip()
        if font.getlength(longer) <= width or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(word)
    return rows


def matrix(chapter: Chapter | None) -> list[list[float]]:
    """The picture of a chapter's first mechanism in the atlas: numbers from 0 to 1, row by row."""
    from tfviz.exhibits import EXHIBITS

    number = chapter.number if chapter else 17  # the course shows a sparse pattern, as its logo
    rows = [row for row in catalogue.MECHANISMS if row.chapter_number == number]
    row = next(row for row in rows if row.id in EXHIBITS)
    return EXHIBITS[row.id].picture().clamp(0, 1).tolist()


def card(eyebrow: str, title: str, numbers: list[list[float]]) -> Image.Image:
    """The picture beside a shared link: the title at the left, a matrix at the right."""
    image = Image.new("RGB", SIZE, LIGHT["page"])
    draw = ImageDraw.Draw(image)
    left = SIZE[0] - MARGIN - PICTURE
    top = (SIZE[1] - PICTURE) // 2
    cell = PICTURE // len(numbers)
    page, ink = (ImageColor.getrgb(LIGHT[role])[:3] for role in ("page", "attention"))
    draw.rectangle(
        (left - 1, top - 1, left + cell * len(numbers), top + cell * len(numbers)),
        outline=LIGHT["grid"],
    )
    for i, row in enumerate(numbers):
        for j, weight in enumerate(row):
            shade = round(weight * 15) / 15  # no eye tells more apart, and the file stays small
            colour = tuple(round(p + (a - p) * shade) for p, a in zip(page, ink, strict=True))
            x, y = left + j * cell, top + i * cell
            draw.rectangle((x, y, x + cell - 2, y + cell - 2), fill=colour)
    width = left - 2 * MARGIN
    size = next(s for s in range(76, 30, -4) if len(lines(title, face(TEXT, s, 700), width)) <= 4)
    bold = face(TEXT, size, 700)
    draw.text((MARGIN, top + 22), eyebrow, LIGHT["muted"], face(LABEL, 26, 500), "ls")
    for n, line in enumerate(lines(title, bold, width)):
        baseline = top + 58 + round(size * (0.72 + 1.16 * n))
        draw.text((MARGIN, baseline), line, LIGHT["ink"], bold, "ls")
    draw.text((MARGIN, top + PICTURE), "tfviz", LIGHT["attention"], face(LABEL, 30, 650), "ls")
    return image.quantize(64, dither=Image.Dither.NONE)


def write_cards(app: Sphinx, static: Path, work: Path) -> None:
    """The pictures that pages name: one for each chapter and one for the course."""
    folder = static / Path(CARDS).name
    if not app.config.html_baseurl:
        return
    course = app.env.titles[app.config.root_doc].astext()
    chapters = [one for one in catalogue.CHAPTERS if one.document in app.env.found_docs]
    folder.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    for chapter in [None, *chapters]:
        name = card_name(chapter.document) if chapter else COURSE
        part = next(
            (part.title for part in catalogue.PARTS if chapter and part.id == chapter.part), ""
        )
        eyebrow = f"Chapter {chapter.number} · {part}" if chapter else "An interactive course"
        title = app.env.titles[chapter.document].astext() if chapter else course
        numbers = matrix(chapter)
        digest = hashlib.sha256(repr((eyebrow, title, numbers)).encode()).hexdigest()[:16]
        kept = work / f"{name}-{digest}.png"
        if not kept.exists():
            card(eyebrow, title, numbers).save(kept, optimize=True)
        (folder / f"{name}.png").write_bytes(kept.read_bytes())


# --- files beside the pages -----------------------------------------------------------------------


def write_sitemap(app: Sphinx, names: Iterable[str]) -> None:
    """sitemap.xml: the address of every page, if the course has one."""
    base, file = app.config.html_baseurl, Path(app.outdir, "sitemap.xml")
    if not base:
        file.unlink(missing_ok=True)
        return
    pages = sorted({*names} - {app.config.root_doc, "index", "search", LOST})
    places = [base, *(f"{base}{name}.html" for name in pages)]
    rows = "".join(f"<url><loc>{escape(place)}</loc></url>\n" for place in places)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    frame = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    file.write_text(f"{head}{frame}{rows}</urlset>\n", "utf-8")


def rooted(page: str, base: str) -> str:
    """A page of the root as it must read at any depth: its addresses begin at the server's root.

    `base` is the address of the course; without one, the course is taken to be at the root.
    """
    path = urlsplit(base).path or "/"

    def there(match: re.Match[str]) -> str:
        return (
            match[0]
            if re.match(r"[a-z]+:|/|#", match[2])
            else f"{match[1]}{path}{match[2]}{match[3]}"
        )

    page = re.sub(r'(\s(?:href|src)=")([^"]+)(")', there, page)
    return re.sub(r'data-content_root="[^"]*"', f'data-content_root="{html.escape(path)}"', page)


def write_lost(app: Sphinx) -> None:
    """Make the addresses of 404.html independent of where it is shown."""
    file = Path(app.outdir, f"{LOST}.html")
    file.write_text(rooted(file.read_text("utf-8"), app.config.html_baseurl), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", share, priority=950)  # after book_pages
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
