"""The reader's progress, as far as it is known when the book is built: which exercises there are.

    ```{progress-list}       every exercise of the course by chapter
    ```{progress-store}      what is stored, and export, import, clear

An exercise gets a row in its box, a chapter of the front page's map a count, a lesson a tick at its
end. What is *done* is known to the reader's browser alone: `progress.js` fills these places in.
The list of exercises comes from the lessons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogue_directives import el, tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import is_exercise_node

from tfviz import catalogue
from tfviz_lessons.lesson import Exercise, is_lesson, parse

PAGE = "book/progress"
WORDS = {"code": "code", "written": "in words", "explorer": "in the lab"}

SUMMARY = """\
<p class="tf-sum"><strong data-tf-sum></strong> <span data-tf-next></span>
<span data-tf-read></span></p>
<p class="tf-no-script">Your browser runs no JavaScript, so nothing can be ticked and nothing is
stored. The list of exercises is complete all the same.</p>
"""

STORE = """\
<div class="tf-store">
<pre class="tf-stored" tabindex="0" role="region" aria-label="What is stored" data-tf-stored></pre>
<p class="tf-stored-where" data-tf-where></p>
<div class="tf-progress-buttons">
<button class="tf-button" type="button" data-tf-do="export">Export to a file</button>
<button class="tf-button" type="button" data-tf-do="import">Import from a file</button>
<button class="tf-button" type="button" data-tf-do="clear">Clear …</button>
<input class="tf-progress-file" type="file" accept=".json,application/json" hidden
 aria-label="A file of progress">
</div>
<p class="tf-progress-news" role="status" tabindex="-1" data-tf-news></p>
<dialog class="tf-clear" aria-labelledby="tf-clear-title" aria-describedby="tf-clear-text">
<form method="dialog">
<p id="tf-clear-title"><strong>Clear your progress?</strong></p>
<p id="tf-clear-text"><span data-tf-much></span> will be forgotten on this device. A file that you
have exported stays.</p>
<div class="tf-progress-buttons">
<button class="tf-button" value="keep" autofocus>Keep it</button>
<button class="tf-button tf-button-strong" value="clear">Clear it</button>
</div>
</form>
</dialog>
</div>
"""


@dataclass(frozen=True)
class Entry:
    """One exercise: label, kind (a key of `WORDS`) and the nodes of its title."""

    label: str
    kind: str
    title: tuple[nodes.Node, ...]


class progress_list(nodes.General, nodes.Element):  # noqa: N801  as docutils names its nodes
    """Stands where the list of all exercises goes, which is known when every page is read."""


class ProgressList(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [progress_list()]


class ProgressStore(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", STORE, format="html")]


# --- which exercises there are -------------------------------------------------------------------


def known(env: BuildEnvironment) -> dict[str, list[Entry]]:
    """The exercises of each lesson by document name."""
    if not hasattr(env, "tfviz_exercises"):
        env.tfviz_exercises = {}  # type: ignore[attr-defined]
    return env.tfviz_exercises  # type: ignore[attr-defined]


def labels(env: BuildEnvironment, docname: str) -> str:
    """The labels of a lesson's exercises in one attribute of HTML."""
    return " ".join(entry.label for entry in known(env).get(docname, []))


def read(app: Sphinx, doctree: nodes.document) -> None:
    """Note the exercises of the lesson that has just been read."""
    docname = app.env.docname
    known(app.env).pop(docname, None)
    path = app.env.doc2path(docname)
    text = Path(path).read_text("utf-8")
    if not is_lesson(text):
        return
    titles = {box["label"]: title_of(box) for box in doctree.findall(is_exercise_node)}
    tasks = parse(text, f"{docname}.md").tasks
    if tasks:
        known(app.env)[docname] = [
            Entry(
                task.label,
                task.answer if isinstance(task, Exercise) else "written",
                titles.get(task.label, ()),
            )
            for task in tasks
        ]


def title_of(box: nodes.Node) -> tuple[nodes.Node, ...]:
    """The bold words that the text of an exercise begins with, without their full stop; a number
    and its % stay on one line."""
    strong = next(iter(box.findall(nodes.strong)), None)
    if strong is None:
        return ()
    parts: list[nodes.Node] = [
        nodes.math(text, text) if isinstance(child, nodes.math) else nodes.Text(text)
        for child in strong.children
        if (text := re.sub(r"(?<=\d) %", "\u00a0%", child.astext()))
    ]
    if parts and isinstance(parts[-1], nodes.Text):
        parts[-1] = nodes.Text(parts[-1].astext().removesuffix("."))
    return tuple(parts)


def purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    known(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: Any) -> None:
    known(env).update({name: known(other)[name] for name in docnames if name in known(other)})


def outdated(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages with lists of exercises, where these have changed."""
    now = {
        name: [(entry.label, entry.kind, str(entry.title)) for entry in entries]
        for name, entries in known(env).items()
    }
    before = getattr(env, "tfviz_exercises_listed", None)
    env.tfviz_exercises_listed = now  # type: ignore[attr-defined]
    listing = [name for name in (app.config.root_doc, PAGE) if name in env.found_docs]
    return listing if now != before else []


# --- in the pages --------------------------------------------------------------------------------


def complete(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the rows, counts and lists where they belong."""
    if app.builder.format != "html":
        return
    kinds = {entry.label: entry.kind for entry in known(app.env).get(docname, [])}
    for box in doctree.findall(is_exercise_node):
        if kind := kinds.get(box["label"]):
            row = f'<div class="tf-done" data-kind="{kind}"></div>'
            box += nodes.raw("", row, format="html")
    for place in list(doctree.findall(progress_list)):
        place.replace_self([nodes.raw("", SUMMARY, format="html"), chapter_list(app, docname)])
    count_in_map(app, doctree, docname)


def amount(number: int) -> str:
    return f"{number} exercise{'' if number == 1 else 's'}"


def chapter_list(app: Sphinx, docname: str) -> tag:
    """A strip for each chapter, in the order of the course, that opens to its exercises."""
    order = {chapter.document: chapter.number for chapter in catalogue.CHAPTERS}
    chapters = sorted(known(app.env).items(), key=lambda item: (order.get(item[0], 99), item[0]))
    return el("div", *(chapter(app, docname, *item) for item in chapters), class_="tf-chapters")


def chapter(app: Sphinx, docname: str, document: str, entries: list[Entry]) -> tag:
    env = app.env
    there = app.builder.get_relative_uri(docname, document)
    numbers = env.toc_fignumbers.get(document, {}).get("exercise", {})
    course = env.toc_secnumbers.get(document, {}).get("")
    title = [nodes.Text(env.titles[document].astext())]
    if course:
        title.insert(0, nodes.Text(f"{course[0]}. "))
    items = []
    for entry in entries:
        number = ".".join(map(str, numbers.get(entry.label, ())))
        words = [node.deepcopy() for node in entry.title] or [nodes.Text("Exercise")]
        link = el("a", *words, href=f"{there}#{entry.label}")
        items.append(
            el(
                "li",
                el("span", number, class_="tf-number"),
                link,
                el("span", WORDS[entry.kind], class_="tf-kind"),
                data_tf_exercise=entry.label,
            )
        )
    # a summary is a button: the link to the chapter is in what opens
    summary = el("summary", el("h3", *title), el("p", amount(len(entries)), data_tf_count=""))
    return el(
        "details",
        summary,
        el("p", el("a", "go to the chapter", href=there), class_="tf-go"),
        el("ol", *items),
        class_="tf-chapter",
        data_tf_chapter=document,
        data_tf_labels=" ".join(entry.label for entry in entries),
    )


def count_in_map(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """A place for what is done of each chapter in the map of the course; progress.js fills it."""
    if docname == PAGE:
        return
    addresses = {
        app.builder.get_relative_uri(docname, document): document for document in known(app.env)
    }
    for item in doctree.findall(tag):
        if item["html"].get("class_") != "tfv-map-text":
            continue
        link = next(iter(item.findall(nodes.reference)), None)
        document = addresses.get(link.get("refuri", "")) if link is not None else None
        if document:
            item += el(
                "span",
                class_="tf-map-count",
                data_tf_chapter=document,
                data_tf_labels=labels(app.env, document),
            )


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(progress_list)
    app.add_directive("progress-list", ProgressList)
    app.add_directive("progress-store", ProgressStore)
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-get-updated", outdated)
    app.connect("doctree-resolved", complete, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
