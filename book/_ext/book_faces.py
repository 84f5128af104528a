"""The faces that pages and explorers are set in, each cut down to the letters that it has to show.

Text is set in Source Serif and Inter, mathematics in the faces of KaTeX. They come from npm and
stand inside of the style sheets, so they are there when the first line is drawn, from a folder too,
and no line ever moves. Explorers draw words that stand in no page: `explorers` says which letters
the scripts of explorers may show.
"""

from __future__ import annotations

import base64
import hashlib
import html
import logging
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from unicodedata import decomposition, normalize

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from matplotlib import get_data_path

logging.getLogger("fontTools").setLevel(logging.ERROR)

NPM = Path(__file__).parents[2] / "node_modules"
KATEX = NPM / "katex" / "dist"
KATEX_STYLE = KATEX / "katex.min.css"
TEXT = {
    # file -> family in the style sheet, style, weights from … to, where npm has it
    "text.woff2": (
        "tf-text",
        "normal",
        (400, 700),
        "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-normal.woff2",
    ),
    "italic.woff2": (
        "tf-text",
        "italic",
        (400, 400),
        "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-italic.woff2",
    ),
    "label.woff2": (
        "tf-label",
        "normal",
        (400, 700),
        "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    ),
}
MATHS = {
    # face of KaTeX -> classes of the letters that need it
    "AMS-Regular": "amsrm|mathbb|textbb",
    "Caligraphic-Regular": "mathcal|textcal",
    "Caligraphic-Bold": "mathboldcal",  # a class that KaTeX has not: it sets none in bold
    "Fraktur-Regular": "mathfrak|textfrak",
    "Fraktur-Bold": "mathboldfrak|textboldfrak",
    "SansSerif-Regular": "mathsf|textsf",
    "SansSerif-Bold": "mathboldsf|textboldsf",
    "SansSerif-Italic": "mathsfit|mathitsf|textitsf",
    "Script-Regular": "mathscr|textscr",
    "Typewriter-Regular": "mathtt|texttt",
    "Main-Bold": "mathbf|textbf",
    "Main-BoldItalic": "textit|boldsymbol",
    "Main-Italic": "mathit|textit",
    "Math-Italic": "mathnormal|mathit|boldsymbol",
    "Math-BoldItalic": "boldsymbol",
}
"""Main-Regular has what is in none of these classes; the four sizes have all letters."""

IN_EXPLORERS = ("Main-Regular", "Main-Bold", "Math-Italic")
"""The faces of KaTeX that the style sheet of explorers names."""

SIGNS = Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
"""Of matplotlib: arrows, ticks, a visible space and what else explorers say that Inter lacks."""

TOKEN = re.compile(r'<(/?)[a-z]+(?:[^>]*? class="([^"]*)")?[^>]*?(/?)>|([^<]+)')


class Letters:
    """The letters of formulas by the classes that they stand in: their own, and those around."""

    def __init__(self) -> None:
        self.by_class: dict[str, set[str]] = {}
        self.plain: set[str] = set()  # in no class of a face
        self.all: set[str] = set()
        self.faced = {name for names in MATHS.values() for name in names.split("|")}

    def read(self, line: str) -> None:
        """A line of a page, from the first of its formulas on."""
        around: list[frozenset[str]] = []  # of each element that is open: its classes, and theirs
        own: frozenset[str] = frozenset()
        for closes, classes, alone, text in TOKEN.findall(line):
            if text:
                if around:
                    letters = set(html.unescape(text))
                    self.all |= letters
                    self.plain |= letters if not own else set()
                    for name in around[-1]:
                        self.by_class.setdefault(name, set()).update(letters)
            elif closes:
                around = around[:-1]
                own = frozenset()
            elif not alone and (around or "katex-html" in classes):
                own = frozenset(self.faced.intersection(classes.split()))
                around.append(own.union(around[-1] if around else ()))

    def of(self, face: str) -> set[str]:
        """What the font of this face has to hold."""
        if face in MATHS:
            return {x for name in MATHS[face].split("|") for x in self.by_class.get(name, ())}
        digits = set("0123456789")
        return (self.plain if face == "Main-Regular" else self.all) | digits


def explorers(folder: Path) -> set[str]:
    """The letters that the explorers of this folder may show: all those of their scripts.

    A letter that stands higher or lower, an accent and a bold capital are drawn as plain ones."""
    scripts = "".join(file.read_text("utf-8") for file in folder.glob("*.js"))
    return set(scripts).union(normalize("NFKD", "".join(set(scripts))))


def text_style(letters: Iterable[str], drawn: set[str], work: Path) -> str:
    """The style sheet of the faces of text, cut to printable ASCII and these letters; Inter also to
    what explorers have `drawn`."""
    ascii_and = {chr(code) for code in range(0x20, 0x7F)}.union(letters)
    rules = []
    for name, (family, look, weights, source) in TEXT.items():
        wanted = ascii_and | (drawn if name == "label.woff2" else set())
        cut(NPM / source, work / name, wanted, weights)
        rules.append(
            f'@font-face {{ font-family: "{family}"; font-style: {look}; '
            f"font-weight: {weights[0]} {weights[1]}; "
            f"font-display: block; "
            f'src: url({address(work / name)}) format("woff2"); }}\n'
        )
    return "".join(rules)


def maths_style(pages: Iterable[Path], drawn: set[str], work: Path) -> str:
    """The style sheet of KaTeX's faces, cut to what these pages and explorers (`drawn`) set."""
    used, formulas = Letters(), re.compile(r'<span class="katex-html".*')
    for line in {line for page in pages for line in formulas.findall(page.read_text("utf-8"))}:
        used.read(line)

    def inside(rule: str, name: str) -> str:
        face = name.removeprefix("KaTeX_").removesuffix(".woff2")
        letters = used.of(face) | (drawn_in(face, drawn) if face in IN_EXPLORERS else set())
        if not letters & held(KATEX / "fonts" / name):
            return ""
        cut(KATEX / "fonts" / name, work / name, letters)
        return rule.replace(f"fonts/{name}", address(work / name))

    style = re.sub(
        r",url\([^)]*\.(?:woff|ttf)\) format\(\"[a-z]+\"\)", "", KATEX_STYLE.read_text("utf-8")
    )
    faces = re.finditer(r"@font-face\{[^}]*url\(fonts/([^)]+)\)[^}]*\}", style)
    return "".join(inside(face[0], face[1]) for face in faces)


def drawn_in(face: str, drawn: set[str]) -> set[str]:
    """What explorers set in this face of KaTeX: words and signs of formulas, matrices, letters."""
    if face == "Main-Bold":
        return {normalize("NFKC", x) for x in drawn if "\U0001d400" <= x <= "\U0001d433"}
    if face == "Math-Italic":
        return {x for x in drawn if x.isalpha()}
    return drawn.difference("!\"#$%&'*?@\\^_`{}~“”‘’")  # what no formula of an explorer holds


def signs_style(drawn: set[str], work: Path) -> str:
    """The style sheet of the signs that stand in the words of explorers and that Inter lacks. It
    belongs to the sheet of the explorers, so that a page without one does not carry it.

    Greek is shown as in formulas; what is written higher or lower is a formula."""
    lacking = drawn - held(NPM / TEXT["label.woff2"][3])
    lacking -= held(KATEX / "fonts" / "KaTeX_Math-Italic.woff2") - set("ΔΣ")
    cut(SIGNS, work / "signs.woff2", {x for x in lacking if "<" not in decomposition(x)})
    return (
        '@font-face{font-family:"tf-signs";font-display:block;'
        f'src:url({address(work / "signs.woff2")}) format("woff2")}}'
    )


@cache
def held(font: Path) -> frozenset[str]:
    """The letters of a font; one that is cut to none of them cannot be read by a browser."""
    with TTFont(font) as opened:
        return frozenset(map(chr, opened.getBestCmap()))


def address(font: Path) -> str:
    """A font as an address that holds it."""
    return "data:font/woff2;base64," + base64.b64encode(font.read_bytes()).decode()


def cut(
    source: Path, target: Path, letters: set[str], weights: tuple[int, int] | None = None
) -> None:
    """Write a copy of a font with these letters only, and of its weights those from … to."""
    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = ["kern", "liga", "lnum", "tnum"]
    options.hinting = False  # a third of a small font, for screens of long ago
    options.notdef_outline = True
    options.name_IDs = []  # names and licences stand on the page of licences
    options.drop_tables += ["STAT", "BASE", "gasp"]  # what menus and printers ask a font
    text = "".join(sorted(letters & held(source)))
    target.parent.mkdir(parents=True, exist_ok=True)
    said = f"{source.stat().st_size} {text} {weights} {options.layout_features} {options.hinting}"
    said += f" {options.name_IDs} {options.drop_tables}"
    digest = hashlib.sha256(said.encode()).hexdigest()
    stamp = target.with_suffix(".letters")
    if target.exists() and stamp.exists() and stamp.read_text("utf-8") == digest:
        return
    with subset.load_font(str(source), options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(text=text)
        cutter.subset(font)
        if weights:
            first, last = weights
            ends = {"wght": first if first == last else weights}
            instantiateVariableFont(font, ends, inplace=True)
        subset.save_font(font, str(target), options)
    stamp.write_text(digest, "utf-8")
