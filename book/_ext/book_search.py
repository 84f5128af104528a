"""The index of the search: every section, every word of the glossary, every row of the atlas, every
erratum, with its text. `site.js` loads it when a reader first searches.

It takes the place of Sphinx's own index, which knows pages and titles, cuts words to their stems
and drops symbols; without it a build is shorter, too.

A place may have further names: the headings of the surveys that lead there (surveys.py), the
names of its mechanism in the catalogue, and the names and parameters of the patterns that it
teaches. A name is worth more than any words of a text, so that whoever types a heading lands in
its section.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import reference_pages
from catalogue_directives import tag
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from surveys import HEADINGS, OTHER_NAME, OWN_NAME, load_headings, search_names, taught_patterns

from tfviz import catalogue, patterns

FILE = "_static/search.js"
LEFT_OUT = (nodes.literal_block, nodes.raw, nodes.comment, nodes.system_message, nodes.image)
UNREAD = {"tfv-cost", "tfv-peer is-full", "tfv-peer is-part", "tfv-peer is-none"}
"""Classes of what a reader looks up in a table, but would not search for: a row of the atlas."""
SIGNS = {
    **{"le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈"},
    **{"sum": "∑", "prod": "∏", "infty": "∞", "in": "∈", "to": "→", "partial": "∂", "top": "ᵀ"},
    **{"times": "×", "cdot": "·", "odot": "⊙", "lfloor": "⌊", "rfloor": "⌋", "ell": "ℓ"},
    **{"dots": "…", "ldots": "…", "cdots": "…", "sqrt": "√", "frac": "⁄", "tfrac": "⁄"},
    **{name: f" {name} " for name in ("softmax", "log", "exp", "max", "min", "bmod")},
}
RAISED = str.maketrans("0123456789+-=()niTLN", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀᴸᴺ")
LOWERED = str.maketrans("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
UNSAID = re.compile(r" ([.,;:])(?= |$)")  # the blank before a sign, where a citation was left out
GREEK = re.compile(r"\\(var)?([A-Za-z]+)")

MECHANISM_ANCHORS = {nodes.make_id(row.id): row for row in catalogue.MECHANISMS}
"""The anchor of a mechanism's section, made from its label as docutils makes it."""

Entry = tuple[str, str, str, str]  # anchor, title, title of the section around it, text


def symbols(latex: str) -> str:
    r"""A formula as a line of text: ``\sqrt{L}\,d_h`` is ``√L dₕ``, ``\beta_{ij}`` is ``βᵢⱼ``."""

    def letter(match: re.Match[str]) -> str:
        name = match[2]
        if name in SIGNS or len(name) == 1:  # \q is the query's letter
            return SIGNS.get(name, name)
        case = "SMALL" if name.islower() else "CAPITAL"
        try:
            return unicodedata.lookup(f"GREEK {case} LETTER {name.replace('lambda', 'lamda')}")
        except KeyError:
            return ""

    def script(match: re.Match[str]) -> str:
        sign, text = match[1], "".join((match[2] or match[3]).split())
        small = text.translate(LOWERED if sign == "_" else RAISED)
        if text == "ᵀ" or not {*text} & {*small}:
            return small
        return (
            f"{sign}{text}" if len(text) == 1 or text.isalpha() else f"{sign}({text.strip('()')})"
        )

    text = re.sub(r"\\(?:text\w*|operatorname)\b", "", latex)
    text = re.sub(r"\\[,;: ]|\\q?quad\b|~", " ", text)
    text = GREEK.sub(letter, text)
    text = re.sub(r"([_^])(?:\{([^{}]*)\}|([^\s{}]))", script, text)
    text = re.sub(r"√\{([^{}]*)\}", r"√\1", text)
    text = re.sub(r"⁄(?:\{([^{}]*)\}\{([^{}]*)\}|(\d)(\d))", r"\1\3/\2\4", text)
    return " ".join(re.sub(r"[{}$&\\!⁄]", "", text).split())


def entries(doctree: nodes.document) -> list[Entry]:
    """In the order of the page. What is not below a section of its own belongs to the one above."""
    sections: list[tuple[str, str, str, list[str]]] = [("", "", "", [])]

    def own(node: nodes.Node) -> tuple[str, str] | None:
        """(anchor, title) of what a reader can be sent to."""
        if isinstance(node, nodes.section) and isinstance(node.children[0], nodes.title):
            return node["ids"][0], node.children[0].astext()
        if isinstance(node, nodes.definition_list_item):
            terms = [term for term in node.children if isinstance(term, nodes.term) and term["ids"]]
            return (terms[0]["ids"][0], terms[0].astext()) if terms else None
        if isinstance(node, tag) and node["ids"]:  # a row of the atlas, an erratum
            names = [part.astext() for part in node.children[0].children]
            return node["ids"][0], next(name for name in names if name)
        return None

    def walk(node: nodes.Node, around: tuple[str, ...]) -> None:
        if isinstance(node, nodes.Text):
            sections[-1][-1].append(node.astext())
        elif isinstance(node, nodes.math | nodes.math_block):
            sections[-1][-1].append(f" {symbols(node.astext())} ")
        elif isinstance(node, tag) and "data_tf_unsearched" in node["html"]:
            return  # the questions of chapters, which are found there
        elif isinstance(node, tag) and (
            node["name"] == "dl" or node["html"].get("class_") in UNREAD
        ):
            return  # the facts of a card, which are no sentences
        elif isinstance(node, pending_xref) and node.get("refdomain") == "cite":
            return  # the key of a paper, such as tay2020efficient, which no reader sees
        elif not isinstance(node, (*LEFT_OUT, nodes.title, nodes.term)):
            if here := own(node):
                sections.append((*here, around[-1] if len(around) > 1 else "", []))
                around = (*around, here[1])
            for child in node.children:
                walk(child, around)
            if not isinstance(node, nodes.Inline):
                sections[-1][-1].append(" ")

    walk(doctree, ())
    return [
        (anchor, title, above, UNSAID.sub(r"\1", " ".join("".join(text).split())))
        for anchor, title, above, text in sections
        if title
    ]


def collect(app: Sphinx, doctree: nodes.document) -> None:
    kept(app.env)[app.env.docname] = entries(doctree)


def kept(env: BuildEnvironment) -> dict[str, list[Entry]]:
    """By page, from one build to the next."""
    if not hasattr(env, "tfviz_search"):
        env.tfviz_search = {}  # type: ignore[attr-defined]
    return env.tfviz_search  # type: ignore[attr-defined]


def joined(app: Sphinx, env: BuildEnvironment, pages: set[str], other: BuildEnvironment) -> None:
    kept(env).update({name: entries for name, entries in kept(other).items() if name in pages})


def write(app: Sphinx, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    names = names_of_places(app.env)
    pages = []
    for page in sorted(app.env.found_docs):
        (_, title, _, text), *rest = kept(app.env)[page]
        places = [("", "", "", text), *(own_anchor(app.env, page, place) for place in rest)]
        pages.append((page, title, [(*place, names.get((page, place[0]), {})) for place in places]))
    if reference_pages.INDEX in app.env.found_docs:
        pages += reference_pages.search_entries()
    words = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, FILE).write_text(f"window.tfvizSearch = {words};\n", "utf-8")


def own_anchor(env: BuildEnvironment, page: str, place: Entry) -> Entry:
    """The place by the label of its mechanism, if it is the section of one."""
    anchor, title, above, text = place
    for name, row in MECHANISM_ANCHORS.items():
        label = env.get_domain("std").labels.get(row.id)  # type: ignore[attr-defined]
        if label and label[0] == page and label[2] == title:
            anchor = name
    return anchor, title, above, text


def answers(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Where the answers to the surveys' headings are: page and anchor, by what `Heading` says."""
    places = {f"page:{page}": (page, "") for page in env.found_docs}
    for anchor, title, *_ in kept(env).get("book/glossary", []):
        places[f"term:{title}"] = ("book/glossary", anchor)
    for anchor, row in MECHANISM_ANCHORS.items():
        here = row.built and row.document in env.found_docs
        planned = ("book/atlas", f"atlas-{row.id}")
        places[f"mechanism:{row.id}"] = (row.document, anchor) if here else planned
    return places


def names_of_places(env: BuildEnvironment) -> dict[tuple[str, str], dict[str, int]]:
    """(page, anchor) → {further name of that place: its worth}."""
    places, file = answers(env), Path(env.srcdir, HEADINGS)
    names = search_names(load_headings(file), places)
    for family, mechanism in taught_patterns(file).items():
        here = names.setdefault(places[f"mechanism:{mechanism}"], {})
        for name in (family, *patterns.FAMILIES[family].domains):
            here.setdefault(name, OTHER_NAME)
    for row in catalogue.MECHANISMS:
        here = names.setdefault(places[f"mechanism:{row.id}"], {})
        for name in own_names(row):
            alike = [other for other in here if other.lower() == name.lower()]
            here[name] = max([OWN_NAME, *(here.pop(other) for other in alike)])
    return names


def own_names(row: catalogue.Mechanism) -> tuple[str, ...]:
    """What the catalogue calls a mechanism: in full, in a word or two, and by its id."""
    return row.name, row.short, row.id.replace("_", " ")


def own_index(app: Sphinx) -> None:
    app.builder.search = False  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", own_index)
    app.connect("doctree-read", collect)
    app.connect("env-merge-info", joined)
    app.connect("build-finished", write, priority=400)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
