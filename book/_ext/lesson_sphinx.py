"""Lessons in the build: pages as Sphinx reads them, notebooks as it ends.

Beside each learner's notebook goes that of an assignment with all exercises of the lesson. The
builder ``notebooks`` writes the notebooks alone, in a few seconds, with nothing executed.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pybtex.database
from book_rests import answered, said
from docutils import nodes
from packaging.requirements import Requirement
from pybtex.plugin import find_plugin, register_plugin
from pybtex.richtext import Text
from sphinx.application import Sphinx
from sphinx.builders.dummy import DummyBuilder
from sphinx.errors import SphinxError
from sphinx.util import logging

from tfviz_lessons.assignment import release, tell
from tfviz_lessons.assignment import source as assignment_source
from tfviz_lessons.kept import Kept, digest
from tfviz_lessons.lesson import Lesson, LessonError, is_lesson, parse
from tfviz_lessons.notebook import Course, notebook
from tfviz_lessons.page import page_text

logger = logging.getLogger(__name__)
USED = ("tfviz_", "html_", "numfig", "math_", "author", "project", "copyright")
"""How the names of what notebooks take from `_config.yml` begin."""
# found once: pybtex reads what all installed packages say of themselves, at each citation
BACKENDS = ("text", "plaintext", "docutils")


class LessonFaultError(SphinxError):
    """A lesson that cannot be read ends the build, with the places of all its faults."""

    category = "Lesson"


class NotebookBuilder(DummyBuilder):
    """Reads the whole book for its numbers and titles, writes only notebooks."""

    name = "notebooks"
    epilog = "The notebooks are in %(outdir)s/notebooks."

    def get_outdated_docs(self) -> set[str]:
        return set()


class Bibliography:
    """Citations and entries from the book's BibTeX files."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.style = find_plugin("pybtex.style.formatting", "unsrt")()
        self.markdown = find_plugin("pybtex.backends", "markdown")()
        self.citation = cache(self.citation)  # type: ignore[method-assign]

    @cached_property
    def entries(self) -> Any:
        text = "\n".join(file.read_text("utf8") for file in self.files)
        return pybtex.database.parse_string(text, "bibtex").entries

    def citation(self, key: str) -> tuple[str, str]:
        """Authors in short, and year; `KeyError` for an unknown key."""
        entry = self.entries[key]
        persons = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [
            Text.from_latex(" ".join([*person.prelast_names, *person.last_names])).render_as("text")
            for person in persons
        ]
        short = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return short or key, entry.fields.get("year", "n.d.")

    def entry(self, key: str) -> str:
        """The full entry as Markdown."""
        formatted = next(iter(self.style.format_entries([self.entries[key]])))
        text = str(formatted.text.render(self.markdown)).replace("\n", " ")
        return re.sub(r"\\([.()-])", r"\1", text)


class SphinxBook:
    """The numbers, titles and addresses that Sphinx has found, for one page's notebook."""

    def __init__(self, app: Sphinx, docname: str, bibliography: Bibliography) -> None:
        self.app, self.env, self.docname = app, app.env, docname
        self.citation = bibliography.citation

    def address(self, docname: str, anchor: str = "") -> str:
        """Public address of a page, empty where the site's address is not set."""
        site = str(self.app.config.html_baseurl or "").rstrip("/")
        if not site:
            return ""
        return f"{site}/{docname}.html" + (f"#{anchor}" if anchor else "")

    def _number(self, docname: str, anchor: str, kind: str | None = None) -> tuple[str, str]:
        """Kind and number of what has this anchor, empty if it has none."""
        for figtype, numbers in self.env.toc_fignumbers.get(docname, {}).items():
            if anchor in numbers and kind in (None, figtype):
                return figtype, ".".join(map(str, numbers[anchor]))
        sections = self.env.toc_secnumbers.get(docname, {})
        if kind is None and (places := sections.get(f"#{anchor}")):  # deep headings have none
            return "section", ".".join(map(str, places))
        return "", ""

    def equation(self, label: str) -> str:
        docname, plain = self.env.domaindata["math"]["objects"][label]
        anchor = nodes.make_id(f"equation-{label}")
        config = self.app.config
        numbered = config.math_numfig and config.numfig
        return (self._number(docname, anchor, "displaymath")[1] if numbered else "") or str(plain)

    def reference(self, label: str) -> tuple[str, str, str]:
        slugs = self.env.metadata[self.docname].get("myst_slugs", {})
        if label in slugs:
            _, anchor, title = slugs[label]
            return title, "", self.address(self.docname, anchor)
        name = nodes.fully_normalize_name(label)
        labels, anonymous = (self.env.domaindata["std"][key] for key in ("labels", "anonlabels"))
        docname, anchor = anonymous[name] if name not in labels else labels[name][:2]
        title = labels[name][2] if name in labels else ""
        kind, number = self._number(docname, anchor)
        if number:
            number = self.app.config.numfig_format.get(kind, "%s") % number
        if number and title in ("Exercise", None):  # sphinx-exercise's word for one without title
            title = number
        return str(title or ""), number, self.address(docname, anchor)

    def page(self, target: str) -> tuple[str, str]:
        path, _, anchor = target.partition("#")
        path = path.removesuffix(".md")
        if not path.startswith("/"):
            path = posixpath.join("/", posixpath.dirname(self.docname), path)
        docname = posixpath.normpath(path).lstrip("/")
        if docname not in self.env.titles:
            raise KeyError(f"no page {docname!r} in the book")
        return self.env.titles[docname].astext(), self.address(docname, anchor)


class DraftOfBook(SphinxBook):
    """A draft may have some of the pages only: what is not in it is called by its key, unlinked."""

    def equation(self, label: str) -> str:
        try:
            return super().equation(label)
        except KeyError:
            return label

    def reference(self, label: str) -> tuple[str, str, str]:
        try:
            return super().reference(label)
        except KeyError:
            return label, "", ""

    def page(self, target: str) -> tuple[str, str]:
        try:
            return super().page(target)
        except KeyError:
            return target, ""


def source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Sphinx reads the page that a lesson becomes."""
    if not is_lesson(source[0]):
        return
    try:
        source[0] = page_text(parse(source[0], f"{docname}.md"))
    except LessonError as error:
        raise LessonFaultError(f"the lesson cannot be read:\n{error}") from None


def build_finished(app: Sphinx, problem: Exception | None) -> None:
    """Write the notebooks beside the pages."""
    if problem is None and (app.builder.format == "html" or app.builder.name == "notebooks"):
        write_notebooks(app)


def with_extra(package: str) -> str:
    """The requirement `package` with what a lesson's notebook needs on top of the library."""
    if not package:
        return ""
    requirement = Requirement(package)
    requirement.extras.add("lessons")
    return str(requirement)


def write_notebooks(app: Sphinx) -> list[Path]:
    """One notebook for each lesson, at notebooks/<document>.ipynb in the output; beside pages only
    where something has changed that it rests on. Which were written."""
    lessons = {}
    for docname in sorted(app.env.found_docs):
        text = Path(app.env.doc2path(docname)).read_text("utf8")
        if is_lesson(text):
            lessons[docname] = text
    if not lessons:
        return []
    bibliography = Bibliography([Path(app.srcdir, file) for file in app.config.bibtex_bibfiles])
    course = Course(
        package=with_extra(app.config.tfviz_package),
        version=version("tfviz"),
        macros=dict(app.config.tfviz_macros),
        entry=cache(bibliography.entry),
    )
    written, config = [], app.config
    draft = bool(os.environ.get("TFVIZ_DRAFT"))
    kind = DraftOfBook if draft else SphinxBook
    kept = Kept(Path(app.outdir).parent / "kept")
    named = {name: repr(config[name]) for name in config.values if name.startswith(USED)}
    common = digest(
        named, said(app.env), answered(("code", "lesson_sphinx")), course.version, str(draft)
    )
    for docname, text in lessons.items():
        path = Path(app.outdir, "notebooks", f"{docname}.ipynb")
        group, rests = f"notebook {docname}", digest(common, text)
        whole = app.builder.format == "html" and path.exists()
        if whole and path_of_assignment(app, docname).exists() and kept.holds(group, rests):
            continue
        kept.forget(group)
        book = kind(app, docname, bibliography)
        title = app.env.titles[docname].astext()
        try:
            lesson = parse(text, f"{docname}.md")
            generated = notebook(lesson, book, course, title, book.address(docname))
            write_assignment(app, docname, lesson, book, course)
        except LessonError as error:
            fault = f"no notebook can be written of this lesson:\n{error}"
            if draft:
                logger.warning(fault)
                continue
            raise LessonFaultError(fault) from None
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(generated, path)
        if app.builder.format == "html":
            kept.keep(group, rests)
        written.append(path)
    logger.info("notebooks: %s written", len(written))
    return written


def path_of_assignment(app: Sphinx, docname: str) -> Path:
    return Path(app.outdir, "assignments", f"{docname}.ipynb")


def write_assignment(
    app: Sphinx, docname: str, lesson: Lesson, book: SphinxBook, course: Course
) -> None:
    """The lesson's exercises as students get them, at assignments/<document>.ipynb.

    The builder ``notebooks`` also writes what assignments need to be told of the book, at
    exercises/<document>.json. Model answers are in there, so no site gets it.
    """
    if not lesson.tasks:
        return
    title, address = app.env.titles[docname].astext(), book.address(docname)
    settings = tell(lesson, book, course, title, address)
    every = [task.label for task in lesson.tasks]
    source = assignment_source(
        lesson, every, settings, name=Path(docname).name, course=str(app.config.html_title), seed=0
    )
    path = path_of_assignment(app, docname)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(release(source), path)
    if app.builder.name == "notebooks":
        path = Path(app.outdir, "exercises", f"{docname}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, ensure_ascii=False, indent=1) + "\n", "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    for name, default in (("tfviz_package", "tfviz"), ("tfviz_macros", {})):
        if name not in app.config.values:
            app.add_config_value(name, default, "env")
    for name in BACKENDS:
        register_plugin("pybtex.backends", name, find_plugin("pybtex.backends", name), force=True)
    app.add_builder(NotebookBuilder)
    app.connect("source-read", source_read)
    app.connect("build-finished", build_finished)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
