"""The page of the book, made of a lesson's source just before Sphinx reads it.

A code cell is folded, what it displays is not; `tags: [show]` shows the cell: the mechanism itself.
Each exercise becomes: a box with its prose, its hint (folded) and the stub; the solution, folded
and executed; the tests, executed and shown without their hidden part. Wrong solutions vanish.
Where the answer is the state of an explorer the stub is executed too: it *is* the exercise.
Where the answer is words, the model answer is folded, with what earns the points below it.
"""

from __future__ import annotations

import html
from typing import Any

import yaml

from tfviz_lessons import in_page
from tfviz_lessons.lesson import Block, Exercise, Lesson, Task, Written, shown_points


def page_text(lesson: Lesson) -> str:
    """The MyST text that Sphinx gets in place of the source."""
    lines = lesson.text.splitlines()
    out: list[str] = []
    done = 0
    for block in lesson.blocks:
        if isinstance(block, Task):
            out += lines[done : block.blocks[0].start]
            out += _box(lesson, lines, block)
            out += _model(block) if isinstance(block, Written) else _answer(block)
            done = block.blocks[-1].end
        elif block.folded:
            out += lines[done : block.start]
            out += _cell(block.source, block, ["hide-input"], f"Show {_what(block.source)}")
            done = block.end
    return "\n".join(out + lines[done:]) + "\n"


def _what(source: str) -> str:
    """What a folded cell holds, in words."""
    if source.lstrip().startswith(("import ", "from ")):
        return "the imports"
    return "how this is drawn" if "plots." in source else "the code"


def _box(lesson: Lesson, lines: list[str], task: Task) -> list[str]:
    """The exercise as it is put to the reader."""
    out = lines[task.blocks[0].start : task.prose.start]
    if task.effort:
        out += ["", "```{div} tf-effort", task.effort, "```", ""]
    out += [*lines[task.prose.start : task.prose.end], ""]
    if isinstance(task, Exercise) and task.ask:
        out += [*_fenced("{raw} html", _ask(task)), ""]
    for hint in task.hints:
        out += [*_hint(hint), ""]
    if isinstance(task, Exercise):
        if task.answer == "explorer":
            out += _cell(task.stub, task.solution, ["hide-input"], "Show the code")
        else:
            out += _fenced("python", task.stub)
            if tried := in_page.box(lesson, task):
                out += ["", *_fenced("{raw} html", tried)]
        out += [""]
    return [*out, "```{exercise-end}", "```", ""]


def _ask(exercise: Exercise) -> str:
    """The place of a number that is answered in the page; `asked.js` fills it in."""
    ask = exercise.ask
    data = {"ask": exercise.label, "is": ask["is"], "near": ask["near"]}
    marks = " ".join(f'data-{name}="{value}"' for name, value in data.items())
    return f'<div class="tf-ask" {marks}><p>{html.escape(ask["question"])}</p></div>'


def _answer(exercise: Exercise) -> list[str]:
    """The solution, folded, and the checks.

    Both are folded, with what they display: a check that holds often says what the answer is.
    Below an explorer they are one fold: the explorer judges the reader's own state itself.
    """
    solved = _cell(exercise.solved, exercise.solution, [], "")
    checks = _cell(exercise.visible_tests, exercise.tests, ["hide-cell"], "Show the checks")
    if exercise.answer == "explorer":
        return _folded(exercise, [*solved, "", *checks])
    return [*_folded(exercise, solved), *checks, ""]


def _model(written: Written) -> list[str]:
    """The model answer, folded, and the rubric under it."""
    rubric = [f"* {shown_points(points)}: {what}" for points, what in written.rubric]
    return _folded(written, [written.model.source.strip("\n"), "", "**What counts**", "", *rubric])


def _folded(task: Task, lines: list[str]) -> list[str]:
    return [
        f"```{{solution-start}} {task.label}",
        f":label: {task.label}-solution",
        ":class: dropdown",
        "```",
        "",
        *lines,
        "",
        "```{solution-end}",
        "```",
        "",
    ]


def _hint(hint: Block) -> list[str]:
    title = hint.argument or "Hint"
    return _fenced(
        "{admonition} " + title, ":class: hint dropdown\n\n" + hint.source.strip("\n"), hint.fence
    )


def _cell(source: str, like: Block, tags: list[str], prompt: str) -> list[str]:
    """A code cell with the options of `like` that a page understands, and `tags` besides."""
    options: dict[str, Any] = {}
    if all_tags := [*like.options.get("tags", []), *tags]:
        options["tags"] = all_tags
    shown = dict(like.options.get("mystnb", {}))
    if prompt:
        shown.setdefault("code_prompt_show", prompt)
        shown.setdefault("code_prompt_hide", prompt.replace("Show", "Hide"))
    if shown:
        options["mystnb"] = shown
    head = f"---\n{yaml.safe_dump(options, allow_unicode=True)}---\n" if options else ""
    return _fenced("{code-cell} ipython3", head + source)


def _fenced(info: str, body: str, fence: str = "```") -> list[str]:
    while any(line.lstrip().startswith(fence) for line in body.split("\n")):
        fence += fence[0]
    return [fence + info, *body.split("\n"), fence]
