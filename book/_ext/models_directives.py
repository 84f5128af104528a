"""Public models in the words of a page, counted in the data of `tfviz.anatomy`.

```{head-schemes} llama-2-7b falcon-7b     a table: how the heads of these models share keys
{public}`share 2025 rope`                  a number, or names: see `tfviz.anatomy.census.said`
"""

from __future__ import annotations

from typing import Any

from catalogue_directives import MODELS, Directive
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from tfviz.anatomy import census


class Public(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_dependency(MODELS)
        try:
            text = census.said(self.text)
        except (KeyError, ValueError) as error:
            assert isinstance(self.inliner, Inliner)
            why = f"{{public}}`{self.text}`: {error.args[0]}"
            return [], [self.inliner.reporter.error(why, line=self.lineno)]
        return [nodes.Text(text.replace(" %", "\u00a0%"))], []


class HeadSchemes(Directive):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(MODELS)
        try:
            return self.blocks(census.head_schemes(self.arguments[0].split()))
        except (KeyError, ValueError) as error:
            raise self.error(error.args[0]) from None


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("public", Public())
    app.add_directive("head-schemes", HeadSchemes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
