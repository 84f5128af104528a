"""The ledger of claims: what the surveys say that can be checked, and what became of it.

    ```{claims}            counts by verdict, then every claim, mechanism by mechanism

A card links to the claims of its mechanism (`claims-<id>`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from catalogue_directives import CATALOGUE, Directive, anchor, el, room_for_tools
from docutils import nodes
from sphinx.application import Sphinx
from surveys import CLAIMS, VERDICTS, Claim, load_claims

from tfviz import catalogue


class Claims(Directive):
    """Complete without a script: a table for each mechanism, and one that counts. tables.js puts
    a filter before them."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, CLAIMS)
        self.env.note_dependency(str(path))
        self.env.note_dependency(CATALOGUE)
        claims = load_claims(path)
        of: dict[str, list[Claim]] = {"": [], **{row.id: [] for row in catalogue.MECHANISMS}}
        for claim in claims:
            of[claim.mechanism].append(claim)
        tables = [self.mechanism(name, group) for name, group in of.items() if group]
        return [room_for_tools(166, 213, 291), self.counts(claims), *tables]

    def counts(self, claims: Iterable[Claim]) -> nodes.Node:
        number = Counter(claim.verdict for claim in claims)
        head = el("thead", el("tr", *(el("th", t, scope="col") for t in ("Verdict", "Claims"))))
        rows = [
            el(
                "tr",
                el("th", title, scope="row"),
                el("td", f"{number[verdict]}: {meaning}"),
                class_=f"is-{verdict}",
            )
            for verdict, (title, meaning) in VERDICTS.items()
        ]
        return el("table", head, el("tbody", *rows), class_="tfv-claims is-counts")

    def mechanism(self, name: str, claims: Iterable[Claim]) -> nodes.Node:
        about = self.link(catalogue.get(name)) if name else [nodes.Text("The field as a whole")]
        caption = el("caption", *about)
        titles = ("Claim", "Source", "Verdict")
        head = el("thead", el("tr", *(el("th", title, scope="col") for title in titles)))
        chapter = (
            "{0.chapter_number}. {0.chapter_title}".format(catalogue.get(name))
            if name
            else "The field"
        )
        table = el("table", caption, head, class_="tfv-claims", data_chapter=chapter)
        table += el("tbody", *(self.claim(claim) for claim in claims))
        anchor(self, table, f"claims-{name or 'field'}", caption.astext())
        return table

    def claim(self, claim: Claim) -> nodes.Node:
        title, _ = VERDICTS[claim.verdict]
        verdict = self.markdown(f"{{ref}}`{title} <{claim.place}>`" if claim.place else title)
        if claim.note:
            verdict += [el("small", claim.note)]
        source = f"{', '.join(claim.sources)}: {claim.heading}"
        return el(
            "tr",
            el("td", claim.says),
            el("td", source, class_="tfv-claim-source"),
            el("td", *verdict, class_=f"tfv-verdict is-{claim.verdict}"),
            data_source="|".join(claim.sources),
            data_verdict=title,
        )


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("claims", Claims)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
