"""Formulas, rendered while the book is built: a page needs no script to show them.

KaTeX runs inside V8 (`mini-racer`) and writes HTML for eyes and MathML for screen readers. Its
style sheet and fonts are linked only from pages with a formula, and each font is cut down to the
characters that the book sets in it. A formula that does not parse is a warning with its place, and
fails the build.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging as python_logging
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
python_logging.getLogger("fontTools").setLevel(python_logging.ERROR)

ROOT = Path(__file__).parents[2]
KATEX = ROOT / "node_modules" / "katex" / "dist"
TRUSTED = "\\htmlClass"
LETTERS = Path(__file__).with_name("formula_letters.js")

RENDER = """
const known = ["htmlExtension", "newLineInDisplayMode"];
function render(tex, display, macros, trusted) {
  try {
    const tree = katex.__renderToDomTree(tex, {
      displayMode: display, macros: {...macros}, output: "htmlAndMathml", throwOnError: true,
      strict: (code) => known.includes(code) ? "ignore" : "error",
      trust: (context) => context.command === trusted,
    });
    const letters = new Set();
    nameLetters(tree, letters);
    const html = tree.toMarkup()
      .replace(/<annotation .*?<\\/annotation>/s, "")  // the TeX, again
      .replaceAll(' columnspacing=""', "");  // between columns, of which there is one
    return {html, letters: [...letters]};
  } catch (error) {
    return {error: error.message};
  }
}
"""


class FormulaError(ValueError):
    """A formula that KaTeX does not understand."""


class Renderer:
    """KaTeX with the book's macros; remembers what it has rendered."""

    def __init__(self, macros: dict[str, str]) -> None:
        self.macros = {f"\\{name}": meaning for name, meaning in macros.items()}
        self.done: dict[tuple[str, bool], tuple[str, tuple[str, ...]]] = {}
        self.engine: MiniRacer | None = None

    def __call__(self, tex: str, display: bool = False) -> str:
        """The HTML of one formula."""
        return self._rendered(tex, display)[0]

    def letters(self, tex: str, display: bool = False) -> tuple[str, ...]:
        """The names of the letters in it (see formula_letters.js), each once, from the left."""
        return self._rendered(tex, display)[1]

    def _rendered(self, tex: str, display: bool) -> tuple[str, tuple[str, ...]]:
        key = (tex, display)
        if key not in self.done:
            if self.engine is None:
                self.engine = MiniRacer()
                programs = (KATEX / "katex.min.js").read_text("utf-8"), LETTERS.read_text("utf-8")
                self.engine.eval("\n".join((*programs, RENDER)))
            arguments = ", ".join(map(json.dumps, (tex, display, self.macros, TRUSTED)))
            answer = json.loads(str(self.engine.eval(f"JSON.stringify(render({arguments}))")))
            if "error" in answer:
                raise FormulaError(answer["error"])
            self.done[key] = answer["html"], tuple(answer["letters"])
        return self.done[key]


def place(node: nodes.Node) -> tuple[str | None, int | None]:
    """Source file and line of the node, or of the nearest node around it that has them."""
    source, at = None, node
    while at is not None:
        source = source or getattr(at, "source", None)
        if getattr(at, "line", None):
            return source, at.line
        at = at.parent
    return source, None


def show(self: Any, node: nodes.Element, tex: str, display: bool) -> str:
    try:
        return self.builder.app.tfviz_katex(tex, display)
    except FormulaError as error:
        source, line = place(node)
        logger.warning(
            "formula %r: %s", tex, error, location=f"{source}:{line or ''}", type="tfviz"
        )
        return f'<code class="tf-bad-formula">{html.escape(tex)}</code>'


SHORT = 30
"""A formula of fewer letters never breaks from the comma or the bracket behind it."""
OPEN, CLOSE = '<span class="tf-math">', "</span><!-- tf-math -->"


def visit_inline(self: Any, node: nodes.math) -> None:
    shown = show(self, node, node.astext(), display=False)
    self.body.append(OPEN + shown + CLOSE if len(node.astext()) < SHORT else shown)
    raise nodes.SkipNode


def keep_marks(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Moves commas and brackets at a short formula into its box, beside which a line may break."""
    body = re.sub(r"([(“‘]+)" + re.escape(OPEN), OPEN + r"\1", context.get("body", ""))
    context["body"] = re.sub(re.escape(CLOSE) + r"([,.;:!?)”’]*)", r"\1</span>", body)


def visit_display(self: Any, node: nodes.math_block) -> None:
    number = get_node_equation_number(self, node) if node.get("number") else ""
    self.body.append(self.starttag(node, "div", CLASS="math tf-equation"))
    self.body.append('<div class="tf-formula">')
    self.body.append(show(self, node, arranged(node.astext()), display=True))
    self.body.append("</div>")
    if number:
        self.body.append(f'<a class="eqno" href="#{node["ids"][0]}">({number})</a>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def arranged(tex: str) -> str:
    """Display math as Sphinx means it: blank lines part equations, and `&` may align them."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", tex) if part.strip()]
    if any(part.startswith(r"\begin{") and part.endswith("}") for part in parts):
        return "\n".join(parts)
    parts = [rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part for part in parts]
    if len(parts) == 1:
        return parts[0]
    return r"\begin{gathered}" + r"\\".join(parts) + r"\end{gathered}"


def start(app: Sphinx) -> None:
    app.tfviz_katex = Renderer(dict(app.config.tfviz_macros))  # type: ignore[attr-defined]


# --- style sheet and fonts ------------------------------------------------------------------------


FACES = {
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


TOKEN = re.compile(r'<(/?)[a-z]+(?:[^>]*? class="([^"]*)")?[^>]*?(/?)>|([^<]+)')


class Letters:
    """The letters of formulas by the classes that they stand in: their own, and those around."""

    def __init__(self) -> None:
        self.by_class: dict[str, set[str]] = {}
        self.plain: set[str] = set()  # in no class of a face
        self.all: set[str] = set()
        self.faced = {name for names in FACES.values() for name in names.split("|")}

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
        if face in FACES:
            return {x for name in FACES[face].split("|") for x in self.by_class.get(name, ())}
        digits = set("0123456789")
        return (self.plain if face == "Main-Regular" else self.all) | digits


def katex_style(pages: list[Path], work: Path) -> str:
    """KaTeX's style sheet with its fonts inside, each cut to the letters that the pages set in it.

    Fonts that come with the style sheet are there when the first line is drawn: nothing moves.
    """
    used, formulas = Letters(), re.compile(r'<span class="katex-html".*')
    for line in {line for page in pages for line in formulas.findall(page.read_text("utf-8"))}:
        used.read(line)

    def inside(match: re.Match[str]) -> str:
        name = match[1]
        letters = used.of(name.removeprefix("KaTeX_").removesuffix(".woff2"))
        if not letters & held(KATEX / "fonts" / name):
            return ""
        cut_font(KATEX / "fonts" / name, work / name, letters)
        return match[0].replace(f"fonts/{name}", data_address(work / name))

    style = (KATEX / "katex.min.css").read_text("utf-8")
    style = re.sub(r",url\([^)]*\.(?:woff|ttf)\) format\(\"[a-z]+\"\)", "", style)
    return re.sub(r"@font-face\{[^}]*url\(fonts/([^)]+)\)[^}]*\}", inside, style)


@cache
def held(font: Path) -> frozenset[str]:
    """The letters of a font; one that is cut to none of them cannot be read by a browser."""
    return frozenset(map(chr, TTFont(font).getBestCmap()))


def data_address(font: Path) -> str:
    """A font as an address that holds it."""
    return "data:font/woff2;base64," + base64.b64encode(font.read_bytes()).decode()


def cut_font(
    source: Path, target: Path, letters: set[str], weights: tuple[int, int] | None = None
) -> None:
    """A copy of a font with these letters only, and if it has many weights, those from … to."""
    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = ["kern", "liga", "lnum", "tnum"]
    options.hinting = False  # a third of a small font, for screens of long ago
    options.notdef_outline = True
    text = "".join(sorted(letters))
    target.parent.mkdir(parents=True, exist_ok=True)
    said = f"{source.stat().st_size} {text} {weights} {options.layout_features} {options.hinting}"
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
            font = instantiateVariableFont(font, {"wght": first if first == last else weights})
        subset.save_font(font, str(target), options)
    stamp.write_text(digest, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("tfviz_macros", {}, "env", dict)
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.connect("builder-inited", start)
    app.connect("html-page-context", keep_marks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
