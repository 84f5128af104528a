"""The learner's notebook of a lesson, as Colab and JupyterLab open it.

Install cell, the text as plain Markdown, code cells without outputs, exercises with stub, visible
checks and a solution to unfold, references. The checks run under ``%%check``, which shows what is
wrong and lets *Run all* go on; an empty stub therefore stops nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tfviz_lessons.lesson import (
    HIDDEN,
    Block,
    Exercise,
    Lesson,
    Task,
    Written,
    code_line,
    shown_points,
)
from tfviz_lessons.outline import DEEPER, outline
from tfviz_lessons.plain import REFERENCES, Book, Plain, code_details, details

INSTALL = """\
# Installs the course's library where it is missing; a second run takes no time.
from importlib.metadata import distributions

if not any((d.name, d.version) == ("tfviz", "{version}") for d in distributions()):
    %pip install -q "{package}"
%load_ext tfviz.checks"""
UNPUBLISHED = """\
# This copy of the course has no public address (the head of _config.yml is where to set one), so
# there is none to install from: where tfviz is missing, this cell says so.
from importlib.metadata import distributions

if not any(d.name == "tfviz" for d in distributions()):
    raise ModuleNotFoundError("tfviz is missing; get it with: %pip install -e FOLDER-OF-YOUR-CLONE")
%load_ext tfviz.checks"""
ANSWER = "*Your answer.*"


@dataclass(frozen=True)
class Course:
    """What is the same for all notebooks: the library to install, macros, bibliography, site."""

    package: str  # as pip reads it, tfviz[lessons]@ git+https://host/name; "" if it is nowhere yet
    version: str
    macros: dict[str, Any]
    entry: Callable[[str], str]  # bibliography key -> one entry as Markdown

    @property
    def install(self) -> str:
        """The first cell."""
        if not self.package:
            return UNPUBLISHED
        return INSTALL.format(version=self.version, package=self.package)


def notebook(
    lesson: Lesson, book: Book, course: Course, title: str = "", address: str = ""
) -> nbformat.NotebookNode:
    """The notebook; `title` and `address` are those of the lesson's page."""
    plain = Plain(lesson.path, book, course.macros)
    cells = [new_code_cell(course.install, id="install")]
    if address:
        page = f"This is the notebook of the page [{title}]({address})."
        if lesson.tasks:
            page += (
                " An exercise leaves you a gap to fill: write your answer, run its cell, then the "
                "checks below it. Hints and solutions unfold."
            )
        cells.append(new_markdown_cell(page, id="page"))
    for number, block in enumerate(lesson.blocks):
        if isinstance(block, Exercise):
            cells += _exercise(block, plain, book)
        elif isinstance(block, Written):
            cells += _written(block, plain, book)
        elif block.kind == "code":
            cells.append(_code(block.source, block, f"code-{number}"))
        elif block.kind == "hint":
            body = plain(block.source, code_line(block, 0))
            cells.append(new_markdown_cell(details("Hint", body), id=f"text-{number}"))
        elif text := plain(block.source, block.line):
            cells += _text(text, f"text-{number}")
    _references(cells, [course.entry(key) for key in sorted(plain.cited, key=book.citation)])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    nbformat.validate(made)
    return made


def _text(text: str, name: str) -> list[nbformat.NotebookNode]:
    """Cells of text; what goes deeper begins one of its own, which JupyterLab opens folded."""
    cells, lines = [], text.split("\n")
    folds = [part.start for part in outline(text).walk() if part.title.startswith(DEEPER)]
    for number, (start, end) in enumerate(itertools.pairwise([0, *folds, len(lines)])):
        if (part := "\n".join(lines[start:end])).strip():
            folded = {"jp-MarkdownHeadingCollapsed": True} if number else {}
            label = f"{name}-{number}" if number else name
            cells.append(new_markdown_cell(part.strip("\n"), metadata=folded, id=label))
    return cells


def _references(cells: list[nbformat.NotebookNode], entries: list[str]) -> None:
    """Put the entries where the lesson has its {bibliography}, else at the end."""
    text = "\n".join(f"* {entry}" for entry in entries)
    if entries and not any(REFERENCES in cell.source for cell in cells):
        cells.append(
            new_markdown_cell(f"## Cited in this chapter\n\n{REFERENCES}", id="references")
        )
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(REFERENCES, text)


def _question(task: Task, plain: Plain, book: Book) -> nbformat.NotebookNode:
    name = book.reference(task.label)[1] or "Exercise"
    head = f"**{name}**" + (f" ({plain(task.title)})" if task.title else "")
    head += f" · {task.effort}" if task.effort else ""
    parts = [head, plain(task.prose.source, task.prose.line)]
    for hint in task.hints:
        body = plain(hint.source, code_line(hint, 0))
        parts.append(details(hint.argument or "Hint", body))
    return new_markdown_cell("\n\n".join(parts), id=task.label)


def _written(written: Written, plain: Plain, book: Book) -> list[nbformat.NotebookNode]:
    label, model = written.label, written.model
    answer = plain(model.source, code_line(model, 0))
    rubric = [
        f"* {shown_points(points)}: {plain(what, model.line)}" for points, what in written.rubric
    ]
    body = "\n".join([answer, "", "**What counts**", "", *rubric])
    return [
        _question(written, plain, book),
        new_markdown_cell(ANSWER, id=f"{label}-yours"),
        new_markdown_cell(details("A model answer", body), id=f"{label}-solution"),
    ]


def _exercise(exercise: Exercise, plain: Plain, book: Book) -> list[nbformat.NotebookNode]:
    label = exercise.label
    return [
        _question(exercise, plain, book),
        _code(exercise.stub, exercise.solution, f"{label}-yours"),
        _code(f"%%check {label}\n{exercise.visible_tests}", exercise.tests, f"{label}-checks"),
        new_markdown_cell(code_details("Solution", exercise.solved), id=f"{label}-solution"),
    ]


def _code(source: str, block: Block, cell_id: str) -> nbformat.NotebookNode:
    """A code cell; what the page folds is folded here too, in Jupyter and in Colab."""
    options: dict[str, Any] = {
        name: block.options[name] for name in ("exercise", "role") if name in block.options
    }
    tags = [str(tag) for tag in block.options.get("tags", [])]
    if set(HIDDEN) & set(tags) or (block.folded and "role" not in options):
        options |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
    if tags:
        options["tags"] = tags
    return new_code_cell(source, metadata=options, id=cell_id)
