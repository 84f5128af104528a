"""What a page rests on beside its own text, and so when it is read and written again.

What a directive shows of the library it asks by `shown`, which notes question and answer. Before a
page is read again, the same questions are asked: it is read if an answer is another one. Files that
a directive has noted count by what they hold. The code of the library that an adapter runs counts
piece by piece (`tfviz_lessons.pieces`); a change of the adapters themselves reads all pages
(`scripts/build_book.py`).

A page also shows what others say: titles, numbers, labels. Where one of them has changed, all pages
are written; else those that were read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from tfviz_lessons.execute import group
from tfviz_lessons.kept import Kept, digest
from tfviz_lessons.pieces import LIBRARY, Pieces, Shelf

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = Path(__file__).resolve().parent
ASKED = {"thumbnails", "reference_pages", "book_code"}
"""Adapters that find in the library what no name says; the pages note the answers one by one."""
ALWAYS = ("book_progress",)
"""Adapters without a directive that look at the library while a page is read."""

Question = tuple[str, ...]
ANSWERS: dict[str, Callable[..., Any]] = {}
"""By the first word of a question, what answers it: from files of the library alone."""

_asked: dict[Question, str] = {}  # since the page that is being read began
_shelf: Shelf | None = None  # of the build that goes on


def answers(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function of texts as the answer to questions of this kind."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        ANSWERS[kind] = function
        return function

    return mark


def shown(kind: str, *about: str) -> Any:
    """The answer to a question, on which the page that is being read now rests."""
    answer = ANSWERS[kind](*about)
    _asked[(kind, *about)] = digest(repr(answer))
    return answer


def answered(question: Question) -> str:
    """One number for the answer as it is now; none that is like another if nobody can answer."""
    try:
        return digest(repr(ANSWERS[question[0]](*question[1:])))
    except Exception as error:
        return f"unanswered: {error}"


def changed(
    pages: Mapping[str, Mapping[Question, str]], now: Callable[[Question], str] = answered
) -> set[str]:
    """Those of these pages of which an answer is no longer what it was; each is asked for once."""
    asked = {question for rests in pages.values() for question in rests}
    answer = {question: now(question) for question in asked}
    return {
        page
        for page, rests in pages.items()
        if any(answer[question] != before for question, before in rests.items())
    }


@answers("code")
def code(adapter: str) -> dict[str, str]:
    """The pieces of the library that an adapter, and those that it imports, may run."""
    return pieces(_shelf).of(
        "\n".join((ADAPTERS / f"{x}.py").read_text("utf-8") for x in with_others(adapter))
    )


@answers("file")
def file(name: str) -> str:
    return digest(ROOT / name)


@cache
def pieces(shelf: Shelf | None = None) -> Pieces:
    return Pieces(ROOT, shelf=shelf)


def with_others(adapter: str) -> list[str]:
    """An adapter, and the adapters that it imports, but for those that answer by themselves."""
    found, waiting = set(), {adapter}
    while waiting:
        found.add(name := waiting.pop())
        waiting |= imported(name) - ASKED - found - {"book_rests"}
    return sorted(found - ASKED)


@cache
def imported(adapter: str) -> set[str]:
    """The adapters that an adapter imports itself."""
    tree = ast.parse((ADAPTERS / f"{adapter}.py").read_text("utf-8"))
    named = {x.module for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)}
    named |= {y.name for x in ast.walk(tree) if isinstance(x, ast.Import) for y in x.names}
    return {x for x in named if x and (ADAPTERS / f"{x}.py").exists()}


def adapters(text: str) -> set[str]:
    """The adapters whose directives a page may use."""
    named = set(re.findall(r"\{([\w:-]+)\}", text))
    made_by = {getattr(directives._directives.get(name), "__module__", "") for name in named}
    return {name for name in made_by if name and (ADAPTERS / f"{name}.py").exists()}


@cache
def library() -> str:
    """One number for all files of the library."""
    files = sorted(x for one in LIBRARY for x in (ROOT / one).rglob("*") if x.is_file())
    there = [x for x in files if x.suffix != ".pyc"]
    return digest(*(part for x in there for part in (x.relative_to(ROOT).as_posix(), x)))


# --- while Sphinx works ---------------------------------------------------------------------------


def rests(env: BuildEnvironment) -> dict[str, dict[Question, str]]:
    """By page, from one build to the next: its questions, and a number for each answer."""
    if not hasattr(env, "tfviz_rests"):
        env.tfviz_rests = {}  # type: ignore[attr-defined]
    return env.tfviz_rests  # type: ignore[attr-defined]


def begin(app: Sphinx, _: BuildEnvironment, __: list[str]) -> None:
    global _shelf
    kept = Kept(Path(app.outdir).parent / "kept")
    _shelf = _shelf or Shelf(kept)

    @answers("outputs")
    def outputs(page: str) -> str:
        """What the cells of a lesson have displayed in their last run."""
        return str((kept.record(group(Path(app.srcdir, f"{page}.md"))) or {}).get("outputs"))


def page_begins(app: Sphinx, page: str, source: list[str]) -> None:
    _asked.clear()
    for adapter in {*ALWAYS, *adapters(source[0])} - ASKED:
        shown("code", adapter)
    shown("outputs", page)


def page_ends(app: Sphinx, doctree: nodes.document) -> None:
    env = app.env
    folder = Path(app.srcdir)
    noted = {env.doc2path(env.docname, False), *map(str, env.dependencies[env.docname])}
    for name in noted:
        path = (folder / name).resolve()
        if path.is_relative_to(ROOT):
            shown("file", path.relative_to(ROOT).as_posix())
    rests(env)[env.docname] = dict(_asked)


def page_goes(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    rests(env).pop(page, None)


def others_read(app: Sphinx, env: BuildEnvironment, pages: set[str], other: Any) -> None:
    rests(env).update({page: rests(other)[page] for page in pages if page in rests(other)})


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed_: set[str], removed: set[str]
) -> Iterable[str]:
    """What must be read again. The first page always is: else Sphinx would end before it copies
    style sheets and scripts."""
    begin(app, env, [])
    if app.builder.name == "notebooks":  # it takes what was read for pages
        return []
    pages: dict[str, dict[Question, str]] = {
        p: r for p, r in rests(env).items() if p not in removed
    }
    if getattr(env, "tfviz_library", "") == library():
        beside = ("file", "outputs")
        pages = {p: {q: a for q, a in r.items() if q[0] in beside} for p, r in pages.items()}
    env.tfviz_library = library()  # type: ignore[attr-defined]
    return {*changed(pages), app.config.root_doc} & env.found_docs


def said(env: BuildEnvironment) -> str:
    """One number for what pages show of one another, and of the plan of the course."""
    std, math = env.domaindata["std"], env.domaindata["math"]
    tables: list[Mapping[Any, Any]] = [
        {name: title.astext() for name, title in env.titles.items()},
        env.toc_secnumbers,
        env.toc_fignumbers,
        *(std[name] for name in ("labels", "anonlabels", "terms")),
        math["objects"],
        {name: meta.get("myst_slugs") for name, meta in env.metadata.items()},
    ]
    plan = [ROOT / "tfviz/catalogue.toml", *sorted((ROOT / "book").glob("*.bib"))]
    return digest(*(repr(sorted(table.items())) for table in tables), *plan)


def written(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """All pages if what they show of one another has changed."""
    if _shelf:
        _shelf.save()
    before, now = getattr(env, "tfviz_said", ""), said(env)
    env.tfviz_said = now  # type: ignore[attr-defined]
    return list(env.found_docs) if before != now else []


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-before-read-docs", begin)
    app.connect("source-read", page_begins, priority=100)
    app.connect("doctree-read", page_ends, priority=950)
    app.connect("env-purge-doc", page_goes)
    app.connect("env-merge-info", others_read)
    app.connect("env-get-outdated", outdated)
    app.connect("env-get-updated", written, priority=950)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
