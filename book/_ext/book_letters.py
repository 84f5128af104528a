"""What each letter of a formula means, said by the formula itself.

A section declares its letters once, at the end of its 90 seconds:

    ```{letters}
    $\\theta_m$: how far hand m turns from one place to the next, in radians
    $s$: by how much positions are stretched
    ```

Those of the whole book stand in the same form in book/notation.md. An index that stands for a
number, as m above, stands for any other index, too. A letter means one thing in a chapter: two
sections may not declare it differently, nor anew what the whole book uses. Where a chapter declares
anything, every letter of its formulas must be declared.

The page holds the meanings once; letters.js shows them beside the letters that readers point at.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from book_math import Renderer, arranged
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tfviz_lessons.outline import declarations, outline

logger = logging.getLogger(__name__)

NOTATION = Path(__file__).parents[1] / "notation.md"
NAME = re.compile(r"(?P<base>[~^¯´˙]?(?:[bcB]:)?.)(?:_(?P<low>[^^]*))?(?:\^(?P<high>.*))?")
INDICES = set("ijlmnrstcp")
"""Letters that stand for a number when they stand at another letter: θ_m is also θ_0."""
IN_PAGE = re.compile(r'class="[^"]*\btf-letter ([^" ]+)')


class Letter(NamedTuple):
    tex: str
    meaning: str


# --- what is declared -----------------------------------------------------------------------------


def named(declared: Iterable[Letter], renderer: Renderer) -> dict[str, str]:
    """{name of a letter: meaning}: the first letter of each formula is the one that is meant.

    Raises ValueError for a formula that has none.
    """
    names = {}
    for tex, meaning in declared:
        letters = renderer.letters(tex)
        if not letters:
            raise ValueError(
                f"${tex}$ is declared as {meaning!r} and has no letter, only words or numbers; "
                "declare a letter, or take the line out"
            )
        names[letters[0]] = meaning
    return names


@cache
def reserved_letters(text: str) -> tuple[Letter, ...]:
    """The letters of the whole book, from the text of its page of notation."""
    return tuple(
        Letter(tex, meaning)
        for box in outline(text).named("letters")
        for formulas, meaning in declarations(box.body)
        for tex in formulas
    )


def meaning_of(name: str, declared: Mapping[str, str]) -> str | None:
    """What a letter means here: as it stands, with another index, or without its indices."""
    if name in declared:
        return declared[name]
    match = NAME.fullmatch(name)
    if match is None:
        return None
    base, low, high = match["base"], match["low"] or "", match["high"] or ""
    nearest = dict[int, str]()
    for known, meaning in declared.items():
        parts = NAME.fullmatch(known)
        if parts is None or parts["base"] != base:
            continue
        its_low, its_high = parts["low"] or "", parts["high"] or ""
        any_index = bool(its_low) and set(its_low) <= INDICES
        if its_high in ("", high) and (its_low in ("", low) or any_index):
            exact = 2 * (its_low == low) + 2 * (its_high == high) + any_index
            nearest.setdefault(exact, meaning)
    return nearest[max(nearest)] if nearest else None


# --- the directive --------------------------------------------------------------------------------


class Letters(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        self.env.note_dependency(str(NOTATION))
        try:
            declared = list(declarations("\n".join(self.content)))
        except ValueError as error:
            raise self.error(str(error)) from None
        box = nodes.container(classes=["tf-letters"])
        box["letters"] = [[tex, meaning] for group, meaning in declared for tex in group]
        self.set_source_info(box)
        listed = nodes.definition_list()
        for group, meaning in declared:
            term = nodes.term()
            for n, tex in enumerate(group):
                term += [*([nodes.Text(", ")] if n else []), nodes.math(tex, tex)]
            text, messages = self.parse_inline(meaning)
            definition = nodes.definition("", nodes.paragraph("", "", *text), *messages)
            listed += nodes.definition_list_item("", term, definition)
        box += listed
        return [box]


def boxes(doctree: nodes.document) -> list[nodes.container]:
    return [box for box in doctree.findall(nodes.container) if "letters" in box]


def letters_of(box: nodes.container) -> list[Letter]:
    return [Letter(*pair) for pair in box["letters"]]


# --- the check ------------------------------------------------------------------------------------


def check(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warn of letters without a meaning, if the chapter declares any, and fold what it declares."""
    here = boxes(doctree)
    if app.builder.format != "html" or not here or docname == "book/notation":
        return
    renderer: Renderer = app.tfviz_katex  # type: ignore[attr-defined]
    known = reserved = named(reserved_letters(NOTATION.read_text("utf-8")), renderer)
    for box in here:
        for letter in letters_of(box):
            ((name, meaning),) = named([letter], renderer).items()
            if known.get(name, meaning) != meaning:
                place = "the whole book" if name in reserved else "this chapter"
                warn(box, f"{name} means {known[name]!r} in {place}; take another letter")
            known = {name: meaning} | known
    for kind in (nodes.math, nodes.math_block):
        for node in doctree.findall(kind):
            tex, display = node.astext(), kind is nodes.math_block
            names = renderer.letters(arranged(tex) if display else tex, display)
            # the k of W^k is part of that name
            parts = {part for name in names if name in known for part in name[1:]}
            for name in names:
                if meaning_of(name, known) is None and name not in parts:
                    warn(node, f"the letter {name} is declared nowhere; add it to {{letters}}")
    for box in here:
        fold(box)


def warn(node: nodes.Node, text: str) -> None:
    logger.warning(text, location=node, type="tfviz", subtype="letters")


def fold(box: nodes.container) -> None:
    """The letters in a row, and their meanings below, folded; those of a mechanism on its card."""
    row = nodes.inline(classes=["tf-letters-row"])
    for n, (tex, _) in enumerate(box["letters"]):
        row += [*([nodes.Text(" ")] if n else []), nodes.math(tex, tex)]
    opened = nodes.raw("", "<details><summary><span>Letters</span> ", format="html")
    box.insert(0, [opened, row, nodes.raw("", "</summary>", format="html")])
    box += nodes.raw("", "</details>", format="html")
    section = box.parent.parent  # of the 90 seconds
    cards = [node for node in section or [] if node.get("name") == "aside"]
    if cards:
        box.parent.remove(box)
        cards[0] += box


# --- what the page holds --------------------------------------------------------------------------


def legend(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The meanings of a page's letters, for letters.js."""
    names = sorted({html.unescape(name) for name in IN_PAGE.findall(context.get("body") or "")})
    if not names or doctree is None:
        return
    renderer: Renderer = app.tfviz_katex  # type: ignore[attr-defined]
    known = named(reserved_letters(NOTATION.read_text("utf-8")), renderer)
    for box in boxes(doctree):
        known = named(letters_of(box), renderer) | known
    meanings = {name: meaning for name in names if (meaning := meaning_of(name, known))}
    data = json.dumps(meanings, ensure_ascii=False).replace("<", "\\u003c")
    context["tf_legend"] = f'<script type="application/json" class="tf-legend">{data}</script>'


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("letters", Letters)
    app.connect("doctree-resolved", check, priority=400)
    app.connect("html-page-context", legend, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
