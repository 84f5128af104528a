"""What the pages draw from the catalogue.

    ```{mechanism} sparse_transformer_strided      the card that opens a mechanism
    ```{atlas}                                     the whole catalogue as a table to filter
    ```{family-tree}                               the same as a picture, years against families
    ```{course-map}                                nine parts, 32 chapters, what is ready
    ```{errata}                                    the list in book/errata.toml

Everything that holds a formula, a citation or a link is built from docutils nodes, so that the
rest of the build treats it like any other text; only drawings are raw SVG.
"""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import thumbnails  # noqa: F401  answers what is asked below
from book_rests import shown
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from surveys import CLAIMS, SOURCE_KEYS, SOURCES, load_claims

from tfviz import anatomy, catalogue, stored
from tfviz.anatomy import Anatomy, census
from tfviz.catalogue import CHANGES, GROWTH, PEERS, Chapter, Mechanism
from tfviz.stored import race
from tfviz_lessons.lesson import read

CATALOGUE = str(Path(catalogue.__file__).with_suffix(".toml"))
MODELS = str(Path(anatomy.__file__).with_name("models.toml"))
ERRATA = "book/errata.toml"


class tag(nodes.General, nodes.TextElement):  # noqa: N801  docutils names its nodes in lower case
    """An HTML element with any attributes; other builders see only what is inside."""


def _visit(self: Any, node: tag) -> None:
    attributes = {key.replace("_", "-").rstrip("-"): value for key, value in node["html"].items()}
    words = [f' {key}="{html.escape(str(value))}"' for key, value in attributes.items()]
    words += [f' id="{name}"' for name in node["ids"][:1]]
    self.body.append(f"<{node['name']}{''.join(words)}>")


def _depart(self: Any, node: tag) -> None:
    self.body.append(f"</{node['name']}>")


def _pass(self: Any, node: tag) -> None:
    pass


def el(name: str, *children: nodes.Node | str, **attributes: object) -> tag:
    """`el("td", "text", class_="number")`; the class needs the underscore in Python."""
    node = tag("", "", name=name, html=attributes)
    node += [nodes.Text(child) if isinstance(child, str) else child for child in children]
    return node


def math(latex: str) -> nodes.math:
    return nodes.math(latex, latex)


def thumb(row: Mechanism) -> list[nodes.Node]:
    """Its small picture, which says nothing that words do not."""
    picture = shown("thumbnail", row.id)
    if not picture:
        return []
    style = f"--tfv-thumb:url({picture})"
    return [el("span", class_="tfv-thumb", style=style, aria_hidden="true")]


def svg(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


class Directive(SphinxDirective):
    """With a way to write links, citations and emphasis as Markdown."""

    def markdown(self, text: str) -> list[nodes.Node]:
        """The inline nodes of one paragraph of Markdown."""
        box = nodes.Element()
        self.state.nested_parse(StringList([text], self.env.docname), self.content_offset, box)
        return [child for block in box.children for child in block.children]

    def blocks(self, text: str) -> list[nodes.Node]:
        box = nodes.Element()
        lines = StringList(text.splitlines(), self.env.docname)
        self.state.nested_parse(lines, self.content_offset, box)
        return list(box.children)

    def cite(self, keys: Iterable[str], role: str = "cite:t") -> list[nodes.Node]:
        return self.markdown(f"{{{role}}}`{','.join(keys)}`")

    def has_page(self, document: str) -> bool:
        return document in self.env.found_docs

    def link(self, row: Mechanism, text: str | None = None) -> list[nodes.Node]:
        """To its section if there is one, else to its row of the atlas."""
        text = text or row.name
        if row.built and self.has_page(row.document):
            return self.markdown(f"{{ref}}`{text} <{row.id}>`")
        if self.has_page("book/atlas"):
            return self.markdown(f"{{ref}}`{text} <atlas-{row.id}>`")
        return [nodes.Text(text)]


# --- the block, always the same drawing ---------------------------------------------------------

_BOXES = {  # part: (x, y, width, height, label)
    "objective": (60, 14, 66, 20, "loss"),
    "decoding": (134, 14, 66, 20, "read out"),
    "mlp": (60, 84, 140, 20, "MLP"),
    "heads": (60, 134, 140, 20, "heads"),
    "scores": (60, 159, 66, 20, "scores"),
    "mask": (134, 159, 66, 20, "mask"),
    "keys_values": (60, 184, 86, 20, "keys, values"),
    "memory": (-12, 184, 50, 20, "memory"),
    "position": (60, 220, 140, 18, "position"),
    "tokens": (60, 245, 140, 18, "tokens"),
}
OWNERS = {  # words of a box: the mechanism whose section explains that part
    "loss": "lm_objectives",
    "read out": "decoding_strategies",
    "MLP": "pointwise_mlp",
    "add, normalise": "residual_connection",
    "heads": "multi_head_attention",
    "scores": "scaled_dot_product_attention",
    "mask": "causal_masking",
    "keys, values": "soft_dictionary",
    "queries": "soft_dictionary",
    "memory": "transformer_xl_recurrence",
    "position": "sinusoidal_pe",
    "tokens": "token_embedding",
}


def block_svg(changes: Sequence[str], label: str, links: Mapping[str, str] | None = None) -> str:
    """The Transformer block with the changed parts marked by colour, weight and bold type.

    links    words of a box: where a press on it leads; Tab stops at the changed parts alone, for
             the others are as near in the contents
    """
    links = links or {}

    def mark(part: str) -> str:
        return "is-changed" if part in changes else "is-same"

    def box(x: float, y: float, w: float, h: float, text: str, css: str) -> str:
        drawn = (
            f'<g class="{css}"><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="3"/>'
            f'<text x="{x + w / 2}" y="{y + h / 2 + 4}">{text}</text></g>'
        )
        if text not in links:
            return drawn
        stop = "" if css == "is-changed" else ' tabindex="-1"'
        name = f' aria-label="{text}: where it is explained"'
        return f'<a href="{html.escape(links[text])}"{name}{stop}>{drawn}</a>'

    frame = mark("whole")
    parts = [
        f'<rect class="tfv-frame {frame}" x="46" y="46" width="168" height="166" rx="9"/>',
        f'<g class="{mark("depth")}"><path d="M219 50h5v158h-5"/>'
        '<text x="237" y="133">× N</text></g>',
        '<path class="tfv-wire" d="M130 245v-8M130 220v-16M130 184v-5M130 159v-5M130 134v-6'
        'M130 108v-4M130 84v-6M130 58v-12M93 46v-12M167 46v-12"/>',
        f'<path class="tfv-wire {mark("memory")}" d="M38 194h22"/>',
        f'<g class="{mark("norm_residual")}"><path d="M130 216h78v-98h-8M208 118v-50h-8"/></g>',
        box(150, 184, 50, 20, "queries", "is-same"),
    ]
    for y in (58, 108):
        parts.append(box(60, y, 140, 20, "add, normalise", mark("norm_residual")))
    for name, (x, y, w, h, text) in _BOXES.items():
        if name == "heads":
            parts.append(
                f'<rect class="{mark(name)}" x="64" y="{y - 3}" width="140" height="20" rx="3"/>'
            )
        parts.append(box(x, y, w, h, text, mark(name)))
    return (
        f'<svg class="tfv-block" viewBox="-14 10 264 256" role="{"group" if links else "img"}"'
        f' aria-label="{html.escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def changes_in_words(row: Mechanism) -> str:
    return "; also ".join(CHANGES[part] for part in row.changes)


# --- the card -----------------------------------------------------------------------------------


class MechanismCard(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            row = catalogue.get(self.arguments[0])
        except KeyError as error:
            raise self.error(error.args[0]) from None
        self.env.note_dependency(CATALOGUE)
        facts: list[nodes.Node] = []

        def fact(term: str, *children: nodes.Node | str, wide: bool = False) -> None:
            css = {"class_": "is-wide"} if wide else {}
            facts.append(el("div", el("dt", term), el("dd", *children), **css))

        fact("Time", math(row.time))
        fact("Memory", math(row.memory))
        fact("Paper", *self.cite([row.bibkey]), *self._also(row))
        if row.builds_on:
            fact("Builds on", *self._list(row.builds_on))
        if lives := census.using(row.id):
            self.env.note_dependency(MODELS)
            fact("Lives on in", *self._models(lives))
        if row.exercises:
            fact("Exercises", *self._exercises(row.exercises))
        if row.libraries:
            fact("Code in", *peers_marks(row, ", ", "{} (in part)", IN_FULL))
        if row.module:
            fact("Source", self._source(row.module), *self._claims(row), wide=True)
        words = f"Changes {changes_in_words(row)}"
        drawing = el(
            "figure",
            svg(block_svg(row.changes, f"A Transformer block. {words}.", self._owners(row))),
            el("figcaption", words),
        )
        label = f"{row.name}, at a glance"
        card = el("aside", drawing, el("dl", *facts), class_="tfv-card", aria_label=label)
        return [el("p", row.idea, class_="tfv-idea"), card]

    def _owners(self, row: Mechanism) -> dict[str, str]:
        """Where the parts of the block are explained, seen from this page; not the row itself."""
        links = {}
        for words, name in OWNERS.items():
            owner = catalogue.get(name)
            if name != row.id and owner.built and self.has_page(owner.document):
                page = self.env.app.builder.get_relative_uri(self.env.docname, owner.document)
                links[words] = f"{page}#{nodes.make_id(name)}"
        return links

    def _also(self, row: Mechanism) -> list[nodes.Node]:
        return [nodes.Text("; see also "), *self.cite(row.also)] if row.also else []

    def _list(self, ids: Iterable[str]) -> list[nodes.Node]:
        links: list[nodes.Node] = []
        for name in ids:
            follower = catalogue.get(name)
            links += [nodes.Text(", ")] if links else []
            links += self.link(follower, follower.short)
        return links

    def _models(self, lives: Sequence[Anatomy]) -> list[nodes.Node]:
        """How many public models have it, and the best known of them."""
        whole = f"{census.said('models')} public models"
        if self.has_page("book/from_a_name"):
            counted = self.markdown(f"[{whole}](/book/from_a_name.md)")
        else:
            counted = [nodes.Text(whole)]
        if len(lives) == int(census.said("models")):
            return [nodes.Text("all "), *counted]
        some = ", among them" if len(lives) > 3 else ":"
        return [
            nodes.Text(f"{len(lives)} of "),
            *counted,
            nodes.Text(f"{some} {census.names(lives)}"),
        ]

    def _exercises(self, labels: Sequence[str]) -> list[nodes.Node]:
        """Numbers that lead to the exercises; their names are spoken, and shown on pointing."""
        links: list[nodes.Node] = []
        for number, label in enumerate(labels, 1):
            words = self._title(label)
            name = nodes.inline("", ": ", *words, classes=["tf-unseen"])
            link = nodes.reference("", str(number), name, refid=label, classes=["tfv-number"])
            if not any(isinstance(word, nodes.math) for word in words):
                link["reftitle"] = "".join(word.astext() for word in words)
            links += [link, nodes.Text(" ")]
        return links

    def _title(self, label: str) -> list[nodes.Node]:
        """What an exercise of this page is called: the bold words that it opens with."""
        tasks = read(self.env.doc2path(self.env.docname)).tasks
        return self.markdown(next((task.name for task in tasks if task.label == label), label))

    def _claims(self, row: Mechanism) -> list[nodes.Node]:
        """A link to what the ledger has about this mechanism, if it has something."""
        path = Path(self.env.srcdir, CLAIMS)
        if not self.has_page("book/claims"):
            return []
        self.env.note_dependency(str(path))
        if not any(claim.mechanism == row.id for claim in load_claims(path)):
            return []
        return [nodes.Text(" · "), *self.markdown(f"{{ref}}`claims <claims-{row.id}>`")]

    def _source(self, module: str) -> nodes.Node:
        """The module: a link to its page of the reference, or to its source without one."""
        code = nodes.literal(module, module)
        if self.has_page("book/reference"):
            relative = self.env.app.builder.get_relative_uri
            page = relative(self.env.docname, f"reference/{module}")
            return nodes.reference("", "", code, refuri=page, internal=True)
        address = getattr(self.config, "tfviz_home", "")
        branch = self.config.html_theme_options.get("repository_branch", "main")
        if not address:
            return code
        path = module.replace(".", "/") + ".py"
        return nodes.reference(
            "", "", code, refuri=f"{address}/blob/{branch}/{path}", internal=False
        )


# --- the atlas ----------------------------------------------------------------------------------

RUNS = {"causal": "a causal model", "encoder": "an encoder"}
_COLUMNS = ("Mechanism", "Chapter and paper", "Cost", "Found in")


class Atlas(Directive):
    """The table is complete without a script; atlas.js puts the filter in front of it."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(CATALOGUE)
        for name in race.SOURCES:
            self.env.note_dependency(str(stored.RESULTS / f"{name}.json"))
        body = el("tbody")
        for row in catalogue.MECHANISMS:
            body += self.row(row)
        head = el("thead", el("tr", *(el("th", name, scope="col") for name in _COLUMNS)))
        caption = el(
            "caption", f"The {len(catalogue.MECHANISMS)} mechanisms in the order of the course"
        )
        words = {
            "part": {part.id: part.title for part in catalogue.PARTS},
            "changes": dict(CHANGES),
            "growth": dict(GROWTH),
            "runs": RUNS,
        }
        table = el("table", caption, head, body, class_="tfv-atlas")
        return [el("div", table, class_="tfv-atlas-box", data_words=json.dumps(words))]

    def row(self, row: Mechanism) -> tag:
        name = el("span", *self.link(row), class_="tfv-name") if row.built else el("b", row.name)
        planned = [] if row.built else [" ", el("span", "planned", class_="tfv-status is-planned")]
        first = el("th", *thumb(row), name, *planned, el("p", row.idea), scope="row")
        where = el(
            "td",
            el("span", f"{row.chapter_number} · {row.chapter_title}", class_="tfv-chapter"),
            el("span", *self.cite([row.bibkey]), class_="tfv-paper"),
        )
        cost = el(
            "td",
            el("span", el("small", "time"), " ", math(row.time), class_="tfv-cost"),
            el("span", el("small", "memory"), " ", math(row.memory), class_="tfv-cost"),
        )
        cells = [cost, el("td", el("small", "in "), *peers_marks(row))]
        line = el(
            "tr",
            *(first, where, *cells),
            data_part=row.part,
            data_year=row.year,
            data_growth=row.growth,
            data_runs=" ".join(kind for kind in race.KINDS if row.id in race.table(kind)),
            data_changes=" ".join(row.changes),
            data_formula=str(row.formula).lower(),
            data_text=" ".join((row.id.replace("_", " "), row.short, row.bibkey)).lower(),
        )
        anchor(self, line, f"atlas-{row.id}", row.name)
        return line


def anchor(directive: Directive, node: nodes.Element, label: str, title: str) -> None:
    """Make `node` a target of {ref}, so that other pages can point at it."""
    node["ids"] = [label]
    env = directive.env
    env.get_domain("std").labels[label] = (env.docname, label, title)  # type: ignore[attr-defined]
    env.get_domain("std").anonlabels[label] = (env.docname, label)  # type: ignore[attr-defined]


IN_FULL = {
    "lucid": "lucidrains",
    "HF": "Hugging Face",
    "t2t": "tensor2tensor",
    "xf": "xformers",
    "fast": "fast-transformers",
}
"""What a reader calls the libraries whose sign in the atlas is shorter."""


def peers_marks(
    row: Mechanism,
    between: str = " ",
    part: str = "({})",
    names: Mapping[str, str] | None = None,
) -> list[nodes.Node | str]:
    """The libraries that have it, each with its full name for the pointer."""
    if not row.libraries:
        return ["an idea, not code"]
    signs: list[nodes.Node | str] = []
    for peer, mark in row.libraries.items():
        if mark != "none":
            text = PEERS[peer] if mark == "full" else f"{PEERS[peer]}: in part"
            name = (names or {}).get(peer, peer)
            sign = name if mark == "full" else part.format(name)
            signs += [between] if signs else []
            signs.append(el("abbr", sign, title=text, class_=f"tfv-peer is-{mark}"))
    return signs or ["no library that we searched"]


# --- the family tree ----------------------------------------------------------------------------

_STEP, _LANE, _HEAD = 19, 30, 26  # height of a mark, of a lane's heading, of the row of years


def _label(row: Mechanism) -> float:
    """Width of its label, which is bold where the mechanism is ready."""
    return (6.4 if row.built else 5.9) * len(row.short)


class FamilyTree(Directive):
    """Years from left to right, one lane for each part; a line from a mechanism to its parents."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(CATALOGUE)
        rows = catalogue.MECHANISMS
        years = range(min(r.year for r in rows), max(r.year for r in rows) + 1)
        heights: dict[str, float] = {}
        lines: dict[float, dict[int, Mechanism]] = {}  # by height: what stands there, by year
        lanes: list[tuple[float, float, str]] = []
        y = float(_HEAD)
        for part in catalogue.PARTS:
            used = dict.fromkeys(years, 0)
            for row in catalogue.by_part()[part.id]:
                heights[row.id] = y + _LANE + _STEP * used[row.year]
                lines.setdefault(heights[row.id], {})[row.year] = row
                used[row.year] += 1
            height = _LANE + _STEP * max(used.values())
            lanes.append((y, height, part.title))
            y += height
        left: dict[int, float] = {}  # a year begins where no label before it is in the way
        for year in years:
            ends = [left[year - 1] + 44 if left else 10.0]
            for line in lines.values():
                if year in line and (before := [n for n in line if n < year]):
                    ends.append(left[max(before)] + 20 + _label(line[max(before)]))
            left[year] = max(ends)
        width = max(left[row.year] + 20 + _label(row) for row in rows)
        place = {row.id: (left[row.year] + 8, heights[row.id]) for row in rows}
        return [self.picture(rows, years, left, width, y + 6, place, lanes)]

    def picture(
        self,
        rows: Sequence[Mechanism],
        years: range,
        left: dict[int, float],
        width: float,
        height: float,
        place: dict[str, tuple[float, float]],
        lanes: list[tuple[float, float, str]],
    ) -> nodes.Node:
        label = (
            f"Family tree of the {len(rows)} mechanisms from {years[0]} to {years[-1]}: one lane"
            f" for each of the {len(lanes)} parts of the course, years from left to right, lines"
            " from each mechanism to those it builds on. The table below holds the same facts."
        )
        parts: list[str] = []
        for number, (y, h, _) in enumerate(lanes):
            css = "tfv-lane is-odd" if number % 2 else "tfv-lane"
            parts.append(
                f'<rect class="{css}" x="0" y="{y:.0f}" width="{width:.0f}" height="{h:.0f}"/>'
            )
        for year in years:
            parts.append(
                f'<path class="tfv-year" d="M{left[year] - 3:.0f} {_HEAD}V{height - 6:.0f}"/>'
                f'<text class="tfv-year" x="{left[year]:.0f}" y="17">{year}</text>'
            )
        for row in rows:
            x1, y1 = place[row.id]
            for parent in row.builds_on:
                x0, y0 = place[parent]
                end = x0 + 14 + _label(catalogue.get(parent))  # where its label ends
                if end < x1 - 8:
                    bend = max(18.0, (x1 - end) / 2)
                    way = f"M{end:.0f} {y0:.0f}C{end + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f}"
                else:  # the same year, or nearly: around the left
                    way = f"M{x0 - 5:.0f} {y0:.0f}C{x0 - 18:.0f} {y0:.0f} {x1 - 18:.0f} {y1:.0f}"
                near = " is-near" if catalogue.get(parent).part == row.part else ""
                parts.append(
                    f'<path class="tfv-edge{near}" data-from="{parent}" data-to="{row.id}" '
                    f'd="{way} {x1 - 5:.0f} {y1:.0f}"/>'
                )
        odd = {p.id: " on-odd" if n % 2 else "" for n, p in enumerate(catalogue.PARTS)}
        for row in rows:
            x, y = place[row.id]
            mark = f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4.5"/>'
            title = html.escape(f"{row.name} ({row.year}). {row.idea}")
            size = f'width="{21 + _label(row):.0f}" height="18" rx="4"'
            parts.append(
                f'<a class="tfv-mark is-{row.status}{odd[row.part]}" data-id="{row.id}"'
                f' href="{self.address(row)}"'
                f' aria-label="{html.escape(f"{row.short}: {row.name}, {row.year}")}">'
                f"<title>{title}</title>"
                f'<rect x="{x - 7:.0f}" y="{y - 9:.0f}" {size}/>{mark}'
                f'<text x="{x + 9:.0f}" y="{y + 4:.0f}">{html.escape(row.short)}</text></a>'
            )
        drawing = (
            f'<svg class="tfv-tree" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="group"'
            f' aria-label="{html.escape(label)}">'
            f"{''.join(parts)}</svg>"
        )
        titles = "".join(
            f'<span style="top:{y + 5:.0f}px">{html.escape(title)}</span>' for y, _, title in lanes
        )
        key = (
            '<p class="tfv-tree-key"><span class="is-built">ready to read</span>'
            '<span class="is-planned">planned</span></p>'
            if any(not row.built for row in catalogue.MECHANISMS)
            else ""
        )
        return svg(
            '<div class="tfv-tree-box" role="region" tabindex="0"'
            f' data-start="{left[2017] - 6:.0f}" aria-label="Family tree, scrolls sideways">'
            f'<div class="tfv-lanes" aria-hidden="true">{titles}</div>{drawing}</div>{key}'
        )

    def address(self, row: Mechanism) -> str:
        """Relative to this page; sections of chapters are checked by the link test of the site."""
        relative = self.env.app.builder.get_relative_uri
        if row.built and self.has_page(row.document):
            return f"{relative(self.env.docname, row.document)}#{nodes.make_id(row.id)}"
        return f"{relative(self.env.docname, 'book/atlas')}#atlas-{row.id}"


# --- the course map -----------------------------------------------------------------------------


class CourseMap(Directive):
    """Every chapter with its first pictures; what is ready is a link, the rest is grey."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(CATALOGUE)
        parts = []
        for number, part in enumerate(catalogue.PARTS, 1):
            chapters = [self.chapter(c) for c in catalogue.CHAPTERS if c.part == part.id]
            title = el("p", el("span", f"Part {number}"), " ", part.title, class_="tfv-map-part")
            parts.append(el("li", title, el("ol", *chapters)))
        built = [row for row in catalogue.MECHANISMS if row.built]
        ready = {row.chapter_number for row in built}
        words = f"{len(built)} mechanisms in {len(ready)} chapters."
        if len(built) < len(catalogue.MECHANISMS):
            words = (
                f"{len(built)} of {len(catalogue.MECHANISMS)} mechanisms, in {len(ready)} of"
                f" {len(catalogue.CHAPTERS)} chapters, are ready. The others are planned."
            )
        return [el("p", words), el("ol", *parts, class_="tfv-map")]

    def chapter(self, chapter: Chapter) -> tag:
        rows = [row for row in catalogue.MECHANISMS if row.chapter_number == chapter.number]
        ready = any(row.built for row in rows) and self.has_page(chapter.document)
        number = el("span", str(chapter.number), class_="tfv-map-number")
        if ready:
            title = self.markdown(f"[{chapter.title}](/{chapter.document}.md)")
        else:
            title = [nodes.Text(chapter.title)]
        pictures = [picture for row in rows if row.built for picture in thumb(row)] if ready else []
        pictures = [el("span", *pictures[:4], class_="tfv-thumbs")] if pictures else []
        text = el("span", *title, *pictures, class_="tfv-map-text")
        return el("li", number, text, class_="is-built" if ready else "is-planned")


# --- the errata ---------------------------------------------------------------------------------


def load_errata(path: Path) -> list[dict[str, Any]]:
    """The entries of errata.toml, checked."""
    entries = tomllib.loads(path.read_text("utf-8"))["erratum"]
    for place, entry in enumerate(entries, 1):
        if entry["number"] != place:
            raise ValueError(f"{path.name}: E{entry['number']} stands where E{place} should")
        if wrong := [source for source in entry["sources"] if source not in SOURCES]:
            raise ValueError(f"{path.name}, E{place}: unknown source {wrong}")
        for name in entry.get("mechanisms", []):
            catalogue.get(name)
    return entries


def room_for_tools(wide: int, between: int, narrow: int) -> tag:
    """The pixels that the filter and jumps of a list take (tables.js), by the window's width."""
    style = f"--wide: {wide}px; --between: {between}px; --narrow: {narrow}px"
    return el("div", class_="tfv-tool-room", style=style)


class ToolRoom(Directive):
    """`{tool-room} 136 136 159` stands before a list that a page writes itself."""

    required_arguments = 3

    def run(self) -> list[nodes.Node]:
        return [room_for_tools(*map(int, self.arguments))]


class Errata(Directive):
    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, ERRATA)
        self.env.note_dependency(str(path))
        entries = el("div", *map(self.entry, load_errata(path)), class_="tfv-errata")
        return [room_for_tools(136, 136, 175), entries]

    def entry(self, entry: dict[str, Any]) -> tag:
        label = f"erratum-e{entry['number']}"
        sources: list[nodes.Node] = []
        for name in entry["sources"]:
            sources += [nodes.Text(", ")] if sources else []
            key = SOURCE_KEYS.get(name)
            sources += self.cite([key], "cite:t") if key else [nodes.Text(name)]
        head = el("p", el("b", f"E{entry['number']}"), " ", *sources, class_="tfv-erratum-head")
        says = el("div", el("span", "reads", class_="tfv-tag"), *self.blocks(entry["says"]))
        should = el("div", el("span", "better", class_="tfv-tag"), *self.blocks(entry["should"]))
        named = "|".join(entry["sources"])
        node = el("section", head, says, should, class_="tfv-erratum", data_source=named)
        if names := entry.get("mechanisms"):
            links: list[nodes.Node] = []
            for name in names:
                links += [nodes.Text(", ")] if links else []
                links += self.link(catalogue.get(name))
            node += el("p", "concerns ", *links, class_="tfv-erratum-where")
        anchor(self, node, label, f"E{entry['number']}")
        return node


def plain_bibliography(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Entries without the roles of digital publishing, which are deprecated for them."""
    body = context.get("body") or ""
    body = re.sub(r' role="doc-biblioentry"', "", body)
    context["body"] = body.replace('<div role="list" class="citation-list">', "<div>")


def setup(app: Sphinx) -> dict[str, Any]:
    others = {builder: (_pass, _pass) for builder in ("latex", "text", "man", "texinfo")}
    app.add_node(tag, html=(_visit, _depart), **others)  # type: ignore[arg-type]
    app.add_directive("mechanism", MechanismCard)
    app.add_directive("atlas", Atlas)
    app.add_directive("family-tree", FamilyTree)
    app.add_directive("course-map", CourseMap)
    app.add_directive("errata", Errata)
    app.add_directive("tool-room", ToolRoom)
    app.connect("html-page-context", plain_bibliography, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
