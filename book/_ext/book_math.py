"""Formulas, rendered while the book is built: a page needs no script to show them.

KaTeX runs inside V8 (`mini-racer`) and writes HTML for eyes and MathML for screen readers. Its
style sheet is linked only from pages with a formula or an explorer; `book_faces` cuts its fonts. A
formula that does not parse is a warning with its place, and fails the build.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from book_faces import KATEX
from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

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


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("tfviz_macros", {}, "env", dict)
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.connect("builder-inited", start)
    app.connect("html-page-context", keep_marks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
