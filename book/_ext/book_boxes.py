"""The four boxes that interrupt the text, each with its own mark.

```{try} [title]        predict, then move
```{differs} [title]    survey, paper and our code part ways
```{erratum} E29        what a source misprints; links to its entry in the errata
```{measured} [title]   what an experiment gave
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Box(SphinxDirective):
    """An admonition of its own kind; the argument goes on after the word."""

    kind: ClassVar[str]
    word: ClassVar[str]
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def heading(self) -> list[nodes.Node]:
        lead = nodes.inline("", self.word, classes=["tf-box-word"])
        if not self.arguments:
            return [lead]
        text, messages = self.parse_inline(self.arguments[0])
        return [lead, nodes.Text(" · "), nodes.inline("", "", *text), *messages]

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        box = nodes.admonition("", classes=["tf-box", f"tf-box-{self.kind}"])
        self.set_source_info(box)
        box += nodes.title("", "", *self.heading())
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class Try(Box):
    kind, word = "try", "Try"


class Differs(Box):
    kind, word = "differs", "Differs"


class Measured(Box):
    kind, word = "measured", "Measured"


class Erratum(Box):
    kind, word = "erratum", "Erratum"
    required_arguments, optional_arguments = 1, 0

    def heading(self) -> list[nodes.Node]:
        match = re.fullmatch(r"E(\d+)", self.arguments[0].strip())
        if not match:
            raise self.error(
                f"erratum needs the number of an entry, such as E29; it has {self.arguments[0]!r}"
            )
        name = f"E{match[1]}"
        link = addnodes.pending_xref(
            "",
            nodes.inline("", name),
            refdomain="std",
            reftype="ref",
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
            reftarget=f"erratum-e{match[1]}",
        )
        self.set_source_info(link)
        return [nodes.inline("", self.word, classes=["tf-box-word"]), nodes.Text(" "), link]


def setup(app: Sphinx) -> dict[str, Any]:
    for box in (Try, Differs, Erratum, Measured):
        app.add_directive(box.kind, box)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
