"""The three layers of a chapter, made of its headings.

    ### In 90 seconds        a card: the problem, a picture, an equation, what came out
    #### Deeper: a proof     folded, with its cells, until the reader opens it

Both are plain headings in the source, so that notebooks and the contents have them too.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

CARD = "In 90 seconds"
DEEPER = "Deeper: "


def layers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark the cards, and fold what is deeper."""
    if app.builder.format != "html":
        return
    for section in list(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        text = title.astext() if title is not None and title.parent is section else ""
        if text == CARD:
            section["classes"].append("tf-90")
        elif title is not None and text.startswith(DEEPER):
            section["classes"].append("tf-deeper")
            level = _level(section)
            said = html.escape(text.removeprefix(DEEPER))
            said = f"<span class='tf-deeper-word'>Deeper</span> {said[:1].upper()}{said[1:]}"
            head = f"<details><summary><h{level}>{said}</h{level}></summary>"
            section.replace(title, nodes.raw("", head, format="html"))
            section += nodes.raw("", "</details>", format="html")


def _level(section: nodes.section) -> int:
    level, above = 1, section.parent
    while above is not None:
        level += isinstance(above, nodes.section)
        above = above.parent
    return level


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", layers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
