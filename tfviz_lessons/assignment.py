"""The notebook of an assignment: exercises of one lesson, for nbgrader.

`source` makes the instructor's form, with solutions, hidden tests, model answers and mark schemes
between marks. `release` makes of it what students get; it equals what nbgrader makes with the
configuration of a course. What the prose refers to, numbers of equations and the like, comes as
plain Markdown from the build (`told`, which `lesson_sphinx` writes).

Each cell says what it is in `metadata.tfviz`: role about, install, student, setup, prose, numbers,
yours, checks or hidden; and of which exercise.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TypedDict

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tfviz_lessons.lesson import (
    HERE,
    NOTHING,
    Block,
    Exercise,
    Lesson,
    LessonError,
    Written,
    code_line,
    cut,
    shown_points,
)
from tfviz_lessons.notebook import ANSWER, Course
from tfviz_lessons.plain import Book, Plain, details
from tfviz_lessons.slice import SliceError, needed, quiet, uses

ABOUT = """\
# {title}

Assignment *{name}* of {course}, with exercises from {page}.

{first}\
* Write your answers into the cells that begin with `# exercise:`, and into those that ask for an
  answer in words. **Only what stands in these cells is read**; leave their first line as it is.
{more}\
* You may add cells to try things. They are not graded, so an answer must not need them.
* The checks say what is wrong. Your points also depend on checks that are not shown, with other
  inputs.
* Before you hand in: restart, and run everything from the top."""
FIRST = """\
* First write your student id between the quotes in the cell that says `STUDENT = ""`. On a
  JupyterHub leave them empty.
"""
EQUATIONS = "* Numbers in brackets such as (1.3) are equations of {page}.\n"
STUDENT = """\
# exercise: student  (keep this line)
STUDENT = ""  # your student id; on a JupyterHub leave it empty"""
NUMBERS = """\
# Numbers of your own: they depend on your student id.
from tfviz.checks import numbers

{names} = numbers(STUDENT, {seed}, "{label}", {choices})"""
KEEP = "# exercise: {label}  (keep this line)\n"
KEEP_TEXT = "<!-- exercise: {label}  (keep this line) -->\n"
PASTE = """\
# Run this cell and move the controls until the goal is met. Then press “copy Python”, paste what it
# copied below this line, and run the cell again: what stands here is your answer.
"""
HIDDEN = "# More checks, with other inputs, are here when your answer is graded."
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
SECRET = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


class ToldTask(TypedDict):
    """What the build knows of an exercise, as plain Markdown."""

    name: str  # "Exercise 3"
    title: str
    prose: str
    hints: list[list[str]]  # [title, text]
    model: str  # the model answer, empty where the answer is code
    rubric: list[str]  # what earns the points, line by line
    cites: list[str]  # keys of the bibliography


class Told(TypedDict):
    """What the build knows of a lesson."""

    title: str
    address: str
    install: str  # source of the cell that installs the library
    entries: dict[str, str]  # of the bibliography, by key, in the order in which they are shown
    exercises: dict[str, ToldTask]


def tell(lesson: Lesson, book: Book, course: Course, title: str, address: str) -> Told:
    """What the book knows of the lesson's exercises; `title` and `address` are the page's."""
    entries: set[str] = set()
    exercises: dict[str, ToldTask] = {}
    for task in lesson.tasks:
        plain = Plain(lesson.path, book, course.macros)
        words = task if isinstance(task, Written) else None
        exercises[task.label] = {
            "name": book.reference(task.label)[1] or "Exercise",
            "title": plain(task.title),
            "prose": plain(task.prose.source, task.prose.line),
            "hints": [
                [hint.argument or "Hint", plain(hint.source, code_line(hint, 0))]
                for hint in task.hints
            ],
            "model": plain(words.model.source, code_line(words.model, 0)) if words else "",
            "rubric": [plain(what, words.model.line) for _, what in words.rubric] if words else [],
            "cites": plain.cited,
        }
        entries |= set(plain.cited)
    return {
        "title": title,
        "address": address,
        "install": course.install,
        "entries": {key: course.entry(key) for key in sorted(entries, key=book.citation)},
        "exercises": exercises,
    }


# --- the instructor's form -----------------------------------------------------------------------


def _equations(task: Exercise | Written) -> bool:
    """Whether students read the number of an equation in the task or its hints."""
    return any("{eq}`" in part.source for part in (task.prose, *task.hints))


def gap(source: str) -> str:
    """The source of an answer cell with each solution replaced by a gap, as students get it.

    A cell without marks stays as it is.
    """
    if source.startswith(KEEP_TEXT.split("{")[0]):
        return cut(source, "SOLUTION", ANSWER, ANSWER)
    return cut(source, "SOLUTION", HERE, NOTHING)


def source(
    lesson: Lesson,
    labels: Sequence[str],
    told: Told,
    *,
    name: str,
    course: str,
    seed: int,
    points: Mapping[str, float] | None = None,
) -> NotebookNode:
    """The instructor's notebook of these exercises of the lesson, in the lesson's order.

    `points` overrides what an exercise is worth in all. Raises `LessonError` where an exercise
    needs something that the lesson binds only in another exercise.
    """
    worth = dict(points or {})
    chosen = [task for task in lesson.tasks if task.label in set(labels)]
    page = f"[{told['title']}]({told['address']})" if told["address"] else f"*{told['title']}*"
    varies = any(isinstance(task, Exercise) and task.vary for task in chosen)
    about = ABOUT.format(
        title=told["title"],
        name=name,
        course=course,
        page=page,
        first=FIRST if varies else "",
        more=EQUATIONS.format(page=page) if any(map(_equations, chosen)) else "",
    )
    cells = [
        _cell("about", about, "markdown", "about"),
        _cell("install", told["install"], "code", "install"),
    ]
    if varies:
        cells.append(_cell("student", STUDENT, "code", "student", solution=True))
    setup = _setup(lesson, chosen)
    count = 0
    for place, block in enumerate(lesson.blocks):
        if text := setup.get(place):
            count += 1
            cells.append(_cell("setup", text, "code", f"setup-{count}"))
        elif block in chosen and isinstance(block, Exercise):
            cells += _exercise(block, told["exercises"][block.label], seed, worth)
        elif block in chosen and isinstance(block, Written):
            cells += _written(block, told["exercises"][block.label], worth)
    cited = {key for task in chosen for key in told["exercises"][task.label]["cites"]}
    if cited:
        entries = "\n".join(f"* {entry}" for key, entry in told["entries"].items() if key in cited)
        cells.append(_cell("prose", f"**References**\n\n{entries}", "markdown", "references"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return new_notebook(cells=cells, metadata=metadata)


def _cell(
    role: str,
    text: str,
    kind: str,
    grade_id: str,
    exercise: str = "",
    *,
    solution: bool = False,
    points: float | None = None,
) -> NotebookNode:
    """A cell as nbgrader knows it: graded where it has points, locked unless it is a solution."""
    graded = {"points": points} if points is not None else {}
    metadata = {
        "nbgrader": {
            "schema_version": 3,
            "grade_id": grade_id,
            "cell_type": kind,
            "grade": points is not None,
            "solution": solution,
            "locked": not solution,
            "task": False,
            **graded,
        },
        "tfviz": {"role": role, **({"exercise": exercise} if exercise else {})},
    }
    make = new_code_cell if kind == "code" else new_markdown_cell
    return make(text, metadata=metadata, id=grade_id)


def _prose(task: Exercise | Written, told: ToldTask, points: float) -> NotebookNode:
    head = f"**{told['name']}**" + (f" ({told['title']})" if told["title"] else "")
    parts = [f"{head} · {shown_points(points)}", told["prose"]]
    parts += [details(title, text) for title, text in told["hints"]]
    return _cell("prose", "\n\n".join(parts), "markdown", task.label, task.label)


def _exercise(
    exercise: Exercise, told: ToldTask, seed: int, worth: Mapping[str, float]
) -> list[NotebookNode]:
    label, (visible, hidden) = exercise.label, exercise.points
    scale = worth.get(label, visible + hidden) / (visible + hidden)
    visible, hidden = (_tidy(scale * part) for part in (visible, hidden))
    cells = [_prose(exercise, told, _tidy(visible + hidden))]
    if exercise.vary:
        choices = ", ".join(f"{name}={options!r}" for name, options in exercise.vary.items())
        text = NUMBERS.format(
            names=", ".join(exercise.vary), seed=seed, label=label, choices=choices
        )
        cells.append(_cell("numbers", text, "code", f"{label}-numbers", label))
    answer = exercise.solution.source
    if exercise.answer == "explorer":
        answer = answer.replace(SOLUTION[0], PASTE + SOLUTION[0], 1)
    text = KEEP.format(label=label) + answer
    cells.append(_cell("yours", text, "code", f"{label}-yours", label, solution=True))
    checks = exercise.visible_tests.strip("\n")
    cells.append(_cell("checks", checks, "code", f"{label}-checks", label, points=visible))
    if exercise.hidden_tests:
        text = "\n".join([HIDDEN, SECRET[0], exercise.hidden_tests, SECRET[1]])
        cells.append(_cell("hidden", text, "code", f"{label}-hidden", label, points=hidden))
    return cells


def _written(written: Written, told: ToldTask, worth: Mapping[str, float]) -> list[NotebookNode]:
    label = written.label
    points = worth.get(label, written.points)
    scale = points / written.points
    scheme = [
        f"* {shown_points(_tidy(scale * earned))}: {what}"
        for (earned, _), what in zip(written.rubric, told["rubric"], strict=True)
    ]
    text = "\n".join(
        [
            KEEP_TEXT.format(label=label),
            SOLUTION[0],
            told["model"],
            "",
            "**Mark scheme**",
            "",
            *scheme,
            SOLUTION[1],
        ]
    )
    return [
        _prose(written, told, points),
        _cell("yours", text, "markdown", f"{label}-yours", label, solution=True, points=points),
    ]


def _tidy(points: float) -> float:
    """Without a tail of rounding, and an int where it is whole."""
    rounded = round(points, 6)
    return int(rounded) if float(rounded).is_integer() else rounded


# --- what must run before ------------------------------------------------------------------------


def _setup(lesson: Lesson, chosen: Sequence[Exercise | Written]) -> dict[int, str]:
    """The code that the exercises need, by the place of its cell among the lesson's blocks."""
    blocks = lesson.blocks
    places = [place for place, b in enumerate(blocks) if isinstance(b, Block) and b.kind == "code"]
    cells = [b.source for place in places if isinstance(b := blocks[place], Block)]
    wanted: list[tuple[int, set[str]]] = []
    for at, block in enumerate(blocks):
        if isinstance(block, Exercise) and block in chosen:
            above = sum(place < at for place in places)
            wanted.append((above, _wanted(block, cells[:above])))
            try:
                needed(cells, wanted[-1:])
            except SliceError as lost:
                raise LessonError(
                    lesson.path, [(block.solution.line, _lost(block, lost))]
                ) from None
    parts = needed(cells, wanted)
    return {place: quiet(text) for place, text in zip(places, parts, strict=True) if text.strip()}


def _lost(exercise: Exercise, lost: SliceError) -> str:
    return (
        f"{exercise.label!r} uses {lost.name!r}, which no code above it binds outside of "
        "exercises. In an assignment it must work by itself: bind the name in its own cells, or in "
        "a cell of the lesson"
    )


def _wanted(exercise: Exercise, above: list[str]) -> set[str]:
    """Names that the exercise's own cells use and do not bind, and what its prose tells to use."""
    bound = {"seed", *exercise.vary}
    wanted: set[str] = set()
    for text in (exercise.solved, exercise.visible_tests, exercise.hidden_tests):
        found = uses(text)
        wanted |= found.now - bound
        bound |= found.binds
        wanted |= found.later - bound
    offered = {name for cell in above for name in uses(cell).binds if f"def {name}(" in cell}
    words = "\n".join([exercise.prose.source, *(hint.source for hint in exercise.hints)])
    wanted |= offered & set(re.findall(r"`([A-Za-z_]\w*)", words))
    return wanted


# --- what students get ---------------------------------------------------------------------------


def release(made: NotebookNode) -> NotebookNode:
    """What students get of the instructor's form: gaps, no hidden test, locked cells, checksums."""
    out = copy.deepcopy(made)
    for cell in out.cells:
        known = cell.metadata.nbgrader
        if known.solution:
            cell.source = gap(cell.source)
        cell.source = cut(cell.source, "HIDDEN TESTS")
        cell.metadata.deletable = False
        if not known.solution:
            cell.metadata.editable = False
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if known.grade or known.solution or known.locked:
            known.checksum = checksum(cell)
    return out


def checksum(cell: NotebookNode) -> str:
    """By what nbgrader sees that a cell was changed; its own digest, without the package.

    Raises KeyError if the cell has no `metadata.nbgrader`, or is graded and says no points.
    """
    known = cell.metadata["nbgrader"]
    grade, solution = known.get("grade", False), known.get("solution", False)
    locked = False if solution else True if grade else known.get("locked", False)
    parts = [cell.source, cell.cell_type, str(grade), str(solution), str(locked), known["grade_id"]]
    parts += [str(float(known["points"]))] if grade else []
    return hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest()
