"""The surveys as the way in: where the course treats each of their headings.

    ```{survey} Weng 2023        a table: heading of that source, where to read about it

The search knows the same names (book_search.py), so a reader may type a heading as it stands in
the survey.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catalogue_directives import CATALOGUE, Directive, el
from docutils import nodes
from sphinx.application import Sphinx
from surveys import HEADINGS, Heading, load_headings

from tfviz import catalogue


class Survey(Directive):
    """One source as a table. The headings that have the same answer one after another share it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, HEADINGS)
        self.env.note_dependency(str(path))
        self.env.note_dependency(CATALOGUE)
        headings = [h for h in load_headings(path) if h.source == self.arguments[0]]
        if not headings:
            raise self.error(f"no headings of {self.arguments[0]!r} in {HEADINGS}")
        head = el("thead", el("tr", el("th", "There", scope="col"), el("th", "Here", scope="col")))
        body = el("tbody", *(self.row(heading) for heading in headings))
        return [el("table", head, body, class_="tfv-survey")]

    def row(self, heading: Heading) -> nodes.Node:
        answer: list[nodes.Node] = []
        for name in heading.mechanisms:
            mechanism = catalogue.get(name)
            answer += [nodes.Text(", ")] if answer else []
            answer += self.link(mechanism)
            answer += [] if mechanism.built else [nodes.Text(" (planned)")]
        if heading.term:
            answer = self.markdown(f"{{term}}`{heading.term}` in the glossary")
        if heading.page:
            answer = self.markdown(f"{{doc}}`/{heading.page}`")
        return el("tr", el("th", heading.title, scope="row"), el("td", *answer))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("survey", Survey)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
