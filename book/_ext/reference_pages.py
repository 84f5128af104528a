"""The reference: one page for each public room of the library, made from its docstrings.

    ```{reference}      a list of all rooms, by part, with the first sentence of each

The pages have no source of their own. They are written after the others, from what Python says
about the library: signatures with their types, docstrings, the section that teaches a room, and
where its source is. The search knows every function and class (book_search.py).
"""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from book_rests import answers, shown
from catalogue_directives import Directive, el
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from surveys import HEADINGS, taught_patterns

import tfviz
from tfviz import catalogue, patterns

INDEX = "book/reference"
ROOT = Path(tfviz.__file__).parents[1]
CODE = re.compile(r"``?([^`]+)``?")
LEFT_OUT = ("tfviz.stored",)
"""Not part of the library that people call: it holds the results that pages show."""

GROUPS = {
    "tfviz": "The library",
    "tfviz.patterns": "Patterns of positions",
    "tfviz.sub_quadratic": "Sub-quadratic attention",
    "tfviz.explained": "Your own attention, explained",
    "tfviz.examined": "Anybody's attention, examined",
    "tfviz.models": "Models",
    "tfviz.anatomy": "Public models, taken apart",
    **{f"tfviz.{part.id}": part.title for part in catalogue.PARTS},
    "tfviz.current": "What today's models are made of",
    "tfviz.plots": "Plots",
    "tfviz.explorers": "Explorers",
}
"""Package → the heading under which its rooms are listed."""

TAUGHT: Mapping[str, tuple[str, ...]] = {
    "tfviz.basics.cache_cost": ("kv_cache",),
    "tfviz.basics.public_models": ("kv_cache",),
    "tfviz.cores": ("multi_head_attention",),
    "tfviz.current.gated_delta_rule": ("rfa_causal",),
    "tfviz.current.latent_attention": ("grouped_query_attention",),
    "tfviz.dense_attention": ("scaled_dot_product_attention",),
    "tfviz.examined.examples": ("causal_masking",),
    "tfviz.examined.laws": ("causal_masking",),
    "tfviz.examined.report": ("causal_masking",),
    "tfviz.examined.subjects": ("multi_head_attention",),
    "tfviz.explained.bring": ("atomic_patterns",),
    "tfviz.explained.callables": ("atomic_patterns",),
    "tfviz.explained.recognise": ("atomic_patterns",),
    "tfviz.explained.trees": ("atomic_patterns",),
    "tfviz.explained.typed": ("atomic_patterns",),
    "tfviz.models.bert": ("lm_objectives",),
    "tfviz.models.blocks": ("multi_head_attention", "residual_connection"),
    "tfviz.models.encoder_decoder": ("encoder_decoder",),
    "tfviz.models.gpt": ("causal_masking",),
    "tfviz.models.use": ("decoding_strategies",),
    "tfviz.patterns.cost": ("atomic_patterns",),
    "tfviz.patterns.family": ("atomic_patterns",),
    "tfviz.patterns.inverse": ("atomic_patterns",),
    "tfviz.patterns.pattern": ("atomic_patterns",),
    "tfviz.patterns.reach": ("atomic_patterns",),
    "tfviz.position.t5_relative_bias": ("shaw_relative",),
    "tfviz.sub_quadratic": ("atomic_patterns",),
    "tfviz.sub_quadratic.planner": ("atomic_patterns",),
}
"""Rooms that hold no mechanism of their own → the mechanisms whose sections speak of them."""


@dataclass(frozen=True)
class Entry:
    """A function, a class or a pattern of a room."""

    name: str
    signature: str
    doc: str
    line: int
    methods: tuple[Entry, ...] = ()


def page_of(room: str) -> str:
    """The page of a room, without its ending: "reference/tfviz.position.rope"."""
    return f"reference/{room}"


# --- what there is --------------------------------------------------------------------------------


@cache
def rooms() -> dict[str, ModuleType]:
    """Every public module of the library that defines something, by its dotted name.

    The explorers are one room: their package names them all.
    """
    found = {}
    for info in [None, *pkgutil.walk_packages(tfviz.__path__, "tfviz.")]:
        name = info.name if info else "tfviz"
        hidden = any(part.startswith("_") for part in name.split("."))
        if hidden or name.startswith(LEFT_OUT) or name.startswith("tfviz.explorers."):
            continue
        module = importlib.import_module(name)
        if entries(module):
            found[name] = module
    return found


def group_of(room: str) -> str:
    """The package under whose heading a room is listed."""
    package = ".".join(room.split(".")[:2])
    return package if package in GROUPS else "tfviz"


@cache
def entries(module: ModuleType) -> tuple[Entry, ...]:
    """What a reader may call, in the order in which the room defines it."""
    if module.__name__ == "tfviz.explorers":
        things = {kind.__name__: kind for kind in module.ALL.values()}
    else:
        things = {
            name: thing
            for name, thing in vars(module).items()
            if not name.startswith("_")
            and name != "load_ipython_extension"  # IPython calls it, no reader does
            and callable(thing)
            and getattr(thing, "__module__", "") == module.__name__
            and getattr(thing, "__doc__", None)
        }
    made = [entry(name, thing) for name, thing in things.items()]
    return tuple(sorted(made, key=lambda one: one.line))


def entry(name: str, thing: Any) -> Entry:
    methods: list[Entry] = []
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            function = member.fget if isinstance(member, property) else inspect.unwrap(member)
            function = getattr(function, "__func__", function)
            if not key.startswith("_") and inspect.isfunction(function) and function.__doc__:
                methods.append(Entry(key, signature(key, member), doc(function), line(function)))
    return Entry(name, signature(name, thing), doc(thing), line(thing), tuple(methods))


def doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def line(thing: Any) -> int:
    """Where it begins in its file; 0 where nobody knows."""
    thing = inspect.unwrap(thing)
    if inspect.isfunction(thing):
        return thing.__code__.co_firstlineno
    if not inspect.isclass(thing):
        return 0
    try:
        return classes(inspect.getsourcefile(thing)).get(thing.__qualname__, 0)
    except (OSError, TypeError):
        return 0


@cache
def classes(file: str | None) -> dict[str, int]:
    """The first line of each class of a file, by its full name: that of a decorator, if it has."""
    found: dict[str, int] = {}

    def within(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue  # which holds no class, and most of the nodes
            inner = name
            if isinstance(child, ast.ClassDef):
                lines = [child.lineno, *(x.lineno for x in child.decorator_list)]
                found.setdefault(f"{name}{child.name}", min(lines))
                inner = f"{name}{child.name}."
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{name}{child.name}.<locals>."
            within(child, inner)

    if file:
        within(ast.parse(Path(file).read_text("utf-8")), "")
    return found


class _Text(str):
    """A default that is a text, in double quotes: single ones, around types, are dropped."""

    def __repr__(self) -> str:
        return f'"{self}"'


def signature(name: str, thing: Any) -> str:
    """As it is written in Python, one parameter a line where it does not fit."""
    if isinstance(thing, property):
        return name
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = [
        one.replace(default=_Text(one.default)) if isinstance(one.default, str) else one
        for one in found.parameters.values()
    ]
    found = found.replace(parameters=parameters)
    text = re.sub(r"ForwardRef\(([^()]*)\)", r"\1", f"{name}{found}")
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text)  # a default that is a class
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)  # or a function
    text = re.sub(r"<object object at 0x[0-9a-f]+>", "...", text)  # what the function makes itself
    plain = text.replace("'", "").replace("tfviz.", "")
    if len(plain) <= 88:
        return plain
    ending = plain[plain.rindex(")") :]
    lines = [f"    {part},\n" for part in _split(plain[len(name) + 1 : plain.rindex(")")])]
    return f"{name}(\n" + "".join(lines) + ending


def _split(parameters: str) -> Iterator[str]:
    """At the commas that stand in no bracket and no string."""
    depth, begun, quoted = 0, 0, False
    for at, letter in enumerate(parameters):
        quoted ^= letter == '"'
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quoted:
            yield parameters[begun:at].strip()
            begun = at + 1
    yield parameters[begun:].strip()


# --- the pages ------------------------------------------------------------------------------------


def unmarked(text: str) -> str:
    """A text without the marks around its `code`."""
    return CODE.sub(r"\1", text)


def docstring_html(text: str, highlight: Any) -> str:
    """Paragraphs with `code`; what is indented or begins with >>> stays as it is typed."""
    parts = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if not block.strip():
            continue
        if lines[0].lstrip().startswith(">>>"):
            parts.append(highlight(textwrap.dedent(block), "pycon"))
        elif all(one.startswith("    ") for one in lines):
            parts.append(f"<pre>{html.escape(textwrap.dedent(block))}</pre>")
        elif len(lines) > 1 and any(one.startswith("    ") for one in lines):
            parts.append(f"<pre>{html.escape(block)}</pre>")
        else:
            words = CODE.sub(r"<code>\1</code>", html.escape(" ".join(lines)))
            parts.append(f"<p>{words}</p>")
    return "".join(parts)


def anchor_of(name: str) -> str:
    """A function may be called like a class but for the first letter: both keep their case."""
    return name


def entry_html(one: Entry, highlight: Any, above: str = "", links: str = "") -> str:
    name = f"{above}.{one.name}" if above else one.name
    level = "h3" if above else "h2"
    return (
        f'<section id="{html.escape(anchor_of(name))}" class="tf-api">'
        f"<{level}><code>{html.escape(name)}</code></{level}>"
        f"{highlight(one.signature, 'python')}{docstring_html(one.doc, highlight)}"
        f"{f'<p>{links}</p>' if links else ''}"
        f"{''.join(entry_html(method, highlight, one.name) for method in one.methods)}</section>"
    )


def taught_in(app: Sphinx, mechanisms: Iterable[str], page: str) -> Iterator[str]:
    """Links from a page of the reference to the sections of these mechanisms that the book has."""
    for row in map(catalogue.get, mechanisms):
        if row.built and row.document in app.env.found_docs:
            uri = app.builder.get_relative_uri(page, row.document)
            address = html.escape(f"{uri}#{nodes.make_id(row.id)}")
            yield f'taught in <a href="{address}">{html.escape(row.name)}</a>'


def mechanisms_of(room: str) -> tuple[str, ...]:
    """The mechanisms that a room holds, or whose sections speak of it."""
    held = tuple(row.id for row in catalogue.MECHANISMS if row.module == room)
    return held or TAUGHT.get(room, ())


def room_html(app: Sphinx, name: str, module: ModuleType) -> str:
    builder: Any = app.builder
    page = page_of(name)

    def highlight(code: str, language: str) -> str:
        return str(builder.highlighter.highlight_block(code, language))

    def to(document: str, anchor: str, text: str) -> str:
        address = builder.get_relative_uri(page, document) + (f"#{anchor}" if anchor else "")
        return f'<a href="{html.escape(address)}">{html.escape(text)}</a>'

    facts = [to(INDEX, "", "Library reference")]
    facts += taught_in(app, mechanisms_of(name), page)
    path = Path(str(module.__file__)).relative_to(ROOT).as_posix()
    home, branch = app.config.tfviz_home, app.config.html_theme_options["repository_branch"]
    source = f'<a href="{html.escape(f"{home}/blob/{branch}/{path}")}">{path}</a>' if home else path
    facts.append(f"source: {source}")
    sections = taught_patterns(ROOT / HEADINGS)
    body = ""
    for one in entries(module):
        taught = [sections[one.name]] if one.name in patterns.FAMILIES else []
        links = " · ".join(taught_in(app, taught, page))
        body += entry_html(one, highlight, links=links)
    return (
        f"<h1><code>{name}</code></h1><p>{' · '.join(facts)}</p>"
        f"{docstring_html(inspect.cleandoc(module.__doc__ or ''), highlight)}{body}"
    )


def names(env: BuildEnvironment) -> set[str]:
    """Every page that is made here, if the book has an index of them."""
    return {page_of(name) for name in rooms()} if INDEX in env.found_docs else set()


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """For Sphinx: name, context and template of each page."""
    wanted = names(app.env)
    for name, module in rooms().items():
        if page_of(name) in wanted:
            yield page_of(name), {"title": name, "body": room_html(app, name, module)}, "page.html"


def said(doc: str) -> str:
    """A docstring in the words that a result of the search shows: no marks, no keys of papers."""
    text = re.sub(r"`[a-z]+\d{4}[a-z]\w*`,? ?", "", " ".join(doc.split()))
    return unmarked(text.replace(" ()", "").replace(" )", ")"))


def search_entries() -> Iterator[tuple[str, str, list[tuple[str, str, str, str, dict[str, int]]]]]:
    """(page, title, its places) as the search wants them."""
    for name, module in rooms().items():
        about = said(module.__doc__ or "")
        places = [("", "", "", about, dict[str, int]())]
        for one in entries(module):
            places.append((anchor_of(one.name), one.name, "", said(one.doc), {}))
        yield page_of(name), name, places


# --- the index ------------------------------------------------------------------------------------


def summary(module: ModuleType) -> str:
    """The first sentence of its docstring."""
    first = " ".join(inspect.cleandoc(module.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", first)[0].removesuffix(":")


@answers("rooms")
def told() -> list[tuple[str, str, str]]:
    """What the index says of each room: its name, its first sentence, the names in it."""
    return [
        (
            name,
            summary(module),
            ", ".join(one.name for one in entries(module)[:8])
            + (" …" if len(entries(module)) > 8 else ""),
        )
        for name, module in rooms().items()
    ]


class Reference(Directive):
    def run(self) -> list[nodes.Node]:
        listed: list[nodes.Node] = []
        listed_rooms = shown("rooms")
        for package, title in GROUPS.items():
            items = [self.item(*one) for one in listed_rooms if group_of(one[0]) == package]
            if items:
                listed += [el("h2", title), el("dl", *items, class_="tfv-rooms")]
        return listed

    def item(self, name: str, about: str, functions: str) -> nodes.Node:
        address = self.env.app.builder.get_relative_uri(self.env.docname, page_of(name))
        link = nodes.reference("", "", nodes.literal(name, name), refuri=address, internal=True)
        said = CODE.split(about or functions)  # every second piece is code
        words = [nodes.literal(w, w) if n % 2 else nodes.Text(w) for n, w in enumerate(said) if w]
        return el("div", el("dt", link), el("dd", *words, " ", el("small", functions)))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("reference", Reference)
    app.connect("html-collect-pages", pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
