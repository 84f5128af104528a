"""{examined}: what `tfviz.examine` says of one of the broken attentions of the library.

```{examined} QuietPadding
```
"""

from __future__ import annotations

from typing import Any

from book_rests import answers, shown
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


@answers("examined")
def examined(name: str) -> str:
    """The verdicts, and a picture of what leaks, as a page shows them."""
    import torch

    from tfviz.examined import examine
    from tfviz.examined.examples import ASKED, MADE

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = MADE[name]()
    return examine(made, **ASKED[name])._repr_html_()


class Examined(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            found = shown("examined", self.arguments[0])
        except KeyError as error:
            raise self.error(f"no broken attention is called {error}") from None
        return [nodes.raw("", found, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("examined", Examined)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
