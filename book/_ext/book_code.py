"""The library in the pages: its source, and its explorers outside of notebooks.

```{source} tfviz.sparse.strided.strided_attention    the source of one object, or of several

```{explorer} sparse_lab                              an explorer; the body is JSON with its traits
{"length": 64}
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

from book_rests import answers, shown
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective


def find(dotted: str) -> Any:
    """The object that a dotted name such as `tfviz.patterns.strided` means."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name and not dotted.startswith(error.name):
                raise
            continue
        for name in parts[length:]:
            value = getattr(value, name)
        return value
    raise ModuleNotFoundError(f"no module is named like the start of {dotted!r}")


class Source(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        return [self.listing(dotted) for dotted in self.arguments[0].split()]

    def listing(self, dotted: str) -> nodes.Node:
        try:
            thing = inspect.unwrap(find(dotted))
            if isinstance(thing, property):
                thing = thing.fget
            lines, first = inspect.getsourcelines(thing)
            path = Path(str(inspect.getsourcefile(thing))).resolve()
        except (ImportError, AttributeError, TypeError, OSError) as error:
            raise self.error(f"cannot show the source of {dotted!r}: {error}") from None
        self.env.note_dependency(str(path))
        try:
            name = path.relative_to(Path(self.env.srcdir).resolve()).as_posix()
        except ValueError:
            raise self.error(f"{dotted!r} lives outside of this repository") from None
        code = inspect.cleandoc("\n" + "".join(lines)) if lines[0][:1].isspace() else "".join(lines)
        block = nodes.literal_block(code, code, language="python")
        block["classes"].append("tf-source-code")
        self.set_source_info(block)
        last = first + len(lines) - 1
        home, branch = self.config.tfviz_home, self.config.html_theme_options["repository_branch"]
        address = f"{home}/blob/{branch}/{name}#L{first}-L{last}"
        link: nodes.Node = nodes.literal(name, name)
        if home:
            link = nodes.reference("", "", link, refuri=address, internal=False)
        caption = nodes.paragraph("", "", link, nodes.Text(f", lines {first} to {last}"))
        caption["classes"].append("tf-source-where")
        return nodes.container("", caption, block, classes=["tf-source"])


@answers("explorer")
def explorer(name: str, traits: str) -> str:
    """What a page shows of an explorer with these traits, as JSON."""
    from tfviz import explorers

    return explorers.ALL[name](**(json.loads(traits) if traits else {})).html()


class ExplorerDirective(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        from tfviz import explorers

        name = self.arguments[0]
        try:
            kind = explorers.explorer(name)
        except KeyError:
            raise self.error(
                f"no explorer is called {name!r}; there are: {', '.join(explorers.ALL)}"
            ) from None
        text = "\n".join(self.content).strip()
        try:
            drawn = shown("explorer", name, text)
        except Exception as error:
            raise self.error(f"explorer {name!r} does not take {text!r}: {error}") from None
        self.env.note_dependency(str(inspect.getsourcefile(kind)))
        wrapped = f'<div class="tf-wide tf-explorer-page">{drawn}</div>'
        return [nodes.raw("", wrapped, format="html")]


COLUMNS = re.compile(r"^.*\S {2,}\S|^[ \w(]*\[\[|^ +\[", re.M)


class PrintedColumns(SphinxPostTransform):
    """What a cell printed may break its lines where the page is narrow, unless it has columns."""

    default_priority = 900  # after the outputs have become literal blocks
    formats = ("html",)

    def run(self, **_: Any) -> None:
        for block in self.document.findall(nodes.literal_block):
            inside = "output" in block.parent.get("classes", []) or "output" in block["classes"]
            if inside and len(COLUMNS.findall(block.astext())) > 1:
                block["classes"].append("tf-columns")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("source", Source)
    app.add_post_transform(PrintedColumns)
    app.add_directive("explorer", ExplorerDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
