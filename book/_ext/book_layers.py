"""The three layers of a chapter, made of its headings.

    ### In 90 seconds            the problem, a picture, an equation, what came out
    #### Deeper: a proof         folded, with its cells, until the reader opens it
    ### More: derivation, costs  the same for all that a brief section does not show: its headings
                                 stand in a line on the fold, and are plain headings within it

All are plain headings in the source, so that notebooks and the contents have them too.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from tfviz_lessons.outline import DEEPER, MORE

CARD = "In 90 seconds"


def layers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark the 90 seconds, and fold what is deeper."""
    if app.builder.format != "html":
        return
    for section in list(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        text = title.astext() if title is not None and title.parent is section else ""
        if text == CARD:
            section["classes"].append("tf-90")
        elif title is not None and text.startswith((DEEPER, MORE)):
            level, (word, _, said) = _level(section), text.partition(": ")
            said = html.escape(said[:1].upper() + said[1:])
            if text.startswith(DEEPER):
                section["classes"].append("tf-deeper")
                fold, word, held = "<details>", f"<span class='tf-deeper-word'>{word}</span> ", ""
            else:
                fold, word = '<details class="tf-more">', ""
                held = f"<small>{html.escape(_held(section))}</small>"
            head = f"{fold}<summary><h{level}>{word}{said}</h{level}>{held}</summary>"
            section.replace(title, nodes.raw("", head, format="html"))
            section += nodes.raw("", "</details>", format="html")


def _held(section: nodes.section) -> str:
    """The headings of the sections that stand in this one, in a line."""
    titles = [part.next_node(nodes.title) for part in section if isinstance(part, nodes.section)]
    return " · ".join(title.astext() for title in titles if title is not None)


def _level(section: nodes.section) -> int:
    level, above = 1, section.parent
    while above is not None:
        level += isinstance(above, nodes.section)
        above = above.parent
    return level


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", layers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
